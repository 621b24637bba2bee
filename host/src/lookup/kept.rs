//! Databases that were fetched into the data folder: each has an index of its own, which names its files.
//!
//! An index is put in place by a rename, after its files, so that whoever reads one finds a whole set. Must not know where
//! databases come from.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use uuid::Uuid;

use crate::config::DatabaseSource;

/// The folder within the data folder.
const FOLDER: &str = "ip-databases";
/// Ends the name of an index, which begins with the database's.
const INDEX: &str = "json";
/// Ends the name of a database's file.
const FILE: &str = "mmdb";
/// Begins the names of files that are not in place yet.
const PARTIAL: &str = ".tmp";
/// The file that whoever writes here holds.
const LOCK: &str = "lock";
/// The largest index, in bytes.
const INDEX_BYTES_MAX: u64 = 64 * 1024;

/// What is kept cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeptError {
    #[error("cannot use {path}: {source}")]
    Folder { path: PathBuf, source: io::Error },
    #[error("another `switchbay data fetch` is writing into {folder}")]
    Busy { folder: PathBuf },
    #[error("the index {path} cannot be read: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("the index {path} is malformed: {source}")]
    Malformed {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("the index {path} names no file")]
    NoFile { path: PathBuf },
    #[error("the index {path} names `{file}`, which is not a file beside it")]
    File { path: PathBuf, file: String },
}

/// What is said of one database.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Index {
    /// What it is to be called where it is credited.
    pub(crate) title: String,
    /// What it must be credited by.
    pub(crate) license: String,
    /// Where it came from: a package and its version.
    pub(crate) origin: String,
    /// Names of files beside the index.
    pub(crate) files: Vec<String>,
}

/// The folder.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseFolder {
    folder: PathBuf,
}

impl DatabaseFolder {
    /// Opens or makes it.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn open(data: &Path) -> Result<Self, KeptError> {
        let folder = data.join(FOLDER);
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder);
        made.map_err(|source| KeptError::Folder {
            path: folder.clone(),
            source,
        })?;
        Ok(Self { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// All databases by name, each with its files or with what is wrong with its index.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn all(
        &self,
    ) -> Result<BTreeMap<String, Result<DatabaseSource, KeptError>>, KeptError> {
        let failed = |source| self.failed(source);
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_index = path.extension().is_some_and(|extension| extension == INDEX);
            if let Some(name) = path
                .file_stem()
                .and_then(|name| name.to_str())
                .filter(|_| is_index)
            {
                all.insert(name.to_owned(), self.source(&path));
            }
        }
        Ok(all)
    }

    /// Holds the folder for writing until what it gives back is dropped.
    ///
    /// # Errors
    /// Another process holds it.
    pub(crate) fn lock(&self) -> Result<File, KeptError> {
        let mut open = OpenOptions::new();
        let open = open.write(true).create(true).truncate(false).mode(0o600);
        let file = open
            .open(self.folder.join(LOCK))
            .map_err(|source| self.failed(source))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(KeptError::Busy {
                folder: self.folder.clone(),
            }),
            Err(TryLockError::Error(source)) => Err(self.failed(source)),
        }
    }

    /// Whether a database from there is in place.
    pub(crate) fn has(&self, name: &str, origin: &str) -> bool {
        let is_whole = |index: &Index| {
            index
                .files
                .iter()
                .all(|file| self.folder.join(file).is_file())
        };
        read(&self.index(name)).is_ok_and(|index| index.origin == origin && is_whole(&index))
    }

    /// Puts a database in place of the one of that name, with files that were made in this folder, and gives back their bytes.
    /// Whoever calls it holds the lock. Blocks.
    ///
    /// # Errors
    /// It cannot be written; what was there is as it was.
    pub(crate) fn put(
        &self,
        name: &str,
        mut index: Index,
        files: Vec<NamedTempFile>,
    ) -> Result<u64, KeptError> {
        let write = || {
            let mut bytes = 0;
            for file in files {
                file.as_file().sync_all()?;
                bytes += file.as_file().metadata()?.len();
                let named = format!("{name}-{}.{FILE}", Uuid::now_v7());
                file.persist(self.folder.join(&named))
                    .map_err(|error| error.error)?;
                index.files.push(named);
            }
            let mut written = NamedTempFile::new_in(&self.folder)?;
            written.write_all(&serde_json::to_vec_pretty(&index)?)?;
            written.as_file().sync_all()?;
            written
                .persist(self.index(name))
                .map_err(|error| error.error)?;
            File::open(&self.folder)?.sync_all()?;
            Ok::<u64, io::Error>(bytes)
        };
        let bytes = write().map_err(|source| self.failed(source))?;
        // The database is in place; what is left of others takes room until the next one is, and nothing else.
        if let Err(error) = self.remove_unnamed() {
            tracing::warn!(%error, "files of earlier IP databases cannot be removed");
        }
        Ok(bytes)
    }

    /// Removes files that no index names, and what a process left that was killed while it wrote. Where an index cannot be
    /// read, nobody knows which files of that database it names, so they stay.
    fn remove_unnamed(&self) -> Result<(), KeptError> {
        let (mut named, mut unknown) = (Vec::new(), Vec::new());
        for (name, source) in self.all()? {
            match source {
                Ok(source) => named.extend(source.files),
                Err(_) => unknown.push(format!("{name}-")),
            }
        }
        let remove = || {
            for entry in fs::read_dir(&self.folder)? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let is_file = path.extension().is_some_and(|extension| extension == FILE);
                let is_unnamed = is_file
                    && !named.contains(&path)
                    && !unknown.iter().any(|one| name.starts_with(one));
                if name.starts_with(PARTIAL) || is_unnamed {
                    fs::remove_file(&path)?;
                }
            }
            Ok::<(), io::Error>(())
        };
        remove().map_err(|source| self.failed(source))
    }

    fn index(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{INDEX}"))
    }

    fn failed(&self, source: io::Error) -> KeptError {
        KeptError::Folder {
            path: self.folder.clone(),
            source,
        }
    }

    fn source(&self, path: &Path) -> Result<DatabaseSource, KeptError> {
        let index = read(path)?;
        if index.files.is_empty() {
            return Err(KeptError::NoFile {
                path: path.to_owned(),
            });
        }
        for file in &index.files {
            if Path::new(file)
                .file_name()
                .is_none_or(|name| name != file.as_str())
            {
                return Err(KeptError::File {
                    path: path.to_owned(),
                    file: file.clone(),
                });
            }
        }
        let files = index.files.iter().map(|file| self.folder.join(file));
        Ok(DatabaseSource {
            files: files.collect(),
            title: Some(index.title),
            license: Some(index.license),
        })
    }
}

fn read(path: &Path) -> Result<Index, KeptError> {
    let failed = |source| KeptError::Read {
        path: path.to_owned(),
        source,
    };
    let bytes = fs::metadata(path).map_err(failed)?.len();
    if bytes > INDEX_BYTES_MAX {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    let text = fs::read(path).map_err(failed)?;
    serde_json::from_slice(&text).map_err(|source| KeptError::Malformed {
        path: path.to_owned(),
        source,
    })
}
