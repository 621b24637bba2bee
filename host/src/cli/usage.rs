//! `switchbay usage` and `switchbay audit`: what was used, and whether the balances are what their records say.

use std::time::SystemTime;

use clap::{Args, ValueEnum};

use super::CommandFailure;
use super::place::{CommonArguments, cell};
use super::print::print_text;
use crate::transport::operator::endpoint::EndpointRequest;
use crate::transport::operator::routes::{AuditBalances, ShowUsage};
use crate::transport::operator::usage;
use crate::transport::operator::usage::{MonthUsage, UsageQuery};

#[derive(Args)]
pub(super) struct UsageArguments {
    #[command(flatten)]
    common: CommonArguments,
    /// The calendar month in UTC, such as 2026-11 [default: the current one]
    #[arg(long)]
    month: Option<String>,
    /// Only this account
    #[arg(long, value_name = "ID")]
    account: Option<String>,
    /// Format of the export; for JSON use --json
    #[arg(long, value_enum, default_value = "table", conflicts_with = "json")]
    format: UsageFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UsageFormat {
    /// Columns for people.
    Table,
    /// Comma-separated values with a header.
    Csv,
}

pub(super) async fn usage(arguments: UsageArguments) -> Result<(), CommandFailure> {
    let UsageArguments {
        common,
        month,
        account,
        format,
    } = arguments;
    let query = UsageQuery {
        month,
        account,
        ..UsageQuery::default()
    };
    let request = EndpointRequest::<ShowUsage> {
        query,
        ..EndpointRequest::default()
    };
    let used = common.ask(request, async |store, request| {
        usage::usage(store, request.query, SystemTime::now()).await
    });
    let used = used.await?;
    common.show(&used, || match format {
        UsageFormat::Csv => print_text(format_args!("{}", used.csv())),
        UsageFormat::Table => table(&used),
    });
    Ok(())
}

fn table(used: &MonthUsage) {
    say!(
        "{:36}  {:36}  {:28}  {:>10}  {:>10}",
        "ACCOUNT",
        "KEY",
        "OPERATION",
        "CALLS",
        "CREDITS"
    );
    for row in &used.rows {
        let account = cell(row.account.as_ref());
        let (key, operation) = (&row.key, &row.operation);
        let (calls, credits) = (row.calls, row.credits);
        say!("{account:36}  {key:36}  {operation:28}  {calls:>10}  {credits:>10}");
    }
}

pub(super) async fn audit(common: CommonArguments) -> Result<(), CommandFailure> {
    let request = EndpointRequest::<AuditBalances>::default();
    let found = common.ask(request, async |store, _| usage::audit(store).await);
    let found = found.await?;
    let reservations = found.reservations;
    common.show(&found, || {
        for line in &found.told {
            say!("{line}");
        }
        say!(
            "{reservations} reservations, {} of them open",
            found.pending
        );
    });
    match found.disagreements {
        0 => Ok(()),
        disagreements => Err(CommandFailure::of(format!(
            "{disagreements} balances or lists disagree with the {reservations} records"
        ))),
    }
}
