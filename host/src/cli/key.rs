//! `switchbay key`: API keys, issued, listed, rotated and revoked.

use std::time::SystemTime;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::CommandFailure;
use super::client::Payload;
use super::place::{CommonArguments, number, path, text};
use crate::stores::Store;
use crate::transport::operator::keys;
use crate::transport::operator::keys::KeyRequest;

const KEYS: &str = "/admin/v1/keys";

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
        KeyCommand::Rotate(arguments) => rotate(&arguments).await,
        KeyCommand::Revoke(arguments) => revoke(&arguments).await,
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
        vec!["*".to_owned()]
    } else {
        scopes
    };
    let windows = Some(windows.into_iter().collect());
    let request = KeyRequest {
        label,
        scopes,
        account,
        per_minute,
        per_month,
        per_second,
        windows,
        expires_at: expires,
    };
    let issue = async |store: &Store| keys::issue(store, &request, SystemTime::now()).await;
    let payload = Payload::Json(json!(request));
    let issued = common.ask(Method::POST, KEYS, payload, issue).await?;
    show_once(&common, &issued);
    Ok(())
}

async fn rotate(arguments: &KeyArgument) -> Result<(), CommandFailure> {
    let KeyArgument { common, id } = arguments;
    let rotate = async |store: &Store| keys::rotate(store, id, SystemTime::now()).await;
    let path = path(KEYS, id, "/rotate");
    let issued = common.ask(Method::POST, &path, Payload::Nothing, rotate);
    show_once(common, &issued.await?);
    Ok(())
}

fn show_once(common: &CommonArguments, issued: &Value) {
    common.show(issued, || {
        let id = text(issued, "id");
        say!("{}", text(issued, "key"));
        say!("id {id}. The key is shown only this once.");
    });
}

async fn list(common: &CommonArguments) -> Result<(), CommandFailure> {
    let list = async |store: &Store| keys::list(store).await;
    let listed = common
        .ask(Method::GET, KEYS, Payload::Nothing, list)
        .await?;
    if common.json {
        say!("{listed:#}");
        return Ok(());
    }
    say!(
        "{:36}  {:12}  {:10}  {:9}  {:20}  SCOPES",
        "ID",
        "KEY",
        "PER MINUTE",
        "STATE",
        "LABEL"
    );
    for key in listed["keys"].as_array().into_iter().flatten() {
        let per_minute = number(key, "perMinute");
        let state = match (&key["revokedAt"], &key["expiresAt"]) {
            (Value::String(_), _) => "revoked",
            (_, Value::String(expiry)) if has_passed(expiry) => "expired",
            (_, Value::String(_)) => "expires",
            _ => "active",
        };
        let scopes = key["scopes"].as_array().into_iter().flatten();
        let scopes: Vec<&str> = scopes.filter_map(Value::as_str).collect();
        let (id, display, label) = (text(key, "id"), text(key, "display"), text(key, "label"));
        say!(
            "{id:36}  {display:12}  {per_minute:>10}  {state:9}  {label:20}  {}",
            scopes.join(" ")
        );
    }
    Ok(())
}

async fn revoke(arguments: &KeyArgument) -> Result<(), CommandFailure> {
    let KeyArgument { common, id } = arguments;
    let revoke = async |store: &Store| keys::revoke(store, id, SystemTime::now()).await;
    let path = path(KEYS, id, "");
    let revoked = common.ask(Method::DELETE, &path, Payload::Nothing, revoke);
    let revoked = revoked.await?;
    let (id, label) = (text(&revoked, "id"), text(&revoked, "label"));
    common.show(&revoked, || say!("revoked {id} ({label})"));
    Ok(())
}

fn window(text: &str) -> Result<(String, u32), String> {
    let parts = text
        .split_once('=')
        .and_then(|(operation, calls)| Some((operation.to_owned(), calls.parse().ok()?)));
    parts.ok_or_else(|| "write PLUGIN.OPERATION=CALLS, such as web-data.scrape=600".to_owned())
}

fn has_passed(expiry: &str) -> bool {
    OffsetDateTime::parse(expiry, &Rfc3339).is_ok_and(|expiry| expiry <= OffsetDateTime::now_utc())
}
