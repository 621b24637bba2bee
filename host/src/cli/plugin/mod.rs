//! `switchbay plugin` and `switchbay status`: the operator's API from a terminal.
//!
//! - `call`: an operation that a plugin serves to the operator.
//! - `show`: what there is.
//! - `stage`: a revision's way to where it may serve.
//!
//! Tables for people, `--json` for scripts, and exit codes of their own (see [`super`]). A server must run: what a plugin is
//! allowed is decided in one place.

mod call;
mod show;
mod stage;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(super) use self::show::status;
use super::place::CommonArguments;
use super::print::print_text;
use super::table::{Table, joined};
use super::{CommandFailure, one_line};
use crate::transport::operator::endpoint::{Endpoint, EndpointRequest, Enveloped};
use crate::transport::operator::plugins::{
    ActRequest, FollowOutcome, PlainOrder, PluginPath, PluginView, RevisionPath, RevisionView,
    RevokeOrder, RollbackOrder,
};
use crate::transport::operator::routes::{
    ActivateRevision, DisablePlugin, EnablePlugin, FollowManifest, LendProxy, RejectRevision,
    RevokeApproval, RollBackPlugin, ShowPlugin,
};
use crate::transport::operator::way_out::LendOrder;

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
    /// Call an operation that a plugin serves to the operator alone, and print what it answers as JSON
    Call(CallArguments),
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
pub(super) struct CallArguments {
    /// The plugin's name in the manifest
    plugin: String,
    /// The operation's id, as listed by `plugin show`
    operation: String,
    /// A file with the input, a JSON object; `-` reads standard input [default: an empty object]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArguments,
    #[command(flatten)]
    reason: Reason,
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
        PluginCommand::Stage(arguments) => stage::stage(arguments).await,
        PluginCommand::Diff(arguments) => stage::diff(arguments).await,
        PluginCommand::Approve(arguments) => stage::approve(arguments).await,
        PluginCommand::Reject(one) => on_revision::<RejectRevision>(one).await,
        PluginCommand::Activate(one) => on_revision::<ActivateRevision>(one).await,
        PluginCommand::Rollback(Rollback { act, to }) => {
            on_plugin::<RollBackPlugin, _>(act, RollbackOrder { to }).await
        }
        PluginCommand::Disable(act) => on_plugin::<DisablePlugin, _>(act, PlainOrder {}).await,
        PluginCommand::Enable(act) => on_plugin::<EnablePlugin, _>(act, PlainOrder {}).await,
        PluginCommand::Revoke(arguments) => revoke(arguments).await,
        PluginCommand::Call(arguments) => call::call(arguments).await,
        PluginCommand::Proxy(arguments) => proxy(arguments).await,
        PluginCommand::Follow(common) => follow(&common).await,
    }
}

async fn on_revision<E>(one: One) -> Result<(), CommandFailure>
where
    E: Endpoint<
            Path = RevisionPath,
            Body = ActRequest<PlainOrder>,
            Answer = Enveloped<RevisionView>,
        >,
{
    let (common, reason) = (&one.common, one.reason);
    let path = candidate(common, one.plugin, one.revision).await?;
    let request = EndpointRequest::<E>::at(path).with(reason.with(PlainOrder {}));
    let done = common.ask_server(request).await?;
    common.show(&done, || {
        let (revision, plugin, state) = (done.revision, &done.plugin, done.state.name());
        say!("revision {revision} of {plugin} is {state}");
    });
    Ok(())
}

async fn on_plugin<E, T>(act: ActArguments, order: T) -> Result<(), CommandFailure>
where
    E: Endpoint<Path = PluginPath, Body = ActRequest<T>, Answer = Enveloped<PluginView>>,
{
    let PluginArgument { plugin, common } = act.named;
    let request = EndpointRequest::<E>::at(PluginPath { plugin }).with(act.reason.with(order));
    let done = common.ask_server(request).await?;
    common.show(&done, || {
        let standing = &done.standing;
        let (name, state) = (&standing.name, &standing.state);
        let version = standing.version.as_deref().unwrap_or_default();
        let revision = standing.revision.map(|number| number.to_string());
        let revision = revision.as_deref().unwrap_or("null");
        say!("{name} {version} is {state}, revision {revision}");
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
    let named = PluginArgument { plugin, common };
    let order = RevokeOrder { atom: Some(atom) };
    on_plugin::<RevokeApproval, _>(ActArguments { named, reason }, order).await
}

async fn proxy(arguments: ProxyArguments) -> Result<(), CommandFailure> {
    let ProxyArguments { act, seconds } = arguments;
    let PluginArgument { plugin, common } = act.named;
    let request = EndpointRequest::<LendProxy>::at(PluginPath { plugin })
        .with(act.reason.with(LendOrder { seconds }));
    let lent = common.ask_server(request).await?;
    common.show(&lent, || {
        let (plugin, revision, until) = (&lent.plugin, lent.revision, &lent.expires_at);
        say!("{plugin}, revision {revision}, until {until}");
        say!("rights  {}", joined(lent.rights.iter()));
        say!("try     curl -v --proxy {} https://…", lent.url);
    });
    Ok(())
}

async fn follow(common: &CommonArguments) -> Result<(), CommandFailure> {
    let request = EndpointRequest::<FollowManifest>::default();
    let done = common.ask_server(request).await?;
    common.show(&done, || {
        let mut table = Table::new(&["PLUGIN", "OUTCOME", "MESSAGE"]);
        for plugin in &done.plugins {
            let message = plugin.message.as_deref().unwrap_or_default();
            let outcome = plugin.outcome.name().to_owned();
            table.row([plugin.plugin.clone(), outcome, one_line(message)]);
        }
        print_text(format_args!("{table}"));
    });
    let is = |outcome| done.plugins.iter().any(|one| one.outcome == outcome);
    if is(FollowOutcome::Failed) {
        return Err(CommandFailure::of(
            "a plugin could not be brought in; what ran before keeps serving",
        ));
    }
    if is(FollowOutcome::AwaitingApproval) {
        return Err(CommandFailure::waits(
            "a revision is waiting for you; see `switchbay plugin diff PLUGIN`",
        ));
    }
    Ok(())
}

async fn shown(common: &CommonArguments, plugin: &str) -> Result<PluginView, CommandFailure> {
    let plugin = plugin.to_owned();
    let request = EndpointRequest::<ShowPlugin>::at(PluginPath { plugin });
    common.ask_server(request).await
}

/// The named revision, or the one that waits for the operator.
async fn candidate(
    common: &CommonArguments,
    plugin: String,
    named: Option<u64>,
) -> Result<RevisionPath, CommandFailure> {
    let revision = match named {
        Some(number) => Some(number),
        None => shown(common, &plugin)
            .await?
            .standing
            .candidate
            .map(|one| one.revision),
    };
    match revision {
        Some(revision) => Ok(RevisionPath { plugin, revision }),
        None => Err(CommandFailure::not_found(format!(
            "no revision of {plugin} is waiting; name one of those in `switchbay plugin show {plugin}`"
        ))),
    }
}

impl Reason {
    fn with<T>(self, order: T) -> ActRequest<T> {
        let Self { why, by } = self;
        ActRequest { by, why, order }
    }
}
