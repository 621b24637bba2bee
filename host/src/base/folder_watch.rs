//! Folders that are watched, and a signal when something in them changes.
//!
//! A burst of changes (an editor's save, a branch switch, a copy) is one signal, and signals that come while one is being
//! handled are one more. Must not know what is in the folders.

use std::path::Path;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

/// Without a change for so long, a burst has ended.
const QUIET: Duration = Duration::from_millis(100);
/// A burst is not waited for any longer.
const BURST: Duration = Duration::from_secs(2);

/// A running watch; it ends when this is dropped.
pub(crate) struct FolderWatch {
    watcher: RecommendedWatcher,
    changes: mpsc::Receiver<()>,
}

/// How much of a folder is watched.
#[derive(Clone, Copy)]
pub(crate) enum WatchDepth {
    /// What stands in it.
    Folder,
    /// All below it.
    Tree,
}

impl FolderWatch {
    /// Watches nothing yet. Changes of paths that are of no concern are no signal.
    ///
    /// # Errors
    /// The system has no watch left.
    pub(crate) fn new(concerns: impl Fn(&Path) -> bool + Send + 'static) -> notify::Result<Self> {
        let (sender, changes) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading a file is an event too, and what follows a signal reads them all: counted, each would cause the next.
            let relevant = match &event {
                Ok(event) => {
                    !event.kind.is_access() && event.paths.iter().any(|path| concerns(path))
                }
                Err(_) => true,
            };
            // A full channel means that a change is waiting already.
            if relevant
                && matches!(
                    sender.try_send(()),
                    Err(mpsc::error::TrySendError::Closed(()))
                )
            {
                tracing::debug!("nobody watches any more");
            }
        })?;
        Ok(Self { watcher, changes })
    }

    /// Watches one folder more.
    ///
    /// # Errors
    /// It cannot be watched.
    pub(crate) fn add(&mut self, folder: &Path, depth: WatchDepth) -> notify::Result<()> {
        let mode = match depth {
            WatchDepth::Folder => RecursiveMode::NonRecursive,
            WatchDepth::Tree => RecursiveMode::Recursive,
        };
        self.watcher.watch(folder, mode)
    }

    /// Waits for the next change; `None` when watching has ended.
    pub(crate) async fn changed(&mut self) -> Option<()> {
        self.changes.recv().await?;
        let quiet = async {
            while let Ok(Some(())) = tokio::time::timeout(QUIET, self.changes.recv()).await {}
        };
        // A source that never rests is read as it stands; what changes meanwhile is the next signal.
        tokio::time::timeout(BURST, quiet).await.ok();
        Some(())
    }
}
