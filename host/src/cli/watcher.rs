//! Watches the sources of plugins and says when something changed; `switchbay dev` builds and reloads. Knows no build.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::build;
use crate::base::folder_watch::{FolderWatch, WatchDepth};
use crate::contract::manifest::ManifestEntry;

/// A running watch; it ends when this is dropped.
pub(crate) struct Watcher {
    watch: FolderWatch,
    folders: BTreeSet<PathBuf>,
}

impl Watcher {
    /// Watches the folders that the entries are built from, and the manifest.
    pub(crate) fn start(manifest: &Path, entries: &[ManifestEntry]) -> notify::Result<Self> {
        let folders = folders(entries);
        let named = manifest.to_owned();
        let mut watch =
            FolderWatch::new(move |path| is_source(path) || path.file_name() == named.file_name())?;
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            watch.add(folder, WatchDepth::Tree)?;
        }
        // An editor saves by a rename, which a watch of the file itself would lose sight of.
        if let Some(folder) = manifest
            .parent()
            .filter(|folder| !folders.contains(*folder))
        {
            let folder = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            watch.add(folder, WatchDepth::Folder)?;
        }
        Ok(Self { watch, folders })
    }

    /// Another watch, where these entries are built from other folders than this one watches.
    pub(crate) fn renewed(
        &self,
        manifest: &Path,
        entries: &[ManifestEntry],
    ) -> notify::Result<Option<Self>> {
        if folders(entries) == self.folders {
            Ok(None)
        } else {
            Self::start(manifest, entries).map(Some)
        }
    }

    /// Waits for the next change; `None` when watching has ended.
    pub(crate) async fn changed(&mut self) -> Option<()> {
        self.watch.changed().await
    }
}

fn folders(entries: &[ManifestEntry]) -> BTreeSet<PathBuf> {
    entries.iter().flat_map(build::watched).collect()
}

/// Editors' own files and build output do not count.
fn is_source(path: &std::path::Path) -> bool {
    let hidden = path.components().any(|part| part.as_os_str() == "target");
    let extension = path.extension().and_then(|extension| extension.to_str());
    !hidden
        && matches!(
            extension,
            Some("rs" | "toml" | "wit" | "wasm" | "json" | "tsv")
        )
}
