//! What there is: `switchbay status`, `plugin list` and `plugin show`.

use super::{CommonArguments, PluginArgument, shown};
use crate::cli::place::cell;
use crate::cli::print::print_text;
use crate::cli::table::{Table, joined};
use crate::cli::{CommandFailure, one_line};
use crate::transport::operator::endpoint::EndpointRequest;
use crate::transport::operator::overview::ServiceStatus;
use crate::transport::operator::plugins::{PluginStanding, PluginView};
use crate::transport::operator::routes::{ListPlugins, ShowStatus};

/// `switchbay status`.
pub(in crate::cli) async fn status(common: &CommonArguments) -> Result<(), CommandFailure> {
    let request = EndpointRequest::<ShowStatus>::default();
    let status = common.ask_server(request).await?;
    common.show(&status, || print_status(&status));
    if !status.well {
        return Err(CommandFailure::of(
            "something is not serving; see `switchbay plugin list`",
        ));
    }
    if status.waiting > 0 {
        return Err(CommandFailure::waits(
            "a revision is waiting for you; see `switchbay plugin diff PLUGIN`",
        ));
    }
    Ok(())
}

fn print_status(status: &ServiceStatus) {
    say!("switchbay {}, since {}", status.version, status.started_at);
    if status.safe_mode {
        say!(
            "SAFE MODE: the last revisions known to be good are serving, and the manifest is not followed"
        );
    }
    let store = if status.store_healthy {
        "healthy"
    } else {
        "FAILS"
    };
    say!(
        "store {store}; {} connections, {} requests in flight; {} revisions draining",
        status.connections,
        status.requests_in_flight,
        status.draining.len(),
    );
    print_text(format_args!("{}", plugins(&status.plugins)));
}

pub(super) async fn list(common: &CommonArguments) -> Result<(), CommandFailure> {
    let request = EndpointRequest::<ListPlugins>::default();
    let listed = common.ask_server(request).await?;
    common.show(&listed, || {
        let standings = listed.plugins.iter().map(|plugin| &plugin.standing);
        print_text(format_args!("{}", plugins(standings)));
    });
    Ok(())
}

fn plugins<'p>(listed: impl IntoIterator<Item = &'p PluginStanding>) -> Table {
    let mut table = Table::new(&[
        "PLUGIN",
        "STATE",
        "REVISION",
        "VERSION",
        "CANDIDATE",
        "MESSAGE",
    ]);
    for plugin in listed {
        let candidate = plugin.candidate.as_ref();
        let candidate = candidate.map(|one| format!("{} ({})", one.revision, one.state.name()));
        table.row([
            plugin.name.clone(),
            plugin.state.clone(),
            cell(plugin.revision),
            cell(plugin.version.as_ref()),
            cell(candidate),
            one_line(plugin.message.as_deref().unwrap_or_default()),
        ]);
    }
    table
}

pub(super) async fn show(named: &PluginArgument) -> Result<(), CommandFailure> {
    let PluginArgument { plugin, common } = named;
    let shown = shown(common, plugin).await?;
    common.show(&shown, || print_plugin(&shown));
    Ok(())
}

fn print_plugin(shown: &PluginView) {
    let standing = &shown.standing;
    let version = standing.version.as_deref().unwrap_or_default();
    say!("{} {version} is {}", standing.name, standing.state);
    say!(
        "  {}",
        one_line(shown.summary.as_deref().unwrap_or_default())
    );
    if let Some(message) = &standing.message {
        say!("  {}", one_line(message));
    }
    let rights = shown.rights.iter().flat_map(|rights| rights.iter());
    say!("rights     {}", joined(rights));
    say!("manifest   {}", joined(shown.grants.iter()));
    for approval in &shown.approvals {
        let (atom, by, at) = (
            &approval.atom,
            one_line(&approval.note.by),
            &approval.note.at,
        );
        say!("approved   {atom} by {by} at {at}");
    }
    print_text(format_args!(
        "\n{}\n{}",
        operations(shown),
        revisions(shown)
    ));
}

fn operations(shown: &PluginView) -> Table {
    let mut table = Table::new(&["OPERATION", "ROUTE", "TOOL", "DEADLINE"]);
    for operation in &shown.operations {
        let (rest, tool) = (operation.rest.as_ref(), operation.tool.as_ref());
        table.row([
            operation.id.clone(),
            if operation.operator {
                "(operator)".to_owned()
            } else {
                cell(rest.map(|rest| format!("{} {}", rest.method, rest.path)))
            },
            cell(tool.map(|tool| &tool.name)),
            format!("{} ms", operation.deadline_ms),
        ]);
    }
    table
}

fn revisions(shown: &PluginView) -> Table {
    let mut table = Table::new(&[
        "REVISION", "STATE", "VERSION", "DIGEST", "SINCE", "BY", "WHY",
    ]);
    for revision in shown.revisions.iter().flatten() {
        let changed = &revision.changed;
        table.row([
            revision.revision.to_string(),
            revision.state.name().to_owned(),
            revision.version.clone(),
            revision.digest.chars().take(12).collect(),
            changed.at.to_string(),
            one_line(&changed.by),
            one_line(&changed.why),
        ]);
    }
    table
}
