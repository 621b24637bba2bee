//! The command line: arguments to a command, a command to one line on failure and an exit code.
//!
//! Exit codes: 0 done, 1 failed with one line that says what to do, 2 wrong arguments, 3 something waits for the operator's
//! approval, 4 there is no such plugin, revision or key, 5 it does not fit what is so now, 6 no server runs.

#[macro_use]
mod print;

mod account;
mod build;
mod client;
mod compile;
mod data;
mod develop;
mod document;
mod fetch;
mod key;
mod place;
mod plugin;
mod start;
mod table;
mod usage;
mod watcher;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use self::client::ClientError;
use crate::config::Flags;
use crate::contract::error::Code;
use crate::transport::operator::request::RequestError;

#[derive(Parser)]
#[command(
    name = "switchbay",
    version,
    about = "Serves a developer API in which every feature is a WebAssembly component"
)]
struct CliArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the plugins, serve them, and reload each when its source changes
    Dev(develop::DevelopArguments),
    /// Serve prebuilt plugins
    Serve {
        #[command(flatten)]
        flags: Flags,
    },
    /// Build the components of all plugins whose source is a crate folder
    Build(develop::BuildArguments),
    /// Issue, list, rotate and revoke API keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Stage, compare, approve, activate, roll back and disable plugins of a running server
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Show whether everything is serving and what is waiting for you
    Status(place::CommonArguments),
    /// Open accounts for self-service keys and set what they may spend
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// Print a month's calls and credits by key, account and operation
    Usage(usage::UsageArguments),
    /// Fetch free IP databases
    #[command(subcommand)]
    Data(data::DataCommand),
    /// Check the balances of credits against their records
    Audit(place::CommonArguments),
    /// Print a reference page of the documentation
    #[command(hide = true)]
    Document { page: document::ReferencePage },
    /// Compile the component on standard input; for use by a server only
    #[command(hide = true)]
    CompileComponent(compile::CompileArguments),
}

/// Runs the command that the process's arguments name.
pub fn run() -> ExitCode {
    let CliArguments { command } = CliArguments::parse();
    match command {
        Command::Dev(arguments) => finish(develop::dev(arguments)),
        Command::Serve { flags } => finish(start::serve(flags)),
        Command::Build(arguments) => finish(develop::build(arguments)),
        Command::Key(command) => finish(key::run(command)),
        Command::Plugin(command) => finish(plugin::run(command)),
        Command::Status(common) => finish(async move { plugin::status(&common).await }),
        Command::Account(command) => finish(account::run(command)),
        Command::Usage(arguments) => finish(usage::usage(arguments)),
        Command::Data(command) => finish(data::run(command)),
        Command::Audit(common) => finish(usage::audit(common)),
        Command::Document { page } => {
            document::print(page, &CliArguments::command());
            ExitCode::SUCCESS
        }
        // Without threads, whose stacks would count against its limit.
        Command::CompileComponent(arguments) => compile::compile_component(&arguments),
    }
}

fn finish(work: impl Future<Output = Result<(), CommandFailure>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("cannot start: {error}")),
    };
    match runtime.block_on(work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandFailure { code, message }) => {
            failed(&message);
            ExitCode::from(code)
        }
    }
}

/// Any command's failure, already in words, with its exit code.
#[derive(Debug)]
struct CommandFailure {
    code: u8,
    message: String,
}

impl CommandFailure {
    fn of(message: impl Into<String>) -> Self {
        Self::with_code(1, message)
    }

    fn waits(message: impl Into<String>) -> Self {
        Self::with_code(3, message)
    }

    fn not_found(message: impl Into<String>) -> Self {
        Self::with_code(4, message)
    }

    fn with_code(code: u8, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }
}

impl<E: std::error::Error + 'static> From<E> for CommandFailure {
    fn from(error: E) -> Self {
        let source: &dyn std::error::Error = &error;
        if matches!(source.downcast_ref(), Some(RequestError::Unknown { .. })) {
            return Self::not_found(error.to_string());
        }
        let code = match source.downcast_ref() {
            Some(ClientError::Refused { code, .. }) if code == Code::NotFound.name() => 4,
            Some(ClientError::Refused { code, .. }) if code == Code::Conflict.name() => 5,
            Some(ClientError::File { .. } | ClientError::Unreachable { .. }) => 6,
            Some(ClientError::Refused { .. } | ClientError::Transport(_)) | None => 1,
        };
        Self::with_code(code, error.to_string())
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the one line that says why a command failed"
)]
fn failed(message: &str) -> ExitCode {
    eprintln!("switchbay: {}", one_line(message));
    ExitCode::FAILURE
}

/// What a library says may have several lines; what a guest says may forge one, or hold what a terminal obeys.
fn one_line(message: &str) -> String {
    let lines: Vec<&str> = message
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    printable(&lines.join(" "))
}

/// A text whose control characters a terminal shows and does not obey.
fn printable(text: &str) -> String {
    let escaped = |character: char| {
        if character.is_control() {
            character.escape_default().to_string()
        } else {
            character.to_string()
        }
    };
    text.chars().map(escaped).collect()
}
