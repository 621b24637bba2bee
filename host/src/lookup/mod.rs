//! The operator's databases of IP addresses, and the time zones of places.
//!
//! - `file`: one file, verified and mapped.
//! - `entry`: an entry as JSON, within bounds.
//! - `kept`: what was fetched into the data folder.
//! - `zone`: the time zone of a place.
//!
//! A database is a name and a file, or one for each family. Those that the configuration names stand before fetched ones of
//! the same name. All are looked at again when a folder of theirs changes and at SIGHUP; what cannot be used then is told in
//! the log, and what was there serves on. Must not know what is in an entry, nor who may ask for it.

mod entry;
mod file;
mod kept;
#[cfg(test)]
mod tests;
mod zone;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use maxminddb::MaxMindDbError;
use parking_lot::Mutex;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use self::file::{FileError, NetworkEntry};
use self::file::{FileStamp, MappedFile};
pub(crate) use self::kept::{DatabaseFolder, Index, KeptError};
pub(crate) use self::zone::{Basis, LocalZone, Location, ZoneTable};
use crate::base::folder_watch::{FolderWatch, WatchDepth};
use crate::config::DatabaseSource;

/// A database that cannot be used.
#[derive(Debug, thiserror::Error)]
enum DatabaseError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Kept(#[from] KeptError),
}

/// All databases of one process.
pub(crate) struct IpDatabases {
    configured: BTreeMap<String, DatabaseSource>,
    kept: DatabaseFolder,
    /// Where copies are made.
    data: PathBuf,
    serving: ArcSwap<BTreeMap<String, Arc<Database>>>,
    /// One reading at a time. Never held over an await.
    reading: Mutex<()>,
    zones: ZoneTable,
    asked: Notify,
    /// Until it is followed. It stands before anything is read, so that no change falls between the two.
    watch: Mutex<Option<FolderWatch>>,
}

/// One database.
pub(crate) struct Database {
    title: Option<String>,
    license: Option<String>,
    files: Vec<Arc<MappedFile>>,
}

/// A database as it describes itself.
pub(crate) struct DatabaseInfo {
    pub(crate) title: String,
    pub(crate) kind: String,
    /// RFC 3339; `None` where the file says no time that could be.
    pub(crate) built: Option<String>,
    pub(crate) languages: Vec<String>,
    pub(crate) license: Option<String>,
}

impl IpDatabases {
    /// Knows which there are, watches them, and has read none: see [`IpDatabases::read`]. Reads the boundaries of time zones.
    ///
    /// # Errors
    /// The folder of fetched databases cannot be made.
    pub(crate) fn open(
        configured: BTreeMap<String, DatabaseSource>,
        data: &Path,
    ) -> Result<Self, KeptError> {
        let kept = DatabaseFolder::open(data)?;
        let watch = Mutex::new(watch(&configured, &kept));
        Ok(Self {
            configured,
            kept,
            data: data.to_owned(),
            serving: ArcSwap::default(),
            reading: Mutex::default(),
            zones: ZoneTable::load(),
            asked: Notify::new(),
            watch,
        })
    }

    pub(crate) fn named(&self, name: &str) -> Option<Arc<Database>> {
        self.serving.load().get(name).cloned()
    }

    /// Whether there are none, whether they could be used or not.
    pub(crate) fn are_none(&self) -> bool {
        self.sources().is_ok_and(|sources| sources.is_empty())
    }

    pub(crate) fn zones(&self) -> &ZoneTable {
        &self.zones
    }

    /// Reads what is new or changed, and serves it once it was verified. Blocks, for large files for seconds.
    pub(crate) fn read(&self) {
        let _turn = self.reading.lock();
        let before = self.serving.load_full();
        let sources = match self.sources() {
            Ok(sources) => sources,
            Err(error) => {
                tracing::error!(%error, "IP databases cannot be read; the previous ones stay in use");
                return;
            }
        };
        let mut after = BTreeMap::clone(&before);
        after.retain(|name, _| sources.contains_key(name));
        self.serving.store(Arc::new(after.clone()));
        for (name, source) in sources {
            let old = before.get(&name);
            match source
                .map_err(DatabaseError::from)
                .and_then(|source| self.database(source, old))
            {
                Ok(database) => {
                    let DatabaseInfo { kind, built, .. } = database.files[0].about(&database);
                    let (is_new, files) = (
                        !old.is_some_and(|old| old.is_of(&database)),
                        database.files.len(),
                    );
                    after.insert(name.clone(), Arc::new(database));
                    // One at a time, so that a small one does not wait for a large one.
                    self.serving.store(Arc::new(after.clone()));
                    if is_new {
                        tracing::info!(name, kind, built, files, "an IP database is in use");
                    }
                }
                Err(error) => {
                    let (error, serves_on) = (error.to_string(), old.is_some());
                    tracing::error!(
                        name,
                        error,
                        serves_on,
                        "an IP database was refused; the previous one stays in use"
                    );
                }
            }
        }
    }

    /// Has everything read again, soon.
    pub(crate) fn read_again(&self) {
        self.asked.notify_one();
    }

    /// Reads again after each change, and when it is asked for. Once a process.
    pub(crate) async fn follow(self: Arc<Self>, until: CancellationToken) {
        let mut watch = self.watch.lock().take();
        loop {
            let changed = async {
                match &mut watch {
                    Some(watch) => watch.changed().await,
                    None => std::future::pending().await,
                }
            };
            let is_over = tokio::select! {
                () = until.cancelled() => return,
                () = self.asked.notified() => false,
                changed = changed => changed.is_none(),
            };
            if is_over {
                watch = None;
                continue;
            }
            let databases = Arc::clone(&self);
            if let Err(error) = tokio::task::spawn_blocking(move || databases.read()).await {
                tracing::error!(%error, "reading IP databases failed; the previous ones stay in use");
            }
        }
    }

    fn sources(&self) -> Result<BTreeMap<String, Result<DatabaseSource, KeptError>>, KeptError> {
        let mut all = self.kept.all()?;
        all.extend(
            self.configured
                .iter()
                .map(|(name, source)| (name.clone(), Ok(source.clone()))),
        );
        Ok(all)
    }

    /// The database of a source; a file that is as it was is not read again.
    fn database(
        &self,
        source: DatabaseSource,
        old: Option<&Arc<Database>>,
    ) -> Result<Database, DatabaseError> {
        let mut files = Vec::new();
        for path in &source.files {
            let stamp = FileStamp::read(path)?;
            let same = old.and_then(|old| old.files.iter().find(|file| file.is(path, stamp)));
            files.push(match same {
                Some(file) => Arc::clone(file),
                None => Arc::new(MappedFile::load(path, &self.data)?),
            });
        }
        // The file of one family is asked before one that may have both.
        files.sort_by_key(|file| file.metadata().ip_version);
        Ok(Database {
            title: source.title,
            license: source.license,
            files,
        })
    }
}

/// What is not watched is read again at SIGHUP all the same.
fn watch(
    configured: &BTreeMap<String, DatabaseSource>,
    kept: &DatabaseFolder,
) -> Option<FolderWatch> {
    let folder = |file: &PathBuf| file.parent().map(|folder| folder.join("."));
    let mut folders: BTreeSet<PathBuf> = configured
        .values()
        .flat_map(|source| &source.files)
        .filter_map(folder)
        .collect();
    folders.insert(kept.folder().to_owned());
    let start = || {
        let mut watch = FolderWatch::new(|_| true)?;
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            watch.add(folder, WatchDepth::Folder)?;
        }
        Ok::<_, notify::Error>(watch)
    };
    match start() {
        Ok(watch) => Some(watch),
        Err(error) => {
            tracing::warn!(%error, "the folders of IP databases are not watched; send SIGHUP to read them again");
            None
        }
    }
}

/// Whether a server would serve a file. Blocks, for a large file for seconds.
///
/// # Errors
/// It would not.
pub(crate) fn check(path: &Path, folder: &Path) -> Result<(), FileError> {
    MappedFile::load(path, folder).map(|_| ())
}

impl Database {
    /// What it says of an address, and what it says of itself; where it has a file for each family, the one that was asked.
    ///
    /// # Errors
    /// The entry cannot be read.
    pub(crate) fn find(
        &self,
        address: IpAddr,
    ) -> Result<(DatabaseInfo, Option<NetworkEntry>), MaxMindDbError> {
        match self.files.iter().find(|file| file.is_for(address)) {
            Some(file) => Ok((file.about(self), file.find(address)?)),
            None => Ok((self.files[0].about(self), None)),
        }
    }

    /// Whether both are of the same files.
    fn is_of(&self, other: &Database) -> bool {
        let pairs = || self.files.iter().zip(&other.files);
        self.files.len() == other.files.len() && pairs().all(|(one, two)| Arc::ptr_eq(one, two))
    }
}

impl MappedFile {
    fn about(&self, database: &Database) -> DatabaseInfo {
        let metadata = self.metadata();
        let built = i64::try_from(metadata.build_epoch)
            .ok()
            .and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
        DatabaseInfo {
            title: database
                .title
                .clone()
                .unwrap_or_else(|| metadata.database_type.clone()),
            kind: metadata.database_type.clone(),
            built: built.and_then(|built| built.format(&Rfc3339).ok()),
            languages: metadata.languages.clone(),
            license: database.license.clone(),
        }
    }
}
