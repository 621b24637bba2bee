//! The npm registry: which one the user's npm is set to, and what it says of a package.
//!
//! Its address comes from where npm takes it: the environment, the project's `.npmrc`, the user's. A scope's own registry
//! stands before all of them. Credentials are not read: these packages are free. Knows no package.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use url::{Host, Url};

use crate::config::Npm;
use crate::egress::operators_own::{DocumentError, OperatorsOwn};

/// The registry where none is configured.
const PUBLIC: &str = "https://registry.npmjs.org/";
/// The scope of the packages that are asked for.
const SCOPE: &str = "@ip-location-db";
/// What a registry may say of a package, in bytes: all its versions.
const DOCUMENT_BYTES_MAX: usize = 32 << 20;
/// For that.
const DOCUMENT: Duration = Duration::from_secs(60);
/// The largest archive, in bytes.
const ARCHIVE_BYTES_MAX: u64 = 512 << 20;
/// For an archive.
const ARCHIVE: Duration = Duration::from_secs(3600);
/// The largest `.npmrc`, in bytes.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// Bytes of SHA-512.
const SHA512_BYTES: usize = 64;

/// A registry that does not say what to fetch.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NpmError {
    #[error("cannot read {path}: {source}")]
    Settings { path: PathBuf, source: io::Error },
    #[error(
        "npm's registry is `{0}`; it must be an https URL (or http on loopback) without credentials"
    )]
    Registry(String),
    #[error("cannot ask the npm registry: {0}")]
    Client(#[source] DocumentError),
    #[error("the npm registry's entry for {package} could not be fetched: {source}")]
    Fetch {
        package: String,
        source: DocumentError,
    },
    #[error("the npm registry's entry for {package} cannot be read: {source}")]
    Document {
        package: String,
        source: serde_json::Error,
    },
    #[error("the npm registry names no latest version of {package}")]
    NoVersion { package: String },
    #[error("{package} {version} has no sha512 checksum in the npm registry")]
    NoChecksum { package: String, version: String },
    #[error(
        "the archive of {package} {version} is at `{url}`, which is neither https nor in the registry"
    )]
    Tarball {
        package: String,
        version: String,
        url: String,
    },
}

/// What is asked.
pub(crate) struct NpmRegistry {
    base: Url,
    own: OperatorsOwn,
}

/// A version of a package.
pub(crate) struct PackageRelease {
    pub(crate) version: String,
    pub(crate) license: String,
    pub(crate) tarball: Url,
    /// SHA-512 of the archive, in base 64.
    pub(crate) integrity: String,
}

#[derive(Deserialize)]
struct PackageDocument {
    #[serde(rename = "dist-tags", default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    versions: BTreeMap<String, Version>,
}

#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    license: serde_json::Value,
    #[serde(default)]
    dist: PackageDist,
}

#[derive(Default, Deserialize)]
struct PackageDist {
    #[serde(default)]
    tarball: String,
    #[serde(default)]
    integrity: String,
}

impl NpmRegistry {
    /// # Errors
    /// What is configured cannot be read or asked.
    pub(crate) fn of(settings: &Npm, folder: &Path) -> Result<Self, NpmError> {
        let files = [
            Some(folder.join(".npmrc")),
            settings.home.as_ref().map(|home| home.join(".npmrc")),
        ];
        let (mut scoped, mut usual) = (None, settings.registry.clone());
        for path in files.into_iter().flatten() {
            let text = read(&path)?;
            scoped = scoped.or_else(|| value(&text, &format!("{SCOPE}:registry")));
            usual = usual.or_else(|| value(&text, "registry"));
        }
        let written = scoped.or(usual).unwrap_or_else(|| PUBLIC.to_owned());
        let mut base = Url::parse(&written)
            .ok()
            .filter(is_safe)
            .ok_or(NpmError::Registry(written))?;
        if !base.path().ends_with('/') {
            let path = format!("{}/", base.path());
            base.set_path(&path);
        }
        let own = OperatorsOwn::new("npm registry", &base).map_err(NpmError::Client)?;
        Ok(Self { base, own })
    }

    pub(crate) fn address(&self) -> &str {
        self.base.as_str()
    }

    /// The latest version of a package.
    pub(crate) async fn latest(&self, package: &str) -> Result<PackageRelease, NpmError> {
        let named = || package.to_owned();
        let mut url = self.base.clone();
        let path = format!("{}{}", url.path(), package.replace('/', "%2f"));
        url.set_path(&path);
        let fetched = self.own.fetch(&url, DOCUMENT_BYTES_MAX, DOCUMENT).await;
        let text = fetched.map_err(|source| NpmError::Fetch {
            package: named(),
            source,
        })?;
        let document: PackageDocument =
            serde_json::from_slice(&text).map_err(|source| NpmError::Document {
                package: named(),
                source,
            })?;
        let PackageDocument { tags, mut versions } = document;
        let latest = tags
            .get("latest")
            .and_then(|version| versions.remove_entry(version));
        let (version, Version { license, dist }) =
            latest.ok_or_else(|| NpmError::NoVersion { package: named() })?;
        let Some(integrity) = sha512(&dist.integrity) else {
            return Err(NpmError::NoChecksum {
                package: named(),
                version,
            });
        };
        let tarball = match Url::parse(&dist.tarball)
            .ok()
            .filter(|url| self.own.allows(url))
        {
            Some(tarball) => tarball,
            None => {
                return Err(NpmError::Tarball {
                    package: named(),
                    version,
                    url: dist.tarball,
                });
            }
        };
        let license = license.as_str().unwrap_or("none").to_owned();
        Ok(PackageRelease {
            version,
            license,
            tarball,
            integrity,
        })
    }

    /// Fetches an archive piece by piece, each with the length that the server announced.
    pub(crate) async fn download(
        &self,
        url: &Url,
        take: impl FnMut(&[u8], Option<u64>) -> io::Result<()>,
    ) -> Result<(), DocumentError> {
        self.own
            .download(url, ARCHIVE_BYTES_MAX, ARCHIVE, take)
            .await
    }
}

fn read(path: &Path) -> Result<String, NpmError> {
    let failed = |source| NpmError::Settings {
        path: path.to_owned(),
        source,
    };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(failed(error)),
        Ok(found) if found.len() > SETTINGS_BYTES_MAX => {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(path).map_err(failed)
}

/// The last value of a key in lines of `key = value`.
fn value(text: &str, key: &str) -> Option<String> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with([';', '#']));
    let mut values = lines
        .filter_map(|line| line.split_once('='))
        .filter(|(known, _)| known.trim() == key);
    let last = values
        .next_back()
        .map(|(_, value)| value.trim().trim_matches(['"', '\'']))?;
    (!last.is_empty()).then(|| last.to_owned())
}

fn is_safe(url: &Url) -> bool {
    let is_loopback = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    is_plain
        && url.has_host()
        && (url.scheme() == "https" || (url.scheme() == "http" && is_loopback))
}

/// The SHA-512 of a `dist.integrity`, which may name several.
fn sha512(integrity: &str) -> Option<String> {
    let found = integrity
        .split_whitespace()
        .find_map(|one| one.strip_prefix("sha512-"))?;
    let bytes = STANDARD.decode(found).ok()?;
    (bytes.len() == SHA512_BYTES).then(|| found.to_owned())
}

#[cfg(test)]
mod tests;
