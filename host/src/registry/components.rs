//! The components that revisions run, each in a file that its digest names, in the data folder.
//!
//! The host serves its own copy: what an operator or a build does to the file that a component came from changes nothing
//! until it is staged. Must not know what a component is.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The largest component, in bytes.
pub(crate) const COMPONENT_BYTES_MAX: u64 = 64 << 20;
/// Ends the name of a file that is not whole yet.
const PARTIAL: &str = "partial";

/// A component that cannot be fetched or kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComponentError {
    #[error("its component {path} is missing: build it with `switchbay build`")]
    Missing { path: PathBuf },
    #[error("its component {path} cannot be read: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("its component {path} has {bytes} bytes; at most {COMPONENT_BYTES_MAX} are loaded")]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("its crate folder {path} has no Cargo.toml")]
    NoCrate { path: PathBuf },
    #[error("its component has the digest {found}, not the expected {expected}")]
    OtherDigest { expected: String, found: String },
    #[error("its component cannot be kept in {path}: {source}")]
    Keep { path: PathBuf, source: io::Error },
    #[error("its kept component {path} was changed: it no longer has the digest that names it")]
    Changed { path: PathBuf },
}

/// The folder of kept components.
#[derive(Clone)]
pub(crate) struct Components {
    folder: PathBuf,
}

impl Components {
    /// Opens or makes the folder.
    pub(crate) fn open(data: &Path) -> Result<Self, ComponentError> {
        let folder = data.join("components");
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|source| ComponentError::Keep { path: folder.clone(), source })?;
        Ok(Self { folder })
    }

    /// Keeps a component durably; keeping it again changes nothing. Blocks.
    pub(crate) fn keep(&self, digest: &str, bytes: &[u8]) -> Result<(), ComponentError> {
        let path = self.path(digest);
        if self.read(digest).is_ok() {
            return Ok(());
        }
        let partial = self.folder.join(format!("{}.{PARTIAL}", Uuid::now_v7()));
        let failed = |source| ComponentError::Keep { path: path.clone(), source };
        let written = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&partial)
            .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&partial, &path))
            .and_then(|()| fs::File::open(&self.folder)?.sync_all());
        if written.is_err() {
            fs::remove_file(&partial).ok();
        }
        written.map_err(failed)
    }

    /// A kept component, which still has its digest. Blocks.
    pub(crate) fn read(&self, digest: &str) -> Result<Vec<u8>, ComponentError> {
        let path = self.path(digest);
        let bytes = fetch(&path)?;
        match digest_of(&bytes) == digest {
            true => Ok(bytes),
            false => Err(ComponentError::Changed { path }),
        }
    }

    /// Removes every file that no record names.
    pub(crate) fn keep_only(&self, digests: &HashSet<String>) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let named = path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| digests.contains(stem));
            if !named || path.extension().is_some_and(|extension| extension == PARTIAL) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.folder.join(format!("{digest}.wasm"))
    }
}

/// Reads a component from where somebody put it. Blocks.
pub(crate) fn fetch(path: &Path) -> Result<Vec<u8>, ComponentError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ComponentError::Missing { path: path.to_owned() },
        _ => ComponentError::Read { path: path.to_owned(), source },
    };
    let file = fs::File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    if bytes > COMPONENT_BYTES_MAX {
        return Err(ComponentError::TooLarge { path: path.to_owned(), bytes });
    }
    let mut component = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    // The file may grow while it is read.
    file.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut component).map_err(failed)?;
    match u64::try_from(component.len()) {
        Ok(read) if read <= COMPONENT_BYTES_MAX => Ok(component),
        _ => Err(ComponentError::TooLarge { path: path.to_owned(), bytes: COMPONENT_BYTES_MAX + 1 }),
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String does not fail");
        text
    })
}
