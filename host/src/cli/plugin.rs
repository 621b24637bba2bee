//! `switchbay plugin` and `switchbay status`: the operator's API from a terminal.
//!
//! Tables for people, `--json` for scripts, and exit codes of their own (see [`super`]). A server must run: what a plugin is
//! allowed is decided in one place.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what these commands are for is printed")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::place::Common;
use super::table::{Table, text};
use super::{Failure, one_line};
use crate::operator::client::{self, Payload};

/// How often a revision that is being prepared is looked at.
const LOOK: Duration = Duration::from_millis(150);
/// For how long; the limits of compiling are shorter.
const PATIENCE: Duration = Duration::from_secs(3600);

#[derive(Subcommand)]
pub(super) enum Command {
    /// All plugins, and where each stands
    List(Common),
    /// One plugin: its rights, operations and revisions
    Show(Named),
    /// Stage a component as a new revision, and wait until it is prepared
    Stage(Stage),
    /// What a revision would be allowed that the active one is not, and what clients would see change
    Diff(Diff),
    /// Grant what a revision wants beyond what is granted
    Approve(Approve),
    /// Reject a revision that has never served
    Reject(One),
    /// Serve a staged or kept revision
    Activate(One),
    /// Serve the revision that served before, or an earlier one
    Rollback(Rollback),
    /// Switch a plugin off: its routes answer 503
    Disable(Act),
    /// Switch a plugin on again
    Enable(Act),
    /// Take an approval back; what runs loses the right at once
    Revoke(Revoke),
    /// Lend a proxy that reaches exactly what the plugin may, to try that with curl
    Proxy(Proxy),
    /// Read the plugin manifest again
    Follow(Common),
}

#[derive(Args)]
pub(super) struct Named {
    /// The plugin's name in the manifest
    plugin: String,
    #[command(flatten)]
    common: Common,
}

/// Who does something and why, for the history.
#[derive(Args)]
struct Reason {
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// Who, for the history [default: operator]
    #[arg(long, env = "SWITCHBAY_OPERATOR", value_name = "NAME")]
    by: Option<String>,
}

#[derive(Args)]
pub(super) struct Act {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    reason: Reason,
}

#[derive(Args)]
pub(super) struct One {
    /// The plugin's name in the manifest
    plugin: String,
    /// The revision's number [default: the candidate]
    revision: Option<u64>,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    reason: Reason,
}

#[derive(Args)]
pub(super) struct Stage {
    /// The plugin's name in the manifest
    plugin: String,
    /// A component file, which is uploaded [default: the source of the manifest's entry, as the server reads it]
    file: Option<PathBuf>,
    /// The SHA-256 that the component must have, in hexadecimal
    #[arg(long, value_name = "SHA256")]
    digest: Option<String>,
    /// Serve it as soon as everything that it wants is granted
    #[arg(long)]
    activate: bool,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    reason: Reason,
}

#[derive(Args)]
pub(super) struct Diff {
    /// The plugin's name in the manifest
    plugin: String,
    /// The revision's number [default: the candidate]
    revision: Option<u64>,
    /// The revision to compare with [default: the active one]
    #[arg(long, value_name = "REVISION")]
    against: Option<u64>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub(super) struct Approve {
    #[command(flatten)]
    one: One,
    /// Serve it at once
    #[arg(long)]
    activate: bool,
}

#[derive(Args)]
pub(super) struct Rollback {
    #[command(flatten)]
    act: Act,
    /// The revision to serve [default: the one before the active one]
    #[arg(long, value_name = "REVISION")]
    to: Option<u64>,
}

#[derive(Args)]
pub(super) struct Proxy {
    #[command(flatten)]
    act: Act,
    /// For how long, at most 600 [default: 60]
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
}

#[derive(Args)]
pub(super) struct Revoke {
    /// The plugin's name in the manifest
    plugin: String,
    /// The approved atom, as `plugin show` has it
    atom: String,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    reason: Reason,
}

pub(super) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List(common) => list(&common).await,
        Command::Show(named) => show(&named).await,
        Command::Stage(arguments) => stage(&arguments).await,
        Command::Diff(arguments) => diff(&arguments).await,
        Command::Approve(arguments) => approve(&arguments).await,
        Command::Reject(one) => on_revision(&one, "reject").await,
        Command::Activate(one) => on_revision(&one, "activate").await,
        Command::Rollback(Rollback { act, to }) => on_plugin(&act, "rollback", json!({ "to": to })).await,
        Command::Disable(act) => on_plugin(&act, "disable", json!({})).await,
        Command::Enable(act) => on_plugin(&act, "enable", json!({})).await,
        Command::Revoke(arguments) => revoke(arguments).await,
        Command::Proxy(arguments) => proxy(&arguments).await,
        Command::Follow(common) => follow(&common).await,
    }
}

/// `switchbay status`.
pub(super) async fn status(common: &Common) -> Result<(), Failure> {
    let status = get(&common.folder()?, "/admin/v1/status").await?;
    if common.json {
        println!("{status:#}");
    } else {
        println!("switchbay {}, since {}", text(&status["version"]), text(&status["startedAt"]));
        if status["safeMode"] == true {
            println!("SAFE MODE: the last revisions known to be good serve, and the manifest is not followed");
        }
        println!(
            "store {}; {} connections, {} requests in flight; {} revisions drain",
            if status["storeHealthy"] == true { "healthy" } else { "FAILS" },
            status["connections"],
            status["requestsInFlight"],
            status["draining"].as_array().map_or(0, Vec::len),
        );
        print!("{}", plugins(&status["plugins"]));
    }
    match (status["well"] == true, status["waiting"].as_u64()) {
        (false, _) => Err(Failure::of("something does not serve; `switchbay plugin list` tells what")),
        (true, Some(1..)) => Err(Failure::waits("a revision waits for you; `switchbay plugin diff PLUGIN` shows it")),
        (true, _) => Ok(()),
    }
}

async fn list(common: &Common) -> Result<(), Failure> {
    let listed = get(&common.folder()?, "/admin/v1/plugins").await?;
    match common.json {
        true => println!("{listed:#}"),
        false => print!("{}", plugins(&listed["plugins"])),
    }
    Ok(())
}

fn plugins(listed: &Value) -> Table {
    let mut table = Table::new(&["PLUGIN", "STATE", "REVISION", "VERSION", "CANDIDATE", "MESSAGE"]);
    for plugin in listed.as_array().into_iter().flatten() {
        let candidate = &plugin["candidate"];
        let candidate = match candidate.is_null() {
            true => "-".to_owned(),
            false => format!("{} ({})", candidate["revision"], text(&candidate["state"])),
        };
        let row = ["name", "state", "revision", "version"].map(|name| text(&plugin[name]));
        table.row(row.into_iter().chain([candidate, one_line(&text(&plugin["message"]))]));
    }
    table
}

async fn show(named: &Named) -> Result<(), Failure> {
    let Named { plugin, common } = named;
    let shown = get(&common.folder()?, &path(plugin, "")).await?;
    if common.json {
        println!("{shown:#}");
        return Ok(());
    }
    print_plugin(&shown);
    Ok(())
}

fn print_plugin(shown: &Value) {
    let list = |value: &Value| {
        let all: Vec<String> = value.as_array().into_iter().flatten().map(text).collect();
        if all.is_empty() { "-".to_owned() } else { all.join(", ") }
    };
    println!("{} {} is {}", text(&shown["name"]), text(&shown["version"]), text(&shown["state"]));
    println!("  {}", one_line(&text(&shown["summary"])));
    if !shown["message"].is_null() {
        println!("  {}", one_line(&text(&shown["message"])));
    }
    println!("rights     {}", list(&shown["rights"]));
    println!("manifest   {}", list(&shown["grants"]));
    for approval in shown["approvals"].as_array().into_iter().flatten() {
        let told = ["atom", "by", "at"].map(|name| text(&approval[name]));
        println!("approved   {} by {} at {}", told[0], one_line(&told[1]), told[2]);
    }
    let mut operations = Table::new(&["OPERATION", "ROUTE", "TOOL", "DEADLINE"]);
    for operation in shown["operations"].as_array().into_iter().flatten() {
        let (rest, tool) = (&operation["rest"], &operation["tool"]);
        let route =
            if rest.is_null() { "-".to_owned() } else { format!("{} {}", text(&rest["method"]), text(&rest["path"])) };
        let deadline = format!("{} ms", operation["deadlineMs"]);
        operations.row([text(&operation["id"]), route, text(&tool["name"]), deadline]);
    }
    print!("\n{operations}");
    let mut revisions = Table::new(&["REVISION", "STATE", "VERSION", "DIGEST", "SINCE", "BY", "WHY"]);
    for revision in shown["revisions"].as_array().into_iter().flatten() {
        let changed = &revision["changed"];
        let digest = text(&revision["digest"]).chars().take(12).collect();
        let words = ["at", "by", "why"].map(|name| one_line(&text(&changed[name])));
        let head = ["revision", "state", "version"].map(|name| text(&revision[name]));
        revisions.row(head.into_iter().chain([digest]).chain(words));
    }
    print!("\n{revisions}");
}

async fn stage(arguments: &Stage) -> Result<(), Failure> {
    let Stage { plugin, file, digest, activate, common, reason } = arguments;
    let data = common.folder()?;
    let staged = match file {
        None => {
            let body = reason.with(json!({ "digest": digest, "activate": activate }));
            post(&data, &path(plugin, "/revisions"), &body).await?
        }
        Some(file) => {
            let component = tokio::fs::read(file)
                .await
                .map_err(|error| Failure::of(format!("cannot read the component {}: {error}", file.display())))?;
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
        println!("{prepared:#}");
    }
    let state = text(&prepared["state"]);
    match state.as_str() {
        "rejected" => {
            let why = text(&prepared["changed"]["why"]);
            Err(Failure::of(format!("revision {number} of {plugin} was rejected: {why}")))
        }
        "awaiting-approval" => Err(Failure::waits(format!(
            "revision {number} of {plugin} wants more than is granted: look at `switchbay plugin diff {plugin} {number}`, \
             then `switchbay plugin approve {plugin} {number}`"
        ))),
        "staged" if !common.json => {
            println!(
                "revision {number} of {plugin} is staged; serve it with `switchbay plugin activate {plugin} {number}`"
            );
            Ok(())
        }
        _ if !common.json => {
            println!("revision {number} of {plugin} is {state}");
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Looks at a revision until nothing works on it any more, and tells each step.
async fn wait(data: &Path, plugin: &str, number: u64, mut seen: Value, quiet: bool) -> Result<Value, Failure> {
    let path = path(plugin, &format!("/revisions/{number}"));
    let mut told = String::new();
    let began = Instant::now();
    while seen["underWay"] == true {
        if began.elapsed() > PATIENCE {
            return Err(Failure::of(format!(
                "revision {number} of {plugin} is still {}; `switchbay plugin show {plugin}` tells when it is ready",
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

async fn diff(arguments: &Diff) -> Result<(), Failure> {
    let Diff { plugin, revision, against, common } = arguments;
    let data = common.folder()?;
    let number = candidate(&data, plugin, *revision).await?;
    let query = against.map(|against| format!("?against={against}")).unwrap_or_default();
    let compared = get(&data, &path(plugin, &format!("/revisions/{number}/difference{query}"))).await?;
    match common.json {
        true => println!("{compared:#}"),
        false => {
            for line in text(&compared["text"]).lines() {
                println!("{}", super::printable(line));
            }
        }
    }
    Ok(())
}

/// Approves what the difference shows and nothing else, even if something changes in between.
async fn approve(arguments: &Approve) -> Result<(), Failure> {
    let Approve { one: One { plugin, revision, common, reason }, activate } = arguments;
    let data = common.folder()?;
    let number = candidate(&data, plugin, *revision).await?;
    let compared = get(&data, &path(plugin, &format!("/revisions/{number}/difference"))).await?;
    let missing = compared["missing"].as_array().into_iter().flatten();
    let atoms: Vec<Value> = missing.map(|missing| missing["atom"].clone()).collect();
    let body = reason.with(json!({ "grants": atoms, "activate": activate }));
    let approved = post(&data, &path(plugin, &format!("/revisions/{number}/approve")), &body).await?;
    if common.json {
        println!("{approved:#}");
        return Ok(());
    }
    let granted: Vec<String> = atoms.iter().map(text).collect();
    match granted.is_empty() {
        true => println!("everything that revision {number} of {plugin} wants was granted already"),
        false => println!("granted to {plugin}: {}", granted.join(", ")),
    }
    match text(&approved["state"]).as_str() {
        "staged" => println!("serve it with `switchbay plugin activate {plugin} {number}`"),
        state => println!("revision {number} of {plugin} is {state}"),
    }
    Ok(())
}

async fn on_revision(one: &One, act: &str) -> Result<(), Failure> {
    let One { plugin, revision, common, reason } = one;
    let data = common.folder()?;
    let number = candidate(&data, plugin, *revision).await?;
    let done = post(&data, &path(plugin, &format!("/revisions/{number}/{act}")), &reason.with(json!({}))).await?;
    match common.json {
        true => println!("{done:#}"),
        false => println!("revision {number} of {plugin} is {}", text(&done["state"])),
    }
    Ok(())
}

async fn on_plugin(act: &Act, name: &str, members: Value) -> Result<(), Failure> {
    let Act { named: Named { plugin, common }, reason } = act;
    let done = post(&common.folder()?, &path(plugin, &format!("/{name}")), &reason.with(members)).await?;
    match common.json {
        true => println!("{done:#}"),
        false => {
            println!("{plugin} {} is {}, revision {}", text(&done["version"]), text(&done["state"]), done["revision"]);
        }
    }
    Ok(())
}

async fn revoke(arguments: Revoke) -> Result<(), Failure> {
    let Revoke { plugin, atom, common, reason } = arguments;
    on_plugin(&Act { named: Named { plugin, common }, reason }, "revoke", json!({ "atom": atom })).await
}

async fn proxy(arguments: &Proxy) -> Result<(), Failure> {
    let Proxy { act: Act { named: Named { plugin, common }, reason }, seconds } = arguments;
    let body = reason.with(json!({ "seconds": seconds }));
    let lent = post(&common.folder()?, &path(plugin, "/proxy"), &body).await?;
    if common.json {
        println!("{lent:#}");
        return Ok(());
    }
    let rights: Vec<String> = lent["rights"].as_array().into_iter().flatten().map(text).collect();
    println!("{plugin}, revision {}, until {}", lent["revision"], text(&lent["expiresAt"]));
    println!("rights  {}", if rights.is_empty() { "-".to_owned() } else { rights.join(", ") });
    println!("try     curl -v --proxy {} https://…", text(&lent["url"]));
    Ok(())
}

async fn follow(common: &Common) -> Result<(), Failure> {
    let done = post(&common.folder()?, "/admin/v1/manifest/follow", &json!({})).await?;
    if common.json {
        println!("{done:#}");
    } else {
        let mut table = Table::new(&["PLUGIN", "OUTCOME", "MESSAGE"]);
        for plugin in done["plugins"].as_array().into_iter().flatten() {
            table.row(["plugin", "outcome", "message"].map(|name| one_line(&text(&plugin[name]))));
        }
        print!("{table}");
    }
    let is =
        |outcome: &str| done["plugins"].as_array().is_some_and(|all| all.iter().any(|one| one["outcome"] == outcome));
    match (is("failed"), is("awaiting-approval")) {
        (true, _) => Err(Failure::of("a plugin was not brought in; what ran before serves on")),
        (false, true) => Err(Failure::waits("a revision waits for you; `switchbay plugin diff PLUGIN` shows it")),
        (false, false) => Ok(()),
    }
}

/// The named revision, or the one that waits for the operator.
async fn candidate(data: &Path, plugin: &str, named: Option<u64>) -> Result<u64, Failure> {
    if let Some(number) = named {
        return Ok(number);
    }
    let shown = get(data, &path(plugin, "")).await?;
    shown["candidate"]["revision"].as_u64().ok_or_else(|| {
        Failure::not_found(format!(
            "no revision of {plugin} waits; name one of those that `switchbay plugin show` lists"
        ))
    })
}

impl Reason {
    fn with(&self, mut members: Value) -> Value {
        for (name, value) in [("why", &self.why), ("by", &self.by)] {
            if let Some(value) = value {
                members[name] = json!(value);
            }
        }
        members
    }
}

fn path(plugin: &str, rest: &str) -> String {
    format!("/admin/v1/plugins/{}{rest}", utf8_percent_encode(plugin, NON_ALPHANUMERIC))
}

async fn get(data: &Path, path: &str) -> Result<Value, Failure> {
    Ok(client::call(data, Method::GET, path, Payload::Nothing).await?)
}

async fn post(data: &Path, path: &str, body: &Value) -> Result<Value, Failure> {
    Ok(client::call(data, Method::POST, path, Payload::Json(body)).await?)
}
