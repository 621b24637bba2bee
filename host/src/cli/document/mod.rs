//! `switchbay document`: the reference pages of `docs/`, made from the code that they describe. A test compares them.

mod commands;
mod configure;
mod endpoints;

use clap::{Command, ValueEnum};

use super::print::print_text;

/// A page of the documentation that is made from the code.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ReferencePage {
    /// docs/configure.md
    Configure,
    /// docs/commands.md
    Commands,
    /// docs/endpoints.md
    Endpoints,
}

/// Prints one.
pub(super) fn print(page: ReferencePage, program: &Command) {
    let text = match page {
        ReferencePage::Configure => configure::page(program),
        ReferencePage::Commands => commands::page(program),
        ReferencePage::Endpoints => endpoints::page(),
    };
    print_text(format_args!("{text}"));
}

/// What a page begins with.
fn heading(title: &str, page: &str, about: &str) -> String {
    format!(
        "# {title}\n\n<!-- Made by `switchbay document {page}`; edit the code, not this file. -->\n\n{about}\n"
    )
}

/// One row of a table.
fn row(cells: &[&str]) -> String {
    let cells = cells.iter().map(|cell| {
        cell.replace('|', "\\|")
            .replace('<', "\\<")
            .replace('\n', " ")
    });
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// The first rows of a table.
fn columns(names: &[&str]) -> String {
    let lines = vec!["-"; names.len()];
    format!("\n{}{}", row(names), row(&lines))
}
