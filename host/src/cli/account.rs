//! `switchbay account`: who pays for self-service keys, and what it may spend.
#![expect(
    clippy::print_stdout,
    reason = "what these commands are for is printed"
)]

use std::time::SystemTime;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::CommandFailure;
use super::client;
use super::client::Payload;
use super::place::{CommonArguments, RecordsPlace, number, path, text};
use crate::transport::operator::accounts;
use crate::transport::operator::accounts::{AccountRequest, EntitlementRequest};

#[derive(Subcommand)]
pub(super) enum AccountCommand {
    /// Open an account
    Open(Open),
    /// List all accounts
    List(CommonArguments),
    /// Show one account
    Show(AccountArgument),
    /// Give an account a plan, replacing the one it has
    Entitle(Entitle),
    /// Take an account's plan away: its keys are refused and their jobs are cancelled
    Withdraw(AccountArgument),
}

#[derive(Args)]
pub(super) struct Open {
    #[command(flatten)]
    common: CommonArguments,
    /// Who the account belongs to
    #[arg(long)]
    label: String,
    /// Calls per second of all its keys together [default: no limit]
    #[arg(long, value_name = "CALLS")]
    per_second: Option<u32>,
    /// Concurrent calls of all its keys together [default: as configured]
    #[arg(long, value_name = "CALLS")]
    concurrency: Option<u32>,
    /// The name of its plan [default: none; its keys are refused until it has one]
    #[arg(long, requires = "credits")]
    plan: Option<String>,
    /// Credits per calendar month
    #[arg(long, value_name = "CREDITS", requires = "plan")]
    credits: Option<u64>,
}

#[derive(Args)]
pub(super) struct AccountArgument {
    #[command(flatten)]
    common: CommonArguments,
    /// The account's id, as `account list` shows it
    id: String,
}

#[derive(Args)]
pub(super) struct Entitle {
    #[command(flatten)]
    named: AccountArgument,
    /// The plan's name
    #[arg(long)]
    plan: String,
    /// Credits per calendar month
    #[arg(long, value_name = "CREDITS")]
    credits: u64,
    /// When the plan ends, such as 2027-01-31T00:00:00Z [default: when it is withdrawn]
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
}

pub(super) async fn run(command: AccountCommand) -> Result<(), CommandFailure> {
    let (common, account) = match command {
        AccountCommand::Open(arguments) => open(arguments).await?,
        AccountCommand::List(common) => return list(&common).await,
        AccountCommand::Show(AccountArgument { common, id }) => {
            let shown = match common.place()? {
                RecordsPlace::Store(store) => accounts::show(&store, &id, SystemTime::now())?,
                RecordsPlace::Server(data) => {
                    client::call(
                        &data,
                        Method::GET,
                        &path(accounts::PATH, &id, ""),
                        Payload::Nothing,
                    )
                    .await?
                }
            };
            (common, shown)
        }
        AccountCommand::Entitle(Entitle {
            named: AccountArgument { common, id },
            plan,
            credits,
            expires,
        }) => {
            let request = EntitlementRequest {
                plan,
                credits_per_month: credits,
                expires_at: expires,
            };
            let entitled = entitle(&common, &id, Some(&request)).await?;
            (common, entitled)
        }
        AccountCommand::Withdraw(AccountArgument { common, id }) => {
            let withdrawn = entitle(&common, &id, None).await?;
            (common, withdrawn)
        }
    };
    if common.json {
        println!("{account:#}");
    } else {
        line(&account);
    }
    if let (false, Some(credits)) = (common.json, account.get("credits")) {
        let (spent, reserved) = (number(credits, "spent"), number(credits, "reserved"));
        println!(
            "{}: {spent} credits spent, {reserved} reserved",
            text(credits, "month")
        );
    }
    Ok(())
}

async fn open(arguments: Open) -> Result<(CommonArguments, Value), CommandFailure> {
    let Open {
        common,
        label,
        per_second,
        concurrency,
        plan,
        credits,
    } = arguments;
    let entitlement = plan
        .zip(credits)
        .map(|(plan, credits_per_month)| EntitlementRequest {
            plan,
            credits_per_month,
            expires_at: None,
        });
    let request = AccountRequest {
        label,
        per_second,
        concurrency,
        entitlement,
    };
    let opened = match common.place()? {
        RecordsPlace::Store(store) => accounts::open(&store, &request, SystemTime::now()).await?,
        RecordsPlace::Server(data) => {
            client::call(
                &data,
                Method::POST,
                accounts::PATH,
                Payload::Json(&json!(request)),
            )
            .await?
        }
    };
    Ok((common, opened))
}

async fn entitle(
    common: &CommonArguments,
    id: &str,
    request: Option<&EntitlementRequest>,
) -> Result<Value, CommandFailure> {
    match common.place()? {
        RecordsPlace::Store(store) => {
            Ok(accounts::entitle(&store, id, request, SystemTime::now()).await?)
        }
        RecordsPlace::Server(data) => {
            let method = if request.is_some() {
                Method::PUT
            } else {
                Method::DELETE
            };
            let body = request.map(|request| json!(request));
            let payload = body.as_ref().map_or(Payload::Nothing, Payload::Json);
            Ok(client::call(
                &data,
                method,
                &path(accounts::PATH, id, "/entitlement"),
                payload,
            )
            .await?)
        }
    }
}

async fn list(common: &CommonArguments) -> Result<(), CommandFailure> {
    let listed = match common.place()? {
        RecordsPlace::Store(store) => accounts::list(&store)?,
        RecordsPlace::Server(data) => {
            client::call(&data, Method::GET, accounts::PATH, Payload::Nothing).await?
        }
    };
    if common.json {
        println!("{listed:#}");
        return Ok(());
    }
    println!(
        "{:36}  {:12}  {:>12}  {:>10}  LABEL",
        "ID", "PLAN", "CREDITS", "PER SECOND"
    );
    listed["accounts"]
        .as_array()
        .into_iter()
        .flatten()
        .for_each(line);
    Ok(())
}

fn line(account: &Value) {
    let entitlement = &account["entitlement"];
    let plan = entitlement["plan"].as_str().unwrap_or("-");
    let (credits, per_second) = (
        number(entitlement, "creditsPerMonth"),
        number(account, "perSecond"),
    );
    println!(
        "{:36}  {plan:12}  {credits:>12}  {per_second:>10}  {}",
        text(account, "id"),
        text(account, "label")
    );
}
