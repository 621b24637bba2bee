//! Watches the sources of plugins and says when something changed; `switchbay dev` builds and reloads.
//!
//! A burst of changes (an editor's save, a branch switch) is one signal, and signals that come while one is being handled
//! are one more. Knows no build.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

use super::build;
use super::manifest::Entry;

/// Without a change for so long, a burst has ended.
const QUIET: Duration = Duration::from_millis(100);
/// A burst is not waited for any longer.
const BURST: Duration = Duration::from_secs(2);

/// A running watch; it ends when this is dropped.
pub(crate) struct Watcher {
    _watcher: RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
    changes: mpsc::Receiver<()>,
}

impl Watcher {
    /// Watches the folders that the entries are built from, and the manifest.
    pub(crate) fn start(manifest: &Path, entries: &[Entry]) -> notify::Result<Self> {
        let folders = folders(entries);
        let manifest = manifest.to_owned();
        let named = manifest.clone();
        let (sender, changes) = mpsc::channel(1);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading a source is an event too, and building reads them all: counted, each build would cause the next.
            let relevant = match &event {
                Ok(event) => {
                    let is_relevant = |path: &PathBuf| is_source(path) || path.file_name() == named.file_name();
                    !event.kind.is_access() && event.paths.iter().any(is_relevant)
                }
                Err(_) => true,
            };
            // A full channel means that a change is waiting already.
            if relevant && matches!(sender.try_send(()), Err(mpsc::error::TrySendError::Closed(()))) {
                tracing::debug!("nobody watches any more");
            }
        })?;
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            watcher.watch(folder, RecursiveMode::Recursive)?;
        }
        // An editor saves by a rename, which a watch of the file itself would lose sight of.
        if let Some(folder) = manifest.parent().filter(|folder| !folders.contains(*folder)) {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            watcher.watch(folder, RecursiveMode::NonRecursive)?;
        }
        Ok(Self { _watcher: watcher, folders, changes })
    }

    /// Another watch, where these entries are built from other folders than this one watches.
    pub(crate) fn renewed(&self, manifest: &Path, entries: &[Entry]) -> notify::Result<Option<Self>> {
        match folders(entries) == self.folders {
            true => Ok(None),
            false => Self::start(manifest, entries).map(Some),
        }
    }

    /// Waits for the next change; `None` when watching has ended.
    pub(crate) async fn changed(&mut self) -> Option<()> {
        self.changes.recv().await?;
        let quiet = async { while let Ok(Some(())) = tokio::time::timeout(QUIET, self.changes.recv()).await {} };
        // A source that never rests is read as it stands; what changes meanwhile is the next signal.
        tokio::time::timeout(BURST, quiet).await.ok();
        Some(())
    }
}

fn folders(entries: &[Entry]) -> BTreeSet<PathBuf> {
    entries.iter().flat_map(build::watched).collect()
}

/// Editors' own files and build output do not count.
fn is_source(path: &std::path::Path) -> bool {
    let hidden = path.components().any(|part| part.as_os_str() == "target");
    let extension = path.extension().and_then(|extension| extension.to_str());
    !hidden && matches!(extension, Some("rs" | "toml" | "wit" | "wasm" | "json" | "tsv"))
}
