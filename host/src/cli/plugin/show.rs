//! What there is: `switchbay status`, `plugin list` and `plugin show`.

use serde_json::Value;

use super::{CommonArguments, PluginArgument, get, path};
use crate::cli::print::print_text;
use crate::cli::table::{Table, joined, text};
use crate::cli::{CommandFailure, one_line};

/// `switchbay status`.
pub(in crate::cli) async fn status(common: &CommonArguments) -> Result<(), CommandFailure> {
    let status = get(&common.folder()?, "/admin/v1/status").await?;
    if common.json {
        say!("{status:#}");
    } else {
        let (version, since) = (text(&status["version"]), text(&status["startedAt"]));
        say!("switchbay {version}, since {since}");
        if status["safeMode"] == true {
            say!(
                "SAFE MODE: the last revisions known to be good are serving, and the manifest is not followed"
            );
        }
        say!(
            "store {}; {} connections, {} requests in flight; {} revisions draining",
            if status["storeHealthy"] == true {
                "healthy"
            } else {
                "FAILS"
            },
            status["connections"],
            status["requestsInFlight"],
            status["draining"].as_array().map_or(0, Vec::len),
        );
        print_text(format_args!("{}", plugins(&status["plugins"])));
    }
    match (status["well"] == true, status["waiting"].as_u64()) {
        (false, _) => Err(CommandFailure::of(
            "something is not serving; see `switchbay plugin list`",
        )),
        (true, Some(1..)) => Err(CommandFailure::waits(
            "a revision is waiting for you; see `switchbay plugin diff PLUGIN`",
        )),
        (true, _) => Ok(()),
    }
}

pub(super) async fn list(common: &CommonArguments) -> Result<(), CommandFailure> {
    let listed = get(&common.folder()?, "/admin/v1/plugins").await?;
    common.show(&listed, || {
        print_text(format_args!("{}", plugins(&listed["plugins"])));
    });
    Ok(())
}

fn plugins(listed: &Value) -> Table {
    let mut table = Table::new(&[
        "PLUGIN",
        "STATE",
        "REVISION",
        "VERSION",
        "CANDIDATE",
        "MESSAGE",
    ]);
    for plugin in listed.as_array().into_iter().flatten() {
        let candidate = &plugin["candidate"];
        let candidate = if candidate.is_null() {
            "-".to_owned()
        } else {
            format!("{} ({})", candidate["revision"], text(&candidate["state"]))
        };
        let row = ["name", "state", "revision", "version"].map(|name| text(&plugin[name]));
        table.row(
            row.into_iter()
                .chain([candidate, one_line(&text(&plugin["message"]))]),
        );
    }
    table
}

pub(super) async fn show(named: &PluginArgument) -> Result<(), CommandFailure> {
    let PluginArgument { plugin, common } = named;
    let shown = get(&common.folder()?, &path(plugin, "")).await?;
    common.show(&shown, || print_plugin(&shown));
    Ok(())
}

fn print_plugin(shown: &Value) {
    let [name, version, state] = ["name", "version", "state"].map(|name| text(&shown[name]));
    say!("{name} {version} is {state}");
    say!("  {}", one_line(&text(&shown["summary"])));
    if !shown["message"].is_null() {
        say!("  {}", one_line(&text(&shown["message"])));
    }
    say!("rights     {}", joined(&shown["rights"]));
    say!("manifest   {}", joined(&shown["grants"]));
    for approval in shown["approvals"].as_array().into_iter().flatten() {
        let [atom, by, at] = ["atom", "by", "at"].map(|name| text(&approval[name]));
        say!("approved   {atom} by {} at {at}", one_line(&by));
    }
    let mut operations = Table::new(&["OPERATION", "ROUTE", "TOOL", "DEADLINE"]);
    for operation in shown["operations"].as_array().into_iter().flatten() {
        let (rest, tool) = (&operation["rest"], &operation["tool"]);
        let route = if rest.is_null() {
            "-".to_owned()
        } else {
            format!("{} {}", text(&rest["method"]), text(&rest["path"]))
        };
        let deadline = format!("{} ms", operation["deadlineMs"]);
        operations.row([text(&operation["id"]), route, text(&tool["name"]), deadline]);
    }
    print_text(format_args!("\n{operations}"));
    let mut revisions = Table::new(&[
        "REVISION", "STATE", "VERSION", "DIGEST", "SINCE", "BY", "WHY",
    ]);
    for revision in shown["revisions"].as_array().into_iter().flatten() {
        let changed = &revision["changed"];
        let digest = text(&revision["digest"]).chars().take(12).collect();
        let words = ["at", "by", "why"].map(|name| one_line(&text(&changed[name])));
        let head = ["revision", "state", "version"].map(|name| text(&revision[name]));
        revisions.row(head.into_iter().chain([digest]).chain(words));
    }
    print_text(format_args!("\n{revisions}"));
}
