//! `switchbay account`: who pays for self-service keys, and what it may spend.

use std::time::SystemTime;

use clap::{Args, Subcommand};

use super::CommandFailure;
use super::place::{CommonArguments, cell};
use crate::transport::operator::accounts;
use crate::transport::operator::accounts::{AccountRequest, AccountView, EntitlementTerms};
use crate::transport::operator::endpoint::{EndpointRequest, JsonBody};
use crate::transport::operator::request::Timestamp;
use crate::transport::operator::routes::{
    EntitleAccount, ListAccounts, OpenAccount, RecordPath, ShowAccount, WithdrawEntitlement,
};

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
        AccountCommand::Show(arguments) => show(arguments).await?,
        AccountCommand::Entitle(arguments) => entitle(arguments).await?,
        AccountCommand::Withdraw(arguments) => withdraw(arguments).await?,
    };
    common.show(&account, || {
        line(&account);
        if let Some(credits) = &account.credits {
            let (spent, reserved) = (credits.spent, credits.reserved);
            let month = &credits.month;
            say!("{month}: {spent} credits spent, {reserved} reserved");
        }
    });
    Ok(())
}

async fn open(arguments: Open) -> Result<(CommonArguments, AccountView), CommandFailure> {
    let Open {
        common,
        label,
        per_second,
        concurrency,
        plan,
        credits,
    } = arguments;
    let terms = |(plan, credits_per_month)| EntitlementTerms {
        plan,
        credits_per_month,
        expires_at: None,
    };
    let account = AccountRequest {
        label,
        per_second,
        concurrency,
        entitlement: plan.zip(credits).map(terms),
    };
    let request = EndpointRequest::<OpenAccount>::default().with(JsonBody(account));
    let opened = common.add(request, async |store, request| {
        accounts::open(store, &request.body.0, SystemTime::now()).await
    });
    let opened = opened.await?;
    Ok((common, opened))
}

async fn show(
    arguments: AccountArgument,
) -> Result<(CommonArguments, AccountView), CommandFailure> {
    let AccountArgument { common, id } = arguments;
    let request = EndpointRequest::<ShowAccount>::at(RecordPath { id });
    let shown = common.ask(request, async |store, request| {
        accounts::show(store, &request.path.id, SystemTime::now()).await
    });
    let shown = shown.await?;
    Ok((common, shown))
}

async fn entitle(arguments: Entitle) -> Result<(CommonArguments, AccountView), CommandFailure> {
    let Entitle {
        named: AccountArgument { common, id },
        plan,
        credits,
        expires,
    } = arguments;
    let terms = EntitlementTerms {
        plan,
        credits_per_month: credits,
        expires_at: expires.map(Timestamp::written),
    };
    let request = EndpointRequest::<EntitleAccount>::at(RecordPath { id }).with(JsonBody(terms));
    let entitled = common.ask(request, async |store, request| {
        let (id, terms) = (&request.path.id, &request.body.0);
        accounts::entitle(store, id, Some(terms), SystemTime::now()).await
    });
    let entitled = entitled.await?;
    Ok((common, entitled))
}

async fn withdraw(
    arguments: AccountArgument,
) -> Result<(CommonArguments, AccountView), CommandFailure> {
    let AccountArgument { common, id } = arguments;
    let request = EndpointRequest::<WithdrawEntitlement>::at(RecordPath { id });
    let withdrawn = common.ask(request, async |store, request| {
        accounts::entitle(store, &request.path.id, None, SystemTime::now()).await
    });
    let withdrawn = withdrawn.await?;
    Ok((common, withdrawn))
}

async fn list(common: &CommonArguments) -> Result<(), CommandFailure> {
    let request = EndpointRequest::<ListAccounts>::default();
    let listed = common.ask(request, async |store, _| accounts::list(store).await);
    let listed = listed.await?;
    common.show(&listed, || {
        say!(
            "{:36}  {:12}  {:>12}  {:>10}  LABEL",
            "ID",
            "PLAN",
            "CREDITS",
            "PER SECOND"
        );
        listed.accounts.iter().for_each(line);
    });
    Ok(())
}

fn line(account: &AccountView) {
    let entitlement = account.entitlement.as_ref();
    let plan = entitlement.map_or("-", |terms| &terms.plan);
    let credits = cell(entitlement.map(|terms| terms.credits_per_month));
    let (id, label) = (&account.id, &account.label);
    let per_second = cell(account.per_second);
    say!("{id:36}  {plan:12}  {credits:>12}  {per_second:>10}  {label}");
}
