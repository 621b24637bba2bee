//! `switchbay account`: who pays for self-service keys, and what it may spend.

use std::time::SystemTime;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::CommandFailure;
use super::client::Payload;
use super::place::{CommonArguments, number, path, text};
use crate::stores::Store;
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
            let path = path(accounts::PATH, &id, "");
            let show = async |store: &Store| accounts::show(store, &id, SystemTime::now()).await;
            let shown = common.ask(Method::GET, &path, Payload::Nothing, show);
            let shown = shown.await?;
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
    common.show(&account, || {
        line(&account);
        if let Some(credits) = account.get("credits") {
            let (spent, reserved) = (number(credits, "spent"), number(credits, "reserved"));
            let month = text(credits, "month");
            say!("{month}: {spent} credits spent, {reserved} reserved");
        }
    });
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
    let open = async |store: &Store| accounts::open(store, &request, SystemTime::now()).await;
    let payload = Payload::Json(json!(request));
    let opened = common.ask(Method::POST, accounts::PATH, payload, open);
    let opened = opened.await?;
    Ok((common, opened))
}

async fn entitle(
    common: &CommonArguments,
    id: &str,
    request: Option<&EntitlementRequest>,
) -> Result<Value, CommandFailure> {
    let entitle =
        async |store: &Store| accounts::entitle(store, id, request, SystemTime::now()).await;
    let (method, payload) = match request {
        Some(request) => (Method::PUT, Payload::Json(json!(request))),
        None => (Method::DELETE, Payload::Nothing),
    };
    let path = path(accounts::PATH, id, "/entitlement");
    common.ask(method, &path, payload, entitle).await
}

async fn list(common: &CommonArguments) -> Result<(), CommandFailure> {
    let list = async |store: &Store| accounts::list(store).await;
    let listed = common.ask(Method::GET, accounts::PATH, Payload::Nothing, list);
    let listed = listed.await?;
    common.show(&listed, || {
        say!(
            "{:36}  {:12}  {:>12}  {:>10}  LABEL",
            "ID",
            "PLAN",
            "CREDITS",
            "PER SECOND"
        );
        let accounts = listed["accounts"].as_array();
        accounts.into_iter().flatten().for_each(line);
    });
    Ok(())
}

fn line(account: &Value) {
    let entitlement = &account["entitlement"];
    let plan = entitlement["plan"].as_str().unwrap_or("-");
    let (credits, per_second) = (
        number(entitlement, "creditsPerMonth"),
        number(account, "perSecond"),
    );
    say!(
        "{:36}  {plan:12}  {credits:>12}  {per_second:>10}  {}",
        text(account, "id"),
        text(account, "label")
    );
}
