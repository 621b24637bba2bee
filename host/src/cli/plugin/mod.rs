//! `switchbay plugin` and `switchbay status`: the operator's API from a terminal.
//!
//! - `show`: what there is.
//! - `stage`: a revision's way to where it may serve.
//!
//! Tables for people, `--json` for scripts, and exit codes of their own (see [`super`]). A server must run: what a plugin is
//! allowed is decided in one place.

mod show;
mod stage;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

pub(super) use self::show::status;
use super::client;
use super::client::Payload;
use super::place;
use super::place::CommonArguments;
use super::print::print_text;
use super::table::{Table, joined, text};
use super::{CommandFailure, one_line};

#[derive(Subcommand)]
pub(super) enum PluginCommand {
    /// List all plugins with their state
    List(CommonArguments),
    /// Show one plugin: its rights, operations and revisions
    Show(PluginArgument),
    /// Stage a component as a new revision and wait until it is prepared
    Stage(Stage),
    /// Compare a revision with the active one: their rights, and the changes that clients would see
    Diff(Diff),
    /// Grant a revision the rights that it wants but does not have
    Approve(Approve),
    /// Reject a revision that has never served
    Reject(One),
    /// Serve a staged or kept revision
    Activate(One),
    /// Go back to the revision that served before, or to an earlier one
    Rollback(Rollback),
    /// Disable a plugin: its routes return 503
    Disable(ActArguments),
    /// Enable a plugin again
    Enable(ActArguments),
    /// Take back an approval: running calls keep the right until they end, later calls do not have it
    Revoke(Revoke),
    /// Issue a proxy credential with exactly the plugin's rights, to try them with curl
    Proxy(ProxyArguments),
    /// Read the plugin manifest again and apply its changes
    Follow(CommonArguments),
}

#[derive(Args)]
pub(super) struct PluginArgument {
    /// The plugin's name in the manifest
    plugin: String,
    #[command(flatten)]
    common: CommonArguments,
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
pub(super) struct ActArguments {
    #[command(flatten)]
    named: PluginArgument,
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
    common: CommonArguments,
    #[command(flatten)]
    reason: Reason,
}

#[derive(Args)]
pub(super) struct Stage {
    /// The plugin's name in the manifest
    plugin: String,
    /// A component file to upload [default: the source in the manifest entry, read by the server]
    file: Option<PathBuf>,
    /// The SHA-256 that the component must have, in hexadecimal
    #[arg(long, value_name = "SHA256")]
    digest: Option<String>,
    /// Serve it as soon as everything that it wants is granted
    #[arg(long)]
    activate: bool,
    #[command(flatten)]
    common: CommonArguments,
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
    common: CommonArguments,
}

#[derive(Args)]
pub(super) struct Approve {
    #[command(flatten)]
    one: One,
    /// Serve it right away
    #[arg(long)]
    activate: bool,
}

#[derive(Args)]
pub(super) struct Rollback {
    #[command(flatten)]
    act: ActArguments,
    /// The revision to serve [default: the newest kept one that is older than the active one]
    #[arg(long, value_name = "REVISION")]
    to: Option<u64>,
}

#[derive(Args)]
pub(super) struct ProxyArguments {
    #[command(flatten)]
    act: ActArguments,
    /// How long the credential is valid, at most 600 [default: 60]
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
}

#[derive(Args)]
pub(super) struct Revoke {
    /// The plugin's name in the manifest
    plugin: String,
    /// The approved atom to take back, as listed by `plugin show`
    atom: String,
    #[command(flatten)]
    common: CommonArguments,
    #[command(flatten)]
    reason: Reason,
}

pub(super) async fn run(command: PluginCommand) -> Result<(), CommandFailure> {
    match command {
        PluginCommand::List(common) => show::list(&common).await,
        PluginCommand::Show(named) => show::show(&named).await,
        PluginCommand::Stage(arguments) => stage::stage(&arguments).await,
        PluginCommand::Diff(arguments) => stage::diff(&arguments).await,
        PluginCommand::Approve(arguments) => stage::approve(&arguments).await,
        PluginCommand::Reject(one) => on_revision(&one, "reject").await,
        PluginCommand::Activate(one) => on_revision(&one, "activate").await,
        PluginCommand::Rollback(Rollback { act, to }) => {
            on_plugin(&act, "rollback", json!({ "to": to })).await
        }
        PluginCommand::Disable(act) => on_plugin(&act, "disable", json!({})).await,
        PluginCommand::Enable(act) => on_plugin(&act, "enable", json!({})).await,
        PluginCommand::Revoke(arguments) => revoke(arguments).await,
        PluginCommand::Proxy(arguments) => proxy(&arguments).await,
        PluginCommand::Follow(common) => follow(&common).await,
    }
}

async fn on_revision(one: &One, act: &str) -> Result<(), CommandFailure> {
    let One {
        plugin,
        revision,
        common,
        reason,
    } = one;
    let data = common.folder()?;
    let number = candidate(&data, plugin, *revision).await?;
    let path = path(plugin, &format!("/revisions/{number}/{act}"));
    let done = post(&data, &path, reason.with(json!({}))).await?;
    let state = text(&done["state"]);
    common.show(&done, || {
        say!("revision {number} of {plugin} is {state}");
    });
    Ok(())
}

async fn on_plugin(act: &ActArguments, name: &str, members: Value) -> Result<(), CommandFailure> {
    let ActArguments {
        named: PluginArgument { plugin, common },
        reason,
    } = act;
    let path = path(plugin, &format!("/{name}"));
    let done = post(&common.folder()?, &path, reason.with(members)).await?;
    common.show(&done, || {
        let (version, state) = (text(&done["version"]), text(&done["state"]));
        say!(
            "{plugin} {version} is {state}, revision {}",
            done["revision"]
        );
    });
    Ok(())
}

async fn revoke(arguments: Revoke) -> Result<(), CommandFailure> {
    let Revoke {
        plugin,
        atom,
        common,
        reason,
    } = arguments;
    on_plugin(
        &ActArguments {
            named: PluginArgument { plugin, common },
            reason,
        },
        "revoke",
        json!({ "atom": atom }),
    )
    .await
}

async fn proxy(arguments: &ProxyArguments) -> Result<(), CommandFailure> {
    let ProxyArguments {
        act:
            ActArguments {
                named: PluginArgument { plugin, common },
                reason,
            },
        seconds,
    } = arguments;
    let body = reason.with(json!({ "seconds": seconds }));
    let lent = post(&common.folder()?, &path(plugin, "/proxy"), body).await?;
    common.show(&lent, || {
        let (revision, until) = (&lent["revision"], text(&lent["expiresAt"]));
        say!("{plugin}, revision {revision}, until {until}");
        say!("rights  {}", joined(&lent["rights"]));
        say!("try     curl -v --proxy {} https://…", text(&lent["url"]));
    });
    Ok(())
}

async fn follow(common: &CommonArguments) -> Result<(), CommandFailure> {
    let done = post(&common.folder()?, "/admin/v1/manifest/follow", json!({})).await?;
    common.show(&done, || {
        let mut table = Table::new(&["PLUGIN", "OUTCOME", "MESSAGE"]);
        for plugin in done["plugins"].as_array().into_iter().flatten() {
            table.row(["plugin", "outcome", "message"].map(|name| one_line(&text(&plugin[name]))));
        }
        print_text(format_args!("{table}"));
    });
    let is = |outcome: &str| {
        done["plugins"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["outcome"] == outcome))
    };
    match (is("failed"), is("awaiting-approval")) {
        (true, _) => Err(CommandFailure::of(
            "a plugin could not be brought in; what ran before keeps serving",
        )),
        (false, true) => Err(CommandFailure::waits(
            "a revision is waiting for you; see `switchbay plugin diff PLUGIN`",
        )),
        (false, false) => Ok(()),
    }
}

/// The named revision, or the one that waits for the operator.
async fn candidate(data: &Path, plugin: &str, named: Option<u64>) -> Result<u64, CommandFailure> {
    if let Some(number) = named {
        return Ok(number);
    }
    let shown = get(data, &path(plugin, "")).await?;
    shown["candidate"]["revision"].as_u64().ok_or_else(|| {
        CommandFailure::not_found(format!(
            "no revision of {plugin} is waiting; name one of those in `switchbay plugin show {plugin}`"
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
    place::path("/admin/v1/plugins", plugin, rest)
}

async fn get(data: &Path, path: &str) -> Result<Value, CommandFailure> {
    Ok(client::call(data, Method::GET, path, Payload::Nothing).await?)
}

async fn post(data: &Path, path: &str, body: Value) -> Result<Value, CommandFailure> {
    Ok(client::call(data, Method::POST, path, Payload::Json(body)).await?)
}
