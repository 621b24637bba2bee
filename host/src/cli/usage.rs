//! `switchbay usage` and `switchbay audit`: what was used, and whether the balances are what their records say.

use std::time::SystemTime;

use clap::{Args, ValueEnum};
use http::Method;
use serde_json::Value;

use super::CommandFailure;
use super::client;
use super::client::Payload;
use super::place::{CommonArguments, RecordsPlace, number, text};
use super::print::print_text;
use crate::stores::Store;
use crate::transport::operator::usage;
use crate::transport::operator::usage::UsageRequest;

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
    let request = UsageRequest { month, account };
    let used = match common.place().await? {
        RecordsPlace::Store(store) => usage::usage(&store, &request, SystemTime::now()).await?,
        RecordsPlace::Server(data) => usage::MonthUsage::read(
            &client::call(&data, Method::GET, &request.path(), Payload::Nothing).await?,
        ),
    };
    match (common.json, format) {
        (true, _) => say!("{:#}", used.json()),
        (false, UsageFormat::Csv) => print_text(format_args!("{}", used.csv())),
        (false, UsageFormat::Table) => table(&used.json()),
    }
    Ok(())
}

fn table(used: &Value) {
    say!(
        "{:36}  {:36}  {:28}  {:>10}  {:>10}",
        "ACCOUNT",
        "KEY",
        "OPERATION",
        "CALLS",
        "CREDITS"
    );
    for row in used["rows"].as_array().into_iter().flatten() {
        let account = row["account"].as_str().unwrap_or("-");
        let (key, operation) = (text(row, "key"), text(row, "operation"));
        say!(
            "{account:36}  {key:36}  {operation:28}  {:>10}  {:>10}",
            number(row, "calls"),
            number(row, "credits")
        );
    }
}

pub(super) async fn audit(common: CommonArguments) -> Result<(), CommandFailure> {
    let audit = async |store: &Store| usage::audit(store).await;
    let found = common.ask(Method::GET, usage::AUDIT, Payload::Nothing, audit);
    let found = found.await?;
    let reservations = number(&found, "reservations");
    common.show(&found, || {
        let told = found["told"].as_array().into_iter().flatten();
        for line in told.filter_map(Value::as_str) {
            say!("{line}");
        }
        let pending = number(&found, "pending");
        say!("{reservations} reservations, {pending} of them open");
    });
    match found["disagreements"].as_u64() {
        Some(0) => Ok(()),
        Some(_) | None => Err(CommandFailure::of(format!(
            "{} balances or lists disagree with the {reservations} records",
            number(&found, "disagreements")
        ))),
    }
}
