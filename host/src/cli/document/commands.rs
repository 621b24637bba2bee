//! docs/commands.md: every command with its arguments, read from the parser itself.

use clap::{Arg, ArgAction, Command};

use super::{columns, heading, row};

const ABOUT: &str = "\
Every command prints `--help`. Exit codes: 0 done, 1 failed with one line that says what to do, 2 wrong arguments, 3 something
waits for the operator's approval, 4 there is no such plugin, revision or key, 5 the request conflicts with the current state,
6 no server runs.";

pub(super) fn page(program: &Command) -> String {
    let mut page = heading("Commands", "commands", ABOUT);
    write_command(&mut page, program, "switchbay");
    page
}

fn write_command(page: &mut String, command: &Command, path: &str) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let path = format!("{path} {}", sub.get_name());
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        page.push_str(&format!("\n## `{path}`\n\n{about}.\n"));
        page.push_str(&options(sub));
        write_command(page, sub, &path);
    }
}

/// The arguments of a command, as a table; nothing where it has none.
pub(super) fn options(command: &Command) -> String {
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && argument.get_id() != "help")
        .collect();
    if arguments.is_empty() {
        return String::new();
    }
    let mut table = columns(&["argument", "variable", "default", "meaning"]);
    for argument in arguments {
        let defaults = argument.get_default_values().iter();
        let defaults: Vec<String> = defaults
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        let variable = argument
            .get_env()
            .map(|name| format!("`{}`", name.to_string_lossy()));
        let told = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let default = if matches!(argument.get_action(), ArgAction::SetTrue) {
            String::new()
        } else {
            defaults.join(", ")
        };
        table.push_str(&row(&[
            &format!("`{}`", named(argument)),
            &variable.unwrap_or_default(),
            &default,
            &told,
        ]));
    }
    table
}

fn named(argument: &Arg) -> String {
    let values: Vec<String> = argument
        .get_value_names()
        .into_iter()
        .flatten()
        .map(|name| name.to_string())
        .collect();
    let is_flag = matches!(argument.get_action(), ArgAction::SetTrue | ArgAction::Count);
    match argument.get_long() {
        Some(long) if is_flag => format!("--{long}"),
        Some(long) => format!("--{long} {}", values.join(" ")),
        None => format!("[{}]", values.join(" ")),
    }
}
