//! `plugin-manifest.toml`: what the operator says of each plugin.
//!
//! Two steps: what was written (`Written…`, unknown keys are errors) and what is meant
//! ([`ManifestEntry`]). Reading it touches no plugin; whether a source exists is the loader's to find out.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grants::Grants;
use super::secret_binding::{SECRETS_MAX, SecretBinding};
use crate::base::toml::MalformedToml;

/// A manifest that cannot be used. Each message names the file, the entry, the rule and the value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("cannot read the plugin manifest {path}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the plugin manifest {path} is malformed: {source}")]
    Parse {
        path: PathBuf,
        source: MalformedToml,
    },
    #[error("plugin `{plugin}` in {path}: {rule}")]
    Entry {
        path: PathBuf,
        plugin: String,
        rule: String,
    },
}

/// All entries, in the order that they were written.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) entries: Vec<ManifestEntry>,
}

/// One plugin.
#[derive(Clone, Debug)]
pub(crate) struct ManifestEntry {
    pub(crate) name: String,
    pub(crate) source: ManifestSource,
    pub(crate) grants: Grants,
    pub(crate) settings: Settings,
}

/// How a plugin is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) instances: InstanceMode,
    pub(crate) limits: PluginLimits,
    /// What the plugin is told: strings as they are and other values as JSON text.
    pub(crate) config: BTreeMap<String, String>,
    /// What is added to its requests.
    #[serde(default)]
    pub(crate) secrets: Vec<SecretBinding>,
}

/// Where a component comes from.
#[derive(Clone, Debug)]
pub(crate) enum ManifestSource {
    /// A crate folder, built by `switchbay build` and `switchbay dev`.
    Crate(PathBuf),
    /// A component file.
    File(PathBuf),
}

/// How long an instance lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InstanceMode {
    /// A new one for each call: nothing is left over from one caller to the next.
    #[default]
    Fresh,
    /// Kept between calls, one call at a time, for a bounded number of calls and a bounded time.
    Warm,
}

/// What a plugin may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PluginLimits {
    /// Linear memory of one instance, in bytes.
    pub(crate) memory_bytes: usize,
    /// Processor time of one call.
    pub(crate) cpu: Duration,
    /// The longest that a call may take, whatever its operation's deadline says.
    pub(crate) wall: Duration,
    /// Calls at once.
    pub(crate) concurrency: usize,
    /// Calls at once of one tenant; `None` is the default.
    #[serde(default)]
    pub(crate) owner_concurrency: Option<usize>,
    /// By how many bytes a warm instance's memory may have grown for it to be kept; `None` is the default.
    #[serde(default)]
    pub(crate) warm_growth_bytes: Option<usize>,
    /// The largest reply, in bytes.
    pub(crate) response_bytes: usize,
}

/// Calls at once of one tenant, where the manifest has no number.
const OWNER_CONCURRENCY: usize = 8;

impl PluginLimits {
    /// Calls at once of one tenant.
    pub(crate) fn owner_concurrency(&self) -> usize {
        self.owner_concurrency
            .unwrap_or(OWNER_CONCURRENCY)
            .min(self.concurrency)
    }

    /// By how many bytes a warm instance's memory may have grown for it to be kept: as many instances as there are places may
    /// lie idle.
    pub(crate) fn warm_growth(&self) -> usize {
        self.warm_growth_bytes.unwrap_or(self.memory_bytes / 16)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenManifest {
    #[serde(default)]
    plugin: Vec<WrittenEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEntry {
    name: String,
    source: String,
    #[serde(default)]
    grants: Vec<String>,
    #[serde(default)]
    instances: InstanceMode,
    #[serde(default)]
    limits: WrittenPluginLimits,
    #[serde(default)]
    config: BTreeMap<String, toml::Value>,
    #[serde(default)]
    secrets: Vec<SecretBinding>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPluginLimits {
    memory: Option<String>,
    cpu_ms: Option<u64>,
    wall_ms: Option<u64>,
    concurrency: Option<usize>,
    owner_concurrency: Option<usize>,
    warm_growth: Option<String>,
    response: Option<String>,
}

impl Manifest {
    /// Reads and checks a manifest. Sources are taken relative to the file's folder.
    pub(crate) fn read(path: &Path) -> Result<Self, ManifestError> {
        let text = std::fs::read_to_string(path).map_err(|source| ManifestError::Read {
            path: path.to_owned(),
            source,
        })?;
        let written: WrittenManifest =
            toml::from_str(&text).map_err(|error| ManifestError::Parse {
                path: path.to_owned(),
                source: MalformedToml::new(&text, &error),
            })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut entries: Vec<ManifestEntry> = Vec::with_capacity(written.plugin.len());
        for entry in written.plugin {
            let name = entry.name.clone();
            let mut parsed = meant(entry, folder);
            if entries.iter().any(|other| other.name == name) {
                parsed = Err("it has more than one entry".to_owned());
            }
            entries.push(parsed.map_err(|rule| ManifestError::Entry {
                path: path.to_owned(),
                plugin: name,
                rule,
            })?);
        }
        Ok(Self { entries })
    }
}

fn meant(written: WrittenEntry, folder: &Path) -> Result<ManifestEntry, String> {
    if !is_plugin_name(&written.name) {
        return Err(
            "its name must be 2 to 40 characters of a-z, 0-9 and hyphens, starting with a letter"
                .to_owned(),
        );
    }
    if written.source.contains("://") {
        let source = &written.source;
        return Err(format!(
            "the source `{source}` is neither a crate folder nor a .wasm file"
        ));
    }
    let source = folder.join(&written.source);
    let source = if source.extension().is_some_and(|kind| kind == "wasm") {
        ManifestSource::File(source)
    } else {
        ManifestSource::Crate(source)
    };
    let config = written.config.into_iter();
    let config = config.map(|(key, value)| Ok((key, setting(value)?)));
    let settings = Settings {
        instances: written.instances,
        limits: limits(&written.limits)?,
        config: config.collect::<Result<_, String>>()?,
        secrets: written.secrets,
    };
    let count = settings.secrets.len();
    if count > SECRETS_MAX {
        return Err(format!(
            "`secrets` has {count} entries; at most {SECRETS_MAX} are allowed"
        ));
    }
    let grants = Grants::parse(&written.grants).map_err(|error| error.to_string())?;
    Ok(ManifestEntry {
        name: written.name,
        source,
        grants,
        settings,
    })
}

fn is_plugin_name(name: &str) -> bool {
    (2..=40).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn limits(written: &WrittenPluginLimits) -> Result<PluginLimits, String> {
    let size = |name: &str, text: Option<&str>, default, range: RangeInclusive<usize>| {
        let read = text.map_or(Ok(default), |text| bytes(name, text))?;
        bounded(name, read, range)
    };
    let (memory, response) = (written.memory.as_deref(), written.response.as_deref());
    let (cpu, wall) = (
        written.cpu_ms.unwrap_or(500),
        written.wall_ms.unwrap_or(150_000),
    );
    let concurrency = written.concurrency.unwrap_or(32);
    let concurrency = bounded("limits.concurrency", concurrency, 1..=256)?;
    let own = |own| bounded("limits.owner_concurrency", own, 1..=concurrency);
    let growth = |text: &str| size("limits.warm_growth", Some(text), 0, 0..=256 << 20);
    Ok(PluginLimits {
        memory_bytes: size("limits.memory", memory, 64 << 20, 1 << 20..=256 << 20)?,
        cpu: Duration::from_millis(bounded("limits.cpu_ms", cpu, 10..=60_000)?),
        wall: Duration::from_millis(bounded("limits.wall_ms", wall, 10..=150_000)?),
        concurrency,
        owner_concurrency: written.owner_concurrency.map(own).transpose()?,
        warm_growth_bytes: written.warm_growth.as_deref().map(growth).transpose()?,
        response_bytes: size("limits.response", response, 4 << 20, 1 << 10..=64 << 20)?,
    })
}

fn bounded<T: PartialOrd + std::fmt::Display>(
    name: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<T, String> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (min, max) = range.into_inner();
    Err(format!(
        "`{name}` is {value}; it must be from {min} to {max}"
    ))
}

/// `64MiB`, `512KiB` or a plain number of bytes.
fn bytes(name: &str, text: &str) -> Result<usize, String> {
    let (digits, factor) = match (text.strip_suffix("KiB"), text.strip_suffix("MiB")) {
        (Some(digits), _) => (digits, 1 << 10),
        (_, Some(digits)) => (digits, 1 << 20),
        (None, None) => (text, 1),
    };
    let number: Option<usize> = digits.trim_end().parse().ok();
    number
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| format!("`{name}` is `{text}`; write bytes, KiB or MiB, such as `64MiB`"))
}

fn setting(value: toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text),
        other => serde_json::to_string(&other)
            .map_err(|error| format!("a value in `config` cannot be written as JSON: {error}")),
    }
}
