//! A revision's way to where it may serve: `plugin stage`, `plugin diff` and `plugin approve`.
#![expect(
    clippy::print_stderr,
    reason = "the steps are told beside what is printed"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Approve, CommonArguments, Diff, Reason, Stage, candidate};
use crate::cli::table::joined;
use crate::cli::{CommandFailure, printable};
use crate::registry::lifecycle::RevisionState;
use crate::transport::operator::endpoint::EndpointRequest;
use crate::transport::operator::plugins::{
    ApproveOrder, CompareQuery, ComponentOrder, PluginPath, RevisionPath, RevisionView, StageQuery,
    StagedComponent,
};
use crate::transport::operator::routes::{
    ApproveRevision, CompareRevision, ShowRevision, StageRevision,
};

/// How often a revision that is being prepared is looked at.
const LOOK: Duration = Duration::from_millis(150);
/// For how long; the limits of compiling are shorter.
const PATIENCE: Duration = Duration::from_secs(3600);

pub(super) async fn stage(arguments: Stage) -> Result<(), CommandFailure> {
    let common = &arguments.common;
    let request = EndpointRequest::<StageRevision> {
        path: PluginPath {
            plugin: arguments.plugin,
        },
        ..ordered(
            arguments.file,
            arguments.digest,
            arguments.activate,
            arguments.reason,
        )
        .await?
    };
    let staged = common.ask_server(request).await?;
    let prepared = wait(common, staged).await?;
    if common.json {
        say!("{:#}", json!(prepared));
    }
    let (number, plugin) = (prepared.revision, &prepared.plugin);
    match prepared.state {
        RevisionState::Rejected => {
            let why = &prepared.changed.why;
            return Err(CommandFailure::of(format!(
                "revision {number} of {plugin} was rejected: {why}"
            )));
        }
        RevisionState::AwaitingApproval => {
            return Err(CommandFailure::waits(format!(
                "revision {number} of {plugin} wants more than is granted: review it with `switchbay plugin diff \
                 {plugin} {number}`, then `switchbay plugin approve {plugin} {number}`"
            )));
        }
        _ if common.json => {}
        RevisionState::Staged => say!(
            "revision {number} of {plugin} is staged; serve it with `switchbay plugin activate {plugin} {number}`"
        ),
        RevisionState::Fetched
        | RevisionState::Verified
        | RevisionState::Compiled
        | RevisionState::Linked
        | RevisionState::Described
        | RevisionState::Compared
        | RevisionState::Active
        | RevisionState::Draining
        | RevisionState::Retained => {
            say!("revision {number} of {plugin} is {}", prepared.state.name());
        }
    }
    Ok(())
}

/// A file is uploaded, and otherwise the server reads the source in the manifest entry.
async fn ordered(
    file: Option<PathBuf>,
    digest: Option<String>,
    activate: bool,
    reason: Reason,
) -> Result<EndpointRequest<StageRevision>, CommandFailure> {
    let Some(file) = file else {
        let order = ComponentOrder {
            path: None,
            digest,
            activate,
        };
        let body = StagedComponent::Written(reason.with(order));
        return Ok(EndpointRequest::default().with(body));
    };
    let component = tokio::fs::read(&file).await.map_err(|error| {
        let file = file.display();
        CommandFailure::of(format!("cannot read the component {file}: {error}"))
    })?;
    let Reason { why, by } = reason;
    let query = StageQuery {
        by,
        why,
        digest,
        activate,
    };
    Ok(EndpointRequest {
        query,
        body: StagedComponent::Upload(component.into()),
        ..EndpointRequest::default()
    })
}

/// Looks at a revision until nothing works on it any more, and tells each step.
async fn wait(
    common: &CommonArguments,
    mut seen: RevisionView,
) -> Result<RevisionView, CommandFailure> {
    let (plugin, revision) = (seen.plugin.clone(), seen.revision);
    let path = RevisionPath { plugin, revision };
    let (mut told, began) = (None, Instant::now());
    while seen.under_way {
        let (plugin, state) = (&path.plugin, seen.state.name());
        if began.elapsed() > PATIENCE {
            return Err(CommandFailure::of(format!(
                "revision {revision} of {plugin} is still {state}; `switchbay plugin show {plugin}` shows when it is \
                 ready"
            )));
        }
        if !common.json && told != Some(state) {
            eprintln!("revision {revision} of {plugin}: {state} …");
        }
        told = Some(state);
        tokio::time::sleep(LOOK).await;
        let request = EndpointRequest::<ShowRevision>::at(path.clone());
        seen = common.ask_server(request).await?;
    }
    Ok(seen)
}

pub(super) async fn diff(arguments: Diff) -> Result<(), CommandFailure> {
    let Diff {
        plugin,
        revision,
        against,
        common,
    } = arguments;
    let request = EndpointRequest::<CompareRevision> {
        path: candidate(&common, plugin, revision).await?,
        query: CompareQuery { against },
        ..EndpointRequest::default()
    };
    let compared = common.ask_server(request).await?;
    common.show(&compared, || {
        for line in compared.text.lines() {
            say!("{}", printable(line));
        }
    });
    Ok(())
}

/// Approves what the difference shows and nothing else, even if something changes in between.
pub(super) async fn approve(arguments: Approve) -> Result<(), CommandFailure> {
    let Approve { one, activate } = arguments;
    let common = &one.common;
    let path = candidate(common, one.plugin, one.revision).await?;
    let request = EndpointRequest::<CompareRevision>::at(path.clone());
    let compared = common.ask_server(request).await?.comparison;
    let atoms = compared.missing.into_iter().map(|missing| missing.atom);
    let atoms: Vec<String> = atoms.collect();
    let order = ApproveOrder {
        grants: Some(atoms.clone()),
        activate,
    };
    let request = EndpointRequest::<ApproveRevision>::at(path).with(one.reason.with(order));
    let approved = common.ask_server(request).await?;
    common.show(&approved, || tell_approved(&approved, &atoms));
    Ok(())
}

fn tell_approved(approved: &RevisionView, atoms: &[String]) {
    let (number, plugin) = (approved.revision, &approved.plugin);
    if atoms.is_empty() {
        say!("everything that revision {number} of {plugin} wants was already granted");
    } else {
        say!("granted to {plugin}: {}", joined(atoms));
    }
    if approved.state == RevisionState::Staged {
        say!("serve it with `switchbay plugin activate {plugin} {number}`");
    } else {
        say!("revision {number} of {plugin} is {}", approved.state.name());
    }
}
