//! Where cargo puts the component of a plugin's crate. Runs nothing: a host that serves built components needs no cargo.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use switchbay_toolchain::TARGET;

/// The cargo profile of components.
pub(crate) const PROFILE: &str = "plugin";

/// Where the component of a crate folder stands once it is built.
pub(crate) fn artifact(folder: &Path) -> Option<PathBuf> {
    let package = package(folder)?;
    let file = format!("{}.wasm", package.name.replace('-', "_"));
    Some(
        target_folder(&workspace(folder))
            .join(TARGET)
            .join(PROFILE)
            .join(file),
    )
}

#[derive(Deserialize)]
struct CargoManifest {
    package: Option<Package>,
    workspace: Option<toml::Table>,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
}

fn read(folder: &Path) -> Option<CargoManifest> {
    toml::from_str(&std::fs::read_to_string(folder.join("Cargo.toml")).ok()?).ok()
}

pub(crate) fn package(folder: &Path) -> Option<Package> {
    read(folder)?.package
}

/// The nearest folder above that is a cargo workspace, else the crate's own.
pub(crate) fn workspace(folder: &Path) -> PathBuf {
    let is_workspace =
        |folder: &&Path| read(folder).is_some_and(|manifest| manifest.workspace.is_some());
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    folder
        .ancestors()
        .find(is_workspace)
        .unwrap_or(&folder)
        .to_owned()
}

pub(crate) fn target_folder(workspace: &Path) -> PathBuf {
    workspace.join("target").join("components")
}
