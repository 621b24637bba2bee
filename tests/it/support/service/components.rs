//! The components of the tests' plugins, as `switchbay build` makes them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use super::{binary, workspace};

/// The manifests whose plugins the tests call.
const MANIFESTS: [&str; 16] = [
    "plugin-manifest.toml",
    "swapped.toml",
    "metered.toml",
    "shares.toml",
    "fetches.toml",
    "fetches-twice.toml",
    "keeps.toml",
    "resolves.toml",
    "asks.toml",
    "works.toml",
    "tends.toml",
    "calls.toml",
    "web-data.toml",
    "siege.toml",
    "ip_info.toml",
    "../../plugin-manifest.toml",
];

/// Builds all components once, by the command that users have. One call for all manifests, because cargo builds a crate
/// anew where another selection of packages gives its dependencies other features, and other bytes are another component.
pub(crate) fn build() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let sources: BTreeSet<PathBuf> = MANIFESTS.into_iter().flat_map(crates).collect();
        let entry = |(number, source): (usize, PathBuf)| {
            format!("[[plugin]]\nname = \"p{number}\"\nsource = {source:?}\n")
        };
        let folder = TempDir::new().expect("a temporary folder");
        let manifest = folder.path().join("plugin-manifest.toml");
        let text: String = sources.into_iter().enumerate().map(entry).collect();
        std::fs::write(&manifest, text).expect("the manifest is written");
        let done = Command::new(binary())
            .args(["build", "--manifest"])
            .arg(&manifest)
            .output()
            .expect("the binary runs");
        assert!(
            done.status.success(),
            "switchbay build failed: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    });
}

/// The crate folders that a manifest names.
fn crates(manifest: &str) -> Vec<PathBuf> {
    let manifest = workspace().join("tests/programs").join(manifest);
    let text = std::fs::read_to_string(&manifest).expect("the manifest is read");
    let table: toml::Table = text.parse().expect("the manifest is TOML");
    let plugins = table["plugin"].as_array().expect("plugins").iter();
    let source = |plugin: &toml::Value| plugin["source"].as_str().expect("a source").to_owned();
    let folder = manifest.parent().expect("a folder");
    plugins
        .map(source)
        .map(|source| std::fs::canonicalize(folder.join(source)).expect("a crate folder"))
        .collect()
}
