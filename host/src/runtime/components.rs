//! The components that revisions run, each in a file that its digest names, in the data folder.
//!
//! The host serves its own copy: what an operator or a build does to the file that a component came from changes nothing
//! until it is staged. Must not know what a component is.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The largest component, in bytes.
pub(crate) const COMPONENT_BYTES_MAX: u64 = 64 << 20;
/// What a component begins with: the magic number, version 13 and layer 1.
const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";
/// What a core module begins with.
const MODULE: [u8; 8] = *b"\0asm\x01\0\0\0";
/// Ends the name of a file that is not whole yet.
const PARTIAL: &str = "partial";

/// A component that cannot be fetched or kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComponentError {
    #[error("its component {path} is missing: build it with `switchbay build`")]
    Missing { path: PathBuf },
    #[error("its component {path} cannot be read: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("its component {path} is not a regular file")]
    NoFile { path: PathBuf },
    #[error(
        "it is not a WebAssembly component: {path} is a core module; make a component of it with `wasm-tools \
         component new`"
    )]
    Module { path: PathBuf },
    #[error("it is not a WebAssembly component: {path} is empty")]
    Empty { path: PathBuf },
    #[error("it is not a WebAssembly component: {path} does not start with a component's header")]
    NoComponent { path: PathBuf },
    #[error("its component {path} has {bytes} bytes; at most {COMPONENT_BYTES_MAX} are allowed")]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("its crate folder {path} has no Cargo.toml")]
    NoCrate { path: PathBuf },
    #[error("its component has the digest {found}, not the expected {expected}")]
    OtherDigest { expected: String, found: String },
    #[error("its component cannot be stored in {path}: {source}")]
    Keep { path: PathBuf, source: io::Error },
    #[error("its stored component {path} was changed: it no longer has the digest in its name")]
    Changed { path: PathBuf },
}

impl ComponentError {
    fn read(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Read { path, source }
    }
}

/// The folder of kept components.
#[derive(Clone)]
pub(crate) struct ComponentFolder {
    folder: PathBuf,
}

impl ComponentFolder {
    /// Opens or makes the folder.
    pub(crate) fn open(data: &Path) -> Result<Self, ComponentError> {
        let folder = data.join("components");
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder);
        made.map_err(|source| ComponentError::Keep {
            path: folder.clone(),
            source,
        })?;
        Ok(Self { folder })
    }

    /// Keeps a component durably; keeping it again changes nothing. Blocks.
    pub(crate) fn keep(&self, digest: &str, bytes: &[u8]) -> Result<(), ComponentError> {
        let path = self.path(digest);
        if self.read(digest).is_ok() {
            return Ok(());
        }
        let partial = self.folder.join(format!("{}.{PARTIAL}", Uuid::now_v7()));
        let failed = |source| ComponentError::Keep {
            path: path.clone(),
            source,
        };
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
        let bytes = read(&path, &[], open(&path)?)?;
        if digest_of(&bytes) == digest {
            Ok(bytes)
        } else {
            Err(ComponentError::Changed { path })
        }
    }

    /// Removes every file that no record names.
    pub(crate) fn keep_only(&self, digests: &HashSet<String>) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let named = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .is_some_and(|stem| digests.contains(stem));
            if !named
                || path
                    .extension()
                    .is_some_and(|extension| extension == PARTIAL)
            {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.folder.join(format!("{digest}.wasm"))
    }
}

/// Reads a component from where somebody put it. Of a file that does not begin as a component nothing else is read, and
/// nothing is told: it may be any file that this user can read. Blocks.
pub(crate) fn fetch(path: &Path) -> Result<Vec<u8>, ComponentError> {
    let mut file = open(path)?;
    let mut head = Vec::new();
    let began = (&mut file)
        .take(COMPONENT.len() as u64)
        .read_to_end(&mut head);
    began.map_err(|source| ComponentError::read(path, source))?;
    let path = path.to_owned();
    match &*head {
        [] => Err(ComponentError::Empty { path }),
        head if head == MODULE => Err(ComponentError::Module { path }),
        head if head == COMPONENT => read(&path, head, file),
        _ => Err(ComponentError::NoComponent { path }),
    }
}

/// Opens a regular file. Whatever else a path leads to might be read without end, or be waited for.
fn open(path: &Path) -> Result<fs::File, ComponentError> {
    let named = || path.to_owned();
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ComponentError::Missing { path: named() },
        _ => ComponentError::read(path, source),
    };
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(at_once)
        .open(path)
        .map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    match (metadata.is_file(), metadata.len()) {
        (false, _) => Err(ComponentError::NoFile { path: named() }),
        (true, bytes) if bytes > COMPONENT_BYTES_MAX => Err(ComponentError::TooLarge {
            path: named(),
            bytes,
        }),
        (true, _) => Ok(file),
    }
}

/// What a file begins with, and its rest.
fn read(path: &Path, head: &[u8], file: fs::File) -> Result<Vec<u8>, ComponentError> {
    let mut component = head.to_vec();
    // The file may grow while it is read.
    let rest = (COMPONENT_BYTES_MAX + 1).saturating_sub(head.len() as u64);
    let done = file.take(rest).read_to_end(&mut component);
    done.map_err(|source| ComponentError::read(path, source))?;
    match u64::try_from(component.len()) {
        Ok(read) if read <= COMPONENT_BYTES_MAX => Ok(component),
        _ => Err(ComponentError::TooLarge {
            path: path.to_owned(),
            bytes: COMPONENT_BYTES_MAX + 1,
        }),
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String does not fail");
            text
        })
}
