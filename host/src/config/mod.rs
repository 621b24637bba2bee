//! Settings: what was written (flags, `SWITCHBAY_*` variables, a TOML file) and what is meant ([`Config`]).
//!
//! Flags say where things are; the file says how much of everything. All of it is read and checked before a port is bound,
//! unknown keys are errors, and no other file reads the environment.

mod databases;
mod egress;
mod flags;
mod jobs;
mod limits;
mod oauth;
mod peers;
mod proxy;
mod resolvers;
mod shares;
mod written;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;

pub(crate) use self::databases::DatabaseSource;
use self::databases::databases;
pub(crate) use self::egress::EgressSettings;
pub(crate) use self::jobs::JobLimits;
pub(crate) use self::peers::PlaceLimits;
pub(crate) use self::proxy::ProxySettings;
pub(crate) use self::resolvers::{ClientSubnet, ResolverSettings};
pub(crate) use self::shares::TenantShares;
use self::written::WrittenConfig;
use crate::base::toml::MalformedToml;

pub use self::flags::{Flags, LogFormat};
pub use self::limits::{Compile, Transport};
pub use self::oauth::OAuthSettings;

/// What the configuration file may say, with what each setting means and its default, as a JSON Schema.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(WrittenConfig).to_value()
}

/// Settings that cannot be used. Each message names the setting, the rule and the value.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not there or not readable.
    #[error("cannot read the configuration file {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no TOML of the known form.
    #[error("the configuration file {path} is malformed: {source}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: MalformedToml,
    },
    /// A value is out of its bounds.
    #[error("`{name}` is {value}; it must be {rule}")]
    Value {
        /// The setting.
        name: &'static str,
        /// What was written.
        value: String,
        /// What is allowed.
        rule: String,
    },
    /// A setting has another name.
    #[error("`{name}` has moved to `{to}`: write it there")]
    Moved {
        /// As it was written.
        name: &'static str,
        /// Where it stands.
        to: &'static str,
    },
    /// No manifest was named and none was found.
    #[error(
        "there is no plugin-manifest.toml in {from} or a folder above it: name one with --manifest FILE"
    )]
    NoManifest {
        /// Where the search began.
        from: PathBuf,
    },
}

impl ConfigError {
    fn value(name: &'static str, value: impl Into<String>, rule: impl Into<String>) -> Self {
        let (value, rule) = (value.into(), rule.into());
        Self::Value { name, value, rule }
    }
}

/// What is meant.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address of the public listener.
    pub listen: SocketAddr,
    /// Address of the operator's listener.
    pub operator_listen: SocketAddr,
    /// Without a trailing slash; `None` is the bound address.
    pub base_url: Option<String>,
    /// Folder of the store, the compiled code and the operator's token.
    pub data: PathBuf,
    /// The plugin manifest.
    pub manifest: PathBuf,
    /// Whether to serve the last revisions that are known to be good.
    pub safe_mode: bool,
    /// How much there may be of connections, requests and answers, of each listener and of each address.
    pub places: PlaceLimits,
    /// Proxies whose word on a client's address counts.
    pub trusted_proxies: Vec<IpNet>,
    /// Plugin instances that may live at once.
    pub instances_max: u32,
    /// Origins beside our own that browsers may call `/mcp` from.
    pub mcp_origins: Vec<String>,
    /// The identity provider whose access tokens are taken, if any.
    pub oauth: Option<OAuthSettings>,
    /// Limits of connections.
    pub transport: Transport,
    /// Limits of compiling a component.
    pub compile: Compile,
    /// What self-service keys pay.
    pub credits: Credits,
    /// Pages that may call without a credential.
    pub first_party: FirstPartyConfig,
    /// How plugins reach the network.
    pub egress: EgressSettings,
    /// The same way for programs that run for them.
    pub(crate) proxy: ProxySettings,
    /// How many jobs there may be.
    pub(crate) jobs: JobLimits,
    /// What one tenant may have of each plugin.
    pub(crate) shares: TenantShares,
    /// The files of IP databases, by the databases' names in grants.
    pub(crate) ip_databases: BTreeMap<String, DatabaseSource>,
}

/// Pages that may call without a credential, as far as operations allow it.
#[derive(Clone, Debug)]
pub struct FirstPartyConfig {
    /// Their origins.
    pub origins: Vec<String>,
}

/// What self-service keys pay.
#[derive(Clone, Debug)]
pub struct Credits {
    /// Calls at once of an account that has no number of its own.
    pub concurrency: u32,
    /// Credits of a call by plugin and operation, in the place of what the plugin's description says.
    pub costs: BTreeMap<String, BTreeMap<String, u32>>,
}

impl Credits {
    /// The configured price of an operation.
    pub(crate) fn cost(&self, plugin: &str, operation: &str) -> Option<u32> {
        self.costs.get(plugin)?.get(operation).copied()
    }
}

impl Config {
    /// Reads the file that the flags name, and checks everything.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn read(flags: &Flags) -> Result<Self, ConfigError> {
        let written = match &flags.config {
            None => WrittenConfig::default(),
            Some(path) => read_file(path)?,
        };
        let manifest = match &flags.manifest {
            Some(path) => path.clone(),
            None => find_manifest()?,
        };
        let beside = manifest.parent().map(|folder| folder.join(".switchbay"));
        let data = flags
            .data
            .clone()
            .or(beside)
            .unwrap_or_else(|| PathBuf::from(".switchbay"));
        let (limits, concurrency) = (&written.limits, written.credits.concurrency);
        Ok(Self {
            listen: flags.listen,
            operator_listen: flags.operator_listen,
            base_url: flags.base_url.as_deref().map(base_url).transpose()?,
            data,
            manifest,
            safe_mode: flags.safe_mode,
            places: peers::places(limits, &written.peers)?,
            trusted_proxies: peers::trusted_proxies(
                &written.peers.trusted_proxies,
                written.first_party.trusted_proxies.as_ref(),
            )?,
            instances_max: within("limits.instances", limits.instances, 2, 100_000)?,
            mcp_origins: origins("mcp.origins", &written.mcp.origins)?,
            oauth: written.oauth.map(OAuthSettings::read).transpose()?,
            transport: Transport::read(limits)?,
            compile: Compile::read(limits)?,
            credits: Credits {
                concurrency: within("credits.concurrency", concurrency, 1, 100_000)?,
                costs: costs(written.credits.costs)?,
            },
            first_party: FirstPartyConfig {
                origins: origins("first_party.origins", &written.first_party.origins)?,
            },
            egress: EgressSettings::read(written.egress, written.dns)?,
            proxy: ProxySettings::read(&written.proxy)?,
            jobs: JobLimits::read(&written.jobs)?,
            shares: TenantShares::read(&written.shares)?,
            ip_databases: databases(written.ip_databases)?,
        })
    }
}

fn read_file(path: &Path) -> Result<WrittenConfig, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|error| ConfigError::Parse {
        path: path.to_owned(),
        source: MalformedToml::new(&text, &error),
    })
}

/// What the environment says of a secret that the manifest binds.
pub(crate) fn secret(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

/// What the environment says to npm.
pub(crate) struct Npm {
    /// The registry.
    pub(crate) registry: Option<String>,
    /// Where the user's settings are.
    pub(crate) home: Option<PathBuf>,
}

/// Read by those who use what npm uses.
pub(crate) fn npm() -> Npm {
    let written = ["npm_config_registry", "NPM_CONFIG_REGISTRY"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok());
    let registry = written.filter(|registry| !registry.is_empty());
    Npm {
        registry,
        home: std::env::var("HOME").ok().map(PathBuf::from),
    }
}

fn within<T: PartialOrd + std::fmt::Display + Copy>(
    name: &'static str,
    value: T,
    min: T,
    max: T,
) -> Result<T, ConfigError> {
    if value >= min && value <= max {
        Ok(value)
    } else {
        let rule = format!("from {min} to {max}");
        Err(ConfigError::value(name, value.to_string(), rule))
    }
}

fn costs(
    written: BTreeMap<String, BTreeMap<String, u32>>,
) -> Result<BTreeMap<String, BTreeMap<String, u32>>, ConfigError> {
    for cost in written.values().flat_map(BTreeMap::values) {
        within("credits.costs", *cost, 0, 1_000_000)?;
    }
    Ok(written)
}

fn time(name: &'static str, milliseconds: u64) -> Result<Duration, ConfigError> {
    within(name, milliseconds, 10, 3_600_000).map(Duration::from_millis)
}

/// An absolute HTTP(S) URL without query and fragment; the trailing slash goes.
fn base_url(text: &str) -> Result<String, ConfigError> {
    let refused = || {
        let rule = "an http or https URL without query or fragment";
        ConfigError::value("base-url", text, rule)
    };
    let url = url::Url::parse(text).map_err(|_| refused())?;
    let plain =
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty();
    if !plain || url.query().is_some() || url.fragment().is_some() {
        return Err(refused());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn origin(name: &'static str, text: &str) -> Result<String, ConfigError> {
    let parsed = url::Url::parse(text).map(|url| url.origin().ascii_serialization());
    match parsed {
        Ok(origin) if origin == text => Ok(origin),
        _ => {
            let rule = "only a scheme, a host and a port, such as https://app.example.com";
            Err(ConfigError::value(name, text, rule))
        }
    }
}

fn origins(name: &'static str, written: &[String]) -> Result<Vec<String>, ConfigError> {
    written.iter().map(|text| origin(name, text)).collect()
}

/// The nearest `plugin-manifest.toml`, from the current folder upwards.
pub(crate) fn find_manifest() -> Result<PathBuf, ConfigError> {
    let from = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let found = from
        .ancestors()
        .map(|folder| folder.join("plugin-manifest.toml"))
        .find(|path| path.is_file());
    found.ok_or(ConfigError::NoManifest { from })
}
