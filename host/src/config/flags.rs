//! The flags that say where things are, each with its variable and its default.
//!
//! Must not know what the file says, nor whether a flag is of use.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The flags that `dev` and `serve` share.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Address of the public listener
    #[arg(long, env = "SWITCHBAY_LISTEN", value_name = "ADDRESS")]
    #[arg(default_value = "127.0.0.1:7070")]
    pub listen: SocketAddr,
    /// Address of the operator's listener; keep it private
    #[arg(long, env = "SWITCHBAY_OPERATOR_LISTEN", value_name = "ADDRESS")]
    #[arg(default_value = "127.0.0.1:7071")]
    pub operator_listen: SocketAddr,
    /// The URL that clients reach the public listener by [default: http://<listen address>]
    #[arg(long, env = "SWITCHBAY_BASE_URL", value_name = "URL")]
    pub base_url: Option<String>,
    /// Folder for the store, the compiled code and the operator's token [default: .switchbay beside the manifest]
    #[arg(long, env = "SWITCHBAY_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The plugin manifest [default: plugin-manifest.toml in this folder or one above]
    #[arg(long, env = "SWITCHBAY_MANIFEST", value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// The configuration file [default: none; every setting has a default]
    #[arg(long, env = "SWITCHBAY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Serve the last revisions known to be good and ignore changes to the manifest
    #[arg(long, env = "SWITCHBAY_SAFE_MODE")]
    pub safe_mode: bool,
    /// Format of the log on standard error
    #[arg(long, env = "SWITCHBAY_LOG_FORMAT", value_name = "FORMAT")]
    #[arg(value_enum, default_value = "text")]
    pub log_format: LogFormat,
    /// Which lines to log, such as `info` or `switchbay=debug`
    #[arg(long, env = "SWITCHBAY_LOG", value_name = "FILTER")]
    #[arg(default_value = "info")]
    pub log: String,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}
