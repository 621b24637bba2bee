//! Settings: the flags with their `SWITCHBAY_*` variables, and the configuration file ([`ConfigFile`]), whose one type is read,
//! checked, told and documented.
//!
//! Flags say where things are; the file says how much of everything. All of it is read and checked before a port is bound,
//! unknown keys are errors, and no other file reads the environment.

#[macro_use]
mod table;

mod databases;
mod egress;
mod flags;
mod oauth;
mod resolvers;
mod tables;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::databases::DatabaseSource;
pub(crate) use self::egress::EgressSettings;
pub(crate) use self::oauth::OAuthSettings;
pub(crate) use self::resolvers::{ClientSubnet, DnsSettings, ResolverSettings};
pub(crate) use self::tables::{
    Credits, FirstPartySettings, JobLimits, LimitSettings, McpSettings, PeerSettings,
    ProxySettings, TenantShares,
};
use crate::base::toml::MalformedToml;

pub use self::flags::{Flags, LogFormat};

/// What the configuration file may say, with what each setting means and its default, as a JSON Schema.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(ConfigFile).to_value()
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

/// The settings in effect: what the flags say, and the tables of the file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    #[serde(flatten)]
    pub(crate) file: ConfigFile,
}

/// The configuration file. No secret of it is told.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ConfigFile {
    pub(crate) limits: LimitSettings,
    pub(crate) peers: PeerSettings,
    pub(crate) mcp: McpSettings,
    pub(crate) oauth: Option<OAuthSettings>,
    pub(crate) credits: Credits,
    pub(crate) first_party: FirstPartySettings,
    pub(crate) egress: EgressSettings,
    pub(crate) dns: DnsSettings,
    pub(crate) proxy: ProxySettings,
    pub(crate) jobs: JobLimits,
    pub(crate) shares: TenantShares,
    /// Files in the MaxMind DB format, by their names in grants: `city = { files = ["city-ipv4.mmdb", "city-ipv6.mmdb"],
    /// title = "Cities", license = "CC-BY-4.0" }`. Without any, those that `switchbay data fetch` left in the data folder serve.
    pub(crate) ip_databases: BTreeMap<String, DatabaseSource>,
}

impl ConfigFile {
    /// Reads the file that is named, or what is so without one.
    fn read(path: Option<&Path>) -> Result<Self, ConfigError> {
        let mut file = path.map(read_file).transpose()?.unwrap_or_default();
        file.dns.complete();
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let Self {
            limits,
            peers,
            mcp,
            oauth,
            credits,
            first_party,
            egress,
            dns,
            proxy,
            jobs,
            shares,
            ip_databases,
        } = self;
        limits.check()?;
        peers.check()?;
        mcp.check()?;
        oauth.as_ref().map_or(Ok(()), OAuthSettings::check)?;
        credits.check()?;
        first_party.check()?;
        egress.check()?;
        dns.check()?;
        proxy.check()?;
        jobs.check()?;
        shares.check()?;
        databases::check(ip_databases)
    }
}

impl Config {
    /// Reads the file that the flags name, and checks everything.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn read(flags: &Flags) -> Result<Self, ConfigError> {
        let file = ConfigFile::read(flags.config.as_deref())?;
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
        Ok(Self {
            listen: flags.listen,
            operator_listen: flags.operator_listen,
            base_url: flags.base_url.as_deref().map(base_url).transpose()?,
            data,
            manifest,
            safe_mode: flags.safe_mode,
            file,
        })
    }
}

fn read_file(path: &Path) -> Result<ConfigFile, ConfigError> {
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

/// Judges web origins.
fn origins(name: &'static str, written: &[String]) -> Result<(), ConfigError> {
    let is_origin = |text: &str| {
        let parsed = url::Url::parse(text).map(|url| url.origin().ascii_serialization());
        parsed.is_ok_and(|origin| origin == text)
    };
    match written.iter().find(|text| !is_origin(text)) {
        Some(wrong) => {
            let rule = "only a scheme, a host and a port, such as https://app.example.com";
            Err(ConfigError::value(name, wrong, rule))
        }
        None => Ok(()),
    }
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
