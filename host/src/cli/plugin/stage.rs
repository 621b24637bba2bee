//! A revision's way to where it may serve: `plugin stage`, `plugin diff` and `plugin approve`.
#![expect(
    clippy::print_stderr,
    reason = "the steps are told beside what is printed"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use super::{Approve, Diff, One, Stage, candidate, get, path, post};
use crate::cli::client;
use crate::cli::client::Payload;
use crate::cli::table::text;
use crate::cli::{CommandFailure, printable};

/// How often a revision that is being prepared is looked at.
const LOOK: Duration = Duration::from_millis(150);
/// For how long; the limits of compiling are shorter.
const PATIENCE: Duration = Duration::from_secs(3600);

pub(super) async fn stage(arguments: &Stage) -> Result<(), CommandFailure> {
    let Stage {
        plugin,
        file,
        digest,
        activate,
        common,
        reason,
    } = arguments;
    let data = common.folder()?;
    let staged = match file {
        None => {
            let body = reason.with(json!({ "digest": digest, "activate": activate }));
            post(&data, &path(plugin, "/revisions"), body).await?
        }
        Some(file) => {
            let component = tokio::fs::read(file).await.map_err(|error| {
                CommandFailure::of(format!(
                    "cannot read the component {}: {error}",
                    file.display()
                ))
            })?;
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("activate", if *activate { "true" } else { "false" });
            for (name, value) in [("digest", digest), ("why", &reason.why), ("by", &reason.by)] {
                if let Some(value) = value {
                    query.append_pair(name, value);
                }
            }
            let path = format!("{}?{}", path(plugin, "/revisions"), query.finish());
            client::call(&data, Method::POST, &path, Payload::Component(component)).await?
        }
    };
    let number = staged["revision"].as_u64().unwrap_or_default();
    let prepared = wait(&data, plugin, number, staged, common.json).await?;
    if common.json {
        say!("{prepared:#}");
    }
    let state = text(&prepared["state"]);
    match state.as_str() {
        "rejected" => {
            let why = text(&prepared["changed"]["why"]);
            Err(CommandFailure::of(format!(
                "revision {number} of {plugin} was rejected: {why}"
            )))
        }
        "awaiting-approval" => Err(CommandFailure::waits(format!(
            "revision {number} of {plugin} wants more than is granted: review it with `switchbay plugin diff \
             {plugin} {number}`, then `switchbay plugin approve {plugin} {number}`"
        ))),
        "staged" if !common.json => {
            say!(
                "revision {number} of {plugin} is staged; serve it with `switchbay plugin activate {plugin} {number}`"
            );
            Ok(())
        }
        _ if !common.json => {
            say!("revision {number} of {plugin} is {state}");
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Looks at a revision until nothing works on it any more, and tells each step.
async fn wait(
    data: &Path,
    plugin: &str,
    number: u64,
    mut seen: Value,
    quiet: bool,
) -> Result<Value, CommandFailure> {
    let path = path(plugin, &format!("/revisions/{number}"));
    let mut told = String::new();
    let began = Instant::now();
    while seen["underWay"] == true {
        if began.elapsed() > PATIENCE {
            return Err(CommandFailure::of(format!(
                "revision {number} of {plugin} is still {}; `switchbay plugin show {plugin}` shows when it is ready",
                text(&seen["state"])
            )));
        }
        let state = text(&seen["state"]);
        if !quiet && state != told {
            eprintln!("revision {number} of {plugin}: {state} …");
        }
        told = state;
        tokio::time::sleep(LOOK).await;
        seen = get(data, &path).await?;
    }
    Ok(seen)
}

pub(super) async fn diff(arguments: &Diff) -> Result<(), CommandFailure> {
    let Diff {
        plugin,
        revision,
        against,
        common,
    } = arguments;
    let data = common.folder()?;
    let number = candidate(&data, plugin, *revision).await?;
    let query = against
        .map(|against| format!("?against={against}"))
        .unwrap_or_default();
    let path = path(plugin, &format!("/revisions/{number}/difference{query}"));
    let compared = get(&data, &path).await?;
    common.show(&compared, || {
        for line in text(&compared["text"]).lines() {
            say!("{}", printable(line));
        }
    });
    Ok(())
}

/// Approves what the difference shows and nothing else, even if something changes in between.
pub(super) async fn approve(arguments: &Approve) -> Result<(), CommandFailure> {
    let Approve {
        one:
            One {
                plugin,
                revision,
                common,
                reason,
            },
        activate,
    } = arguments;
    let data = common.folder()?;
    let number = candidate(&data, plugin, *revision).await?;
    let difference = path(plugin, &format!("/revisions/{number}/difference"));
    let compared = get(&data, &difference).await?;
    let missing = compared["missing"].as_array().into_iter().flatten();
    let atoms: Vec<Value> = missing.map(|missing| missing["atom"].clone()).collect();
    let body = reason.with(json!({ "grants": atoms, "activate": activate }));
    let approve = path(plugin, &format!("/revisions/{number}/approve"));
    let approved = post(&data, &approve, body).await?;
    if common.json {
        say!("{approved:#}");
        return Ok(());
    }
    let granted: Vec<String> = atoms.iter().map(text).collect();
    if granted.is_empty() {
        say!("everything that revision {number} of {plugin} wants was already granted");
    } else {
        say!("granted to {plugin}: {}", granted.join(", "));
    }
    match text(&approved["state"]).as_str() {
        "staged" => say!("serve it with `switchbay plugin activate {plugin} {number}`"),
        state => say!("revision {number} of {plugin} is {state}"),
    }
    Ok(())
}
