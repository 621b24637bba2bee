//! `switchbay key`: through the operator's API while a server runs, on the store otherwise, never both.
#![expect(clippy::print_stdout, reason = "what these commands are for is printed")]

use std::path::PathBuf;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Failure;
use crate::operator::client;
use crate::operator::keys::{self, KeyRequest};
use crate::stores::{Store, StoreError};

#[derive(Subcommand)]
pub(super) enum Command {
    /// Issue a key and show it, once
    Issue(Issue),
    /// List all keys
    List(Common),
    /// Revoke a key for ever
    Revoke(Revoke),
}

#[derive(Args)]
pub(super) struct Common {
    /// The data folder [default: .switchbay beside the plugin manifest]
    #[arg(long, env = "SWITCHBAY_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct Issue {
    #[command(flatten)]
    common: Common,
    /// What the key is for
    #[arg(long)]
    label: String,
    /// A scope that the key carries; repeat for more
    #[arg(long = "scope", value_name = "SCOPE", required_unless_present = "all_scopes", conflicts_with = "all_scopes")]
    scopes: Vec<String>,
    /// Carry every scope, those of future plugins too
    #[arg(long)]
    all_scopes: bool,
    /// Calls a minute [default: no limit]
    #[arg(long, value_name = "CALLS")]
    per_minute: Option<u32>,
    /// When it ends, such as 2027-01-31T00:00:00Z [default: never]
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
}

#[derive(Args)]
pub(super) struct Revoke {
    #[command(flatten)]
    common: Common,
    /// The key's id, as `key list` shows it
    id: String,
}

/// Where the keys are.
enum Place {
    Store(Store),
    Server(PathBuf),
}

pub(super) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Issue(arguments) => issue(arguments).await,
        Command::List(common) => list(&common).await,
        Command::Revoke(arguments) => revoke(&arguments).await,
    }
}

async fn issue(arguments: Issue) -> Result<(), Failure> {
    let Issue { common, label, scopes, all_scopes, per_minute, expires } = arguments;
    let scopes = if all_scopes { vec!["*".to_owned()] } else { scopes };
    let request = KeyRequest { label, scopes, per_minute, expires_at: expires };
    let issued = match place(&common)? {
        Place::Store(store) => keys::issue(&store, &request, SystemTime::now()).await?,
        Place::Server(data) => {
            let body = json!({
                "label": request.label,
                "scopes": request.scopes,
                "perMinute": request.per_minute,
                "expiresAt": request.expires_at,
            });
            client::call(&data, Method::POST, "/admin/v1/keys", Some(&body)).await?
        }
    };
    match common.json {
        true => println!("{issued:#}"),
        false => {
            println!("{}", text(&issued, "key"));
            println!("id {}. This is the only time that the key is shown.", text(&issued, "id"));
        }
    }
    Ok(())
}

async fn list(common: &Common) -> Result<(), Failure> {
    let listed = match place(common)? {
        Place::Store(store) => keys::list(&store)?,
        Place::Server(data) => client::call(&data, Method::GET, "/admin/v1/keys", None).await?,
    };
    if common.json {
        println!("{listed:#}");
        return Ok(());
    }
    println!("{:36}  {:12}  {:10}  {:9}  {:20}  SCOPES", "ID", "KEY", "PER MINUTE", "STATE", "LABEL");
    for key in listed["keys"].as_array().into_iter().flatten() {
        let per_minute = key["perMinute"].as_u64().map_or("-".to_owned(), |limit| limit.to_string());
        let state = match (&key["revokedAt"], &key["expiresAt"]) {
            (Value::String(_), _) => "revoked",
            (_, Value::String(expiry)) if has_passed(expiry) => "expired",
            (_, Value::String(_)) => "expires",
            _ => "active",
        };
        let scopes: Vec<&str> = key["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let (id, display, label) = (text(key, "id"), text(key, "display"), text(key, "label"));
        println!("{id:36}  {display:12}  {per_minute:>10}  {state:9}  {label:20}  {}", scopes.join(" "));
    }
    Ok(())
}

async fn revoke(arguments: &Revoke) -> Result<(), Failure> {
    let id = &arguments.id;
    let revoked = match place(&arguments.common)? {
        Place::Store(store) => keys::revoke(&store, id, SystemTime::now()).await?,
        Place::Server(data) => {
            let path = format!("/admin/v1/keys/{}", utf8_percent_encode(id, NON_ALPHANUMERIC));
            client::call(&data, Method::DELETE, &path, None).await?
        }
    };
    match arguments.common.json {
        true => println!("{revoked:#}"),
        false => println!("revoked {} ({})", text(&revoked, "id"), text(&revoked, "label")),
    }
    Ok(())
}

fn has_passed(expiry: &str) -> bool {
    OffsetDateTime::parse(expiry, &Rfc3339).is_ok_and(|expiry| expiry <= OffsetDateTime::now_utc())
}

fn place(common: &Common) -> Result<Place, Failure> {
    let data = match &common.data {
        Some(data) => data.clone(),
        None => {
            let manifest = crate::config::find_manifest()?;
            manifest.with_file_name(".switchbay")
        }
    };
    match Store::open(&data) {
        Ok(store) => Ok(Place::Store(store)),
        Err(StoreError::InUse { .. }) => Ok(Place::Server(data)),
        Err(error) => Err(error.into()),
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}
