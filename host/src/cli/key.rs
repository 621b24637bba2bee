//! `switchbay key`: API keys, issued, listed, rotated and revoked.

use std::time::SystemTime;

use clap::{Args, Subcommand};
use time::OffsetDateTime;

use super::CommandFailure;
use super::place::{CommonArguments, cell};
use crate::records::api_key::ALL_SCOPES;
use crate::transport::operator::endpoint::{EndpointRequest, JsonBody};
use crate::transport::operator::keys;
use crate::transport::operator::keys::{IssuedKey, KeyRequest, KeyView};
use crate::transport::operator::request::Timestamp;
use crate::transport::operator::routes::{IssueKey, ListKeys, RecordPath, RevokeKey, RotateKey};

#[derive(Subcommand)]
pub(super) enum KeyCommand {
    /// Issue a key and show it; it is shown only once
    Issue(Issue),
    /// List all keys
    List(CommonArguments),
    /// Issue a key with the settings of an existing one; revoke that one and cancel its jobs
    Rotate(KeyArgument),
    /// Revoke a key permanently and cancel its jobs
    Revoke(KeyArgument),
}

#[derive(Args)]
pub(super) struct Issue {
    #[command(flatten)]
    common: CommonArguments,
    /// What the key is for
    #[arg(long)]
    label: String,
    /// A scope that the key carries; may be repeated
    #[arg(
        long = "scope",
        value_name = "SCOPE",
        required_unless_present = "all_scopes",
        conflicts_with = "all_scopes"
    )]
    scopes: Vec<String>,
    /// Carry every scope, including those of future plugins
    #[arg(long)]
    all_scopes: bool,
    /// The account that pays: makes it a self-service key
    #[arg(long, value_name = "ID")]
    account: Option<String>,
    /// Calls per minute, for an administrator key [default: no limit]
    #[arg(long, value_name = "CALLS", conflicts_with = "account")]
    per_minute: Option<u32>,
    /// Calls per calendar month, for an administrator key [default: no limit]
    #[arg(long, value_name = "CALLS", conflicts_with = "account")]
    per_month: Option<u64>,
    /// Calls per second, for a self-service key [default: only its account's limit]
    #[arg(long, value_name = "CALLS", requires = "account")]
    per_second: Option<u32>,
    /// Calls per minute of one operation, such as web-data.scrape=600, in place of the operation's own limit; may be repeated
    #[arg(long = "window", value_name = "PLUGIN.OPERATION=CALLS", value_parser = window)]
    windows: Vec<(String, u32)>,
    /// When the key expires, such as 2027-01-31T00:00:00Z [default: never]
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
}

#[derive(Args)]
pub(super) struct KeyArgument {
    #[command(flatten)]
    common: CommonArguments,
    /// The key's id, as `key list` shows it
    id: String,
}

pub(super) async fn run(command: KeyCommand) -> Result<(), CommandFailure> {
    match command {
        KeyCommand::Issue(arguments) => issue(arguments).await,
        KeyCommand::List(common) => list(&common).await,
        KeyCommand::Rotate(arguments) => rotate(arguments).await,
        KeyCommand::Revoke(arguments) => revoke(arguments).await,
    }
}

async fn issue(arguments: Issue) -> Result<(), CommandFailure> {
    let Issue {
        common,
        label,
        scopes,
        all_scopes,
        account,
        per_minute,
        per_month,
        per_second,
        windows,
        expires,
    } = arguments;
    let scopes = if all_scopes {
        vec![ALL_SCOPES.to_owned()]
    } else {
        scopes
    };
    let windows = Some(windows.into_iter().collect());
    let key = KeyRequest {
        label,
        scopes,
        account,
        per_minute,
        per_month,
        per_second,
        windows,
        expires_at: expires.map(Timestamp::written),
    };
    let request = EndpointRequest::<IssueKey>::default().with(JsonBody(key));
    let issued = common.add(request, async |store, request| {
        keys::issue(store, &request.body.0, SystemTime::now()).await
    });
    show_once(&common, &issued.await?);
    Ok(())
}

async fn rotate(arguments: KeyArgument) -> Result<(), CommandFailure> {
    let KeyArgument { common, id } = arguments;
    let request = EndpointRequest::<RotateKey>::at(RecordPath { id });
    let issued = common.ask(request, async |store, request| {
        keys::rotate(store, &request.path.id, SystemTime::now()).await
    });
    show_once(&common, &issued.await?);
    Ok(())
}

fn show_once(common: &CommonArguments, issued: &IssuedKey) {
    common.show(issued, || {
        say!("{}", issued.key);
        say!("id {}. The key is shown only this once.", issued.view.id);
    });
}

async fn list(common: &CommonArguments) -> Result<(), CommandFailure> {
    let request = EndpointRequest::<ListKeys>::default();
    let listed = common.ask(request, async |store, _| keys::list(store).await);
    let listed = listed.await?;
    common.show(&listed, || {
        say!(
            "{:36}  {:12}  {:10}  {:9}  {:20}  SCOPES",
            "ID",
            "KEY",
            "PER MINUTE",
            "STATE",
            "LABEL"
        );
        listed.keys.iter().for_each(line);
    });
    Ok(())
}

fn line(key: &KeyView) {
    let state = match (&key.revoked_at, &key.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(expiry)) if has_passed(expiry) => "expired",
        (None, Some(_)) => "expires",
        (None, None) => "active",
    };
    let (id, display, label) = (&key.id, &key.display, &key.label);
    let (per_minute, scopes) = (cell(key.per_minute), key.scopes.join(" "));
    say!("{id:36}  {display:12}  {per_minute:>10}  {state:9}  {label:20}  {scopes}");
}

async fn revoke(arguments: KeyArgument) -> Result<(), CommandFailure> {
    let KeyArgument { common, id } = arguments;
    let request = EndpointRequest::<RevokeKey>::at(RecordPath { id });
    let revoked = common.ask(request, async |store, request| {
        keys::revoke(store, &request.path.id, SystemTime::now()).await
    });
    let revoked = revoked.await?;
    let (id, label) = (&revoked.id, &revoked.label);
    common.show(&revoked, || say!("revoked {id} ({label})"));
    Ok(())
}

fn window(text: &str) -> Result<(String, u32), String> {
    let parts = text
        .split_once('=')
        .and_then(|(operation, calls)| Some((operation.to_owned(), calls.parse().ok()?)));
    parts.ok_or_else(|| "write PLUGIN.OPERATION=CALLS, such as web-data.scrape=600".to_owned())
}

fn has_passed(expiry: &Timestamp) -> bool {
    expiry
        .read()
        .is_some_and(|expiry| expiry <= OffsetDateTime::now_utc())
}
