//! One file of a database: taken over, verified, mapped, and looked up in.
//!
//! A file that is cut while it is mapped ends the process, so what is mapped is a copy in the data folder that has no name:
//! nobody else can open it, and it is gone with the process however that ends. The system keeps of it in memory what is asked
//! for. Must not know which databases there are.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Once;

use maxminddb::{MaxMindDbError, Metadata, Mmap, Reader, WithinOptions};
use serde_json::Value;

use super::entry::DatabaseEntry;

/// The largest file, in bytes.
const BYTES_MAX: u64 = 4 << 30;
/// A file says at most so many values for each of its bytes; more is a file that leads in circles.
const VALUES_PER_BYTE_MAX: u64 = 8;
/// Networks for each node of a file's tree: a tree has one leaf more than nodes, and IPv4 may hang in it in four places.
const NETWORKS_PER_NODE_MAX: u64 = 8;

/// A file that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is not a file")]
    NoFile { path: PathBuf },
    #[error("cannot keep a copy of {path} in the data folder: {source}")]
    Keep { path: PathBuf, source: io::Error },
    #[error("{path} has {bytes} bytes; at most {BYTES_MAX} are allowed")]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{path} was changed while it was read")]
    Changing { path: PathBuf },
    #[error("{path} is not a usable database: {source}")]
    Broken { path: PathBuf, source: Broken },
}

/// What is wrong with the content of a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("{0}")]
    Format(#[from] MaxMindDbError),
    #[error("it is for IP version {0}; it must be 4 or 6")]
    Family(u16),
    #[error("its tree has a cycle")]
    Circles,
    #[error("its entries have a cycle")]
    Endless,
}

/// A file as the system tells of it. A file that is another one, or was written to, has another stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

/// A file that can be looked up in.
pub(crate) struct MappedFile {
    path: PathBuf,
    stamp: FileStamp,
    reader: Reader<Mmap>,
    /// That an entry cannot be read is told once: whoever asks chooses how often it is found.
    told: Once,
}

/// What a file says of an address: the network, and the entry.
pub(crate) type NetworkEntry = (String, Value);

impl FileStamp {
    fn of(path: &Path, metadata: io::Result<fs::Metadata>) -> Result<Self, FileError> {
        let metadata = metadata.map_err(|source| FileError::Read {
            path: path.to_owned(),
            source,
        })?;
        // A pipe would be waited for.
        if !metadata.is_file() {
            let path = path.to_owned();
            return Err(FileError::NoFile { path });
        }
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            written: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    pub(crate) fn read(path: &Path) -> Result<Self, FileError> {
        Self::of(path, fs::metadata(path))
    }
}

impl MappedFile {
    /// Takes a file over, with a copy in this folder. Blocks, for a large file for seconds.
    ///
    /// # Errors
    /// It cannot be read, copied or used.
    pub(crate) fn load(path: &Path, folder: &Path) -> Result<Self, FileError> {
        let named = || path.to_owned();
        let read = |source| FileError::Read {
            path: named(),
            source,
        };
        FileStamp::read(path)?;
        let file = File::open(path).map_err(read)?;
        let stamp = FileStamp::of(path, file.metadata())?;
        if stamp.bytes > BYTES_MAX {
            return Err(FileError::TooLarge {
                path: path.to_owned(),
                bytes: stamp.bytes,
            });
        }
        let keep = |source| FileError::Keep {
            path: path.to_owned(),
            source,
        };
        let mut copy = tempfile::tempfile_in(folder).map_err(keep)?;
        io::copy(&mut (&file).take(BYTES_MAX), &mut copy)
            .and_then(|_| copy.flush())
            .map_err(keep)?;
        if FileStamp::of(path, file.metadata())? != stamp {
            return Err(FileError::Changing { path: named() });
        }
        let broken = |source| FileError::Broken {
            path: path.to_owned(),
            source,
        };
        let mapped = map(&copy).map_err(keep)?;
        let reader = Reader::from_source(mapped).map_err(|error| broken(error.into()))?;
        verify(&reader, stamp.bytes).map_err(broken)?;
        Ok(Self {
            path: path.to_owned(),
            stamp,
            reader,
            told: Once::new(),
        })
    }

    pub(crate) fn is(&self, path: &Path, stamp: FileStamp) -> bool {
        self.path == path && self.stamp == stamp
    }

    pub(crate) fn metadata(&self) -> &Metadata {
        self.reader.metadata()
    }

    /// Whether addresses of this family may be in it: one for IPv6 may have both.
    pub(crate) fn is_for(&self, address: IpAddr) -> bool {
        address.is_ipv4() || self.metadata().ip_version == 6
    }

    /// # Errors
    /// The entry cannot be read.
    pub(crate) fn find(&self, address: IpAddr) -> Result<Option<NetworkEntry>, MaxMindDbError> {
        find(&self.reader, address).inspect_err(|error| {
            let path = self.path.display();
            self.told.call_once(
                || tracing::warn!(%path, %error, "an IP database has an entry that cannot be read"),
            );
        })
    }
}

#[expect(unsafe_code, reason = "mapping a file has no safe form")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the file is our own copy and has no name in any folder, so nothing can write to it or cut it while it is mapped.
    unsafe { Mmap::map(file) }
}

/// Reads everything once by what lookups read with: whatever a lookup comes upon was seen here.
fn verify<S: AsRef<[u8]>>(reader: &Reader<S>, bytes: u64) -> Result<(), Broken> {
    let metadata = reader.metadata();
    if !matches!(metadata.ip_version, 4 | 6) {
        return Err(Broken::Family(metadata.ip_version));
    }
    let mut networks_left = u64::from(metadata.node_count).saturating_mul(NETWORKS_PER_NODE_MAX)
        + NETWORKS_PER_NODE_MAX;
    let mut values_left = bytes.saturating_mul(VALUES_PER_BYTE_MAX);
    let mut seen = HashSet::new();
    // Everything is counted, also what stands for IPv4 in several places: a tree that leads in circles has to come to an end.
    let every = WithinOptions::default()
        .include_networks_without_data()
        .include_aliased_networks();
    for network in reader.networks(every)? {
        let network = network?;
        networks_left = networks_left.checked_sub(1).ok_or(Broken::Circles)?;
        if network.offset().is_some_and(|offset| seen.insert(offset))
            && let Some(entry) = network.decode::<DatabaseEntry>()?
        {
            values_left = values_left
                .checked_sub(u64::from(entry.values))
                .ok_or(Broken::Endless)?;
        }
    }
    Ok(())
}

fn find<S: AsRef<[u8]>>(
    reader: &Reader<S>,
    address: IpAddr,
) -> Result<Option<NetworkEntry>, MaxMindDbError> {
    let found = reader.lookup(address)?;
    match found.decode::<DatabaseEntry>()? {
        Some(entry) => Ok(Some((found.network()?.to_string(), entry.value))),
        None => Ok(None),
    }
}
