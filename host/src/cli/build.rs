//! Builds plugin crates into components: one cargo call for each workspace, in a release profile of its own.
//!
//! The same call serves `switchbay build`, `switchbay dev` and the tests. It never runs in a build script (cargo inside
//! cargo can hang on the lock) and has a target folder of its own, so that it disturbs no other build.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use switchbay_toolchain::{TARGET, Toolchain, ToolchainError};

use crate::base::tasks::blocking;
use crate::contract::manifest::{ManifestEntry, ManifestSource};
use crate::registry::crate_folder::{PROFILE, package, target_folder, workspace};

/// The profile, given with each call so that a plugin's workspace need not know of it: small, optimised as a whole, and
/// without unwinding (a panic is a trap).
const PROFILE_SETTINGS: [&str; 7] = [
    "inherits='release'",
    "debug=false",
    "lto='fat'",
    "codegen-units=1",
    "opt-level=3",
    "panic='abort'",
    "strip=true",
];

/// A build that did not give components.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    #[error("plugin `{plugin}`: cannot read a Cargo.toml in its crate folder {path}")]
    NoCrate { plugin: String, path: PathBuf },
    #[error("plugins cannot be built: {0}")]
    Toolchain(#[from] ToolchainError),
    #[error("cannot run cargo: {0}")]
    NoCargo(#[source] std::io::Error),
    #[error("cargo could not build {packages} (see its message above)")]
    Failed { packages: String },
}

/// Builds every entry whose source is a crate folder. Cargo's own progress and errors go to standard error.
pub(crate) async fn build(entries: &[ManifestEntry]) -> Result<(), BuildError> {
    let mut workspaces: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for entry in entries {
        let ManifestSource::Crate(folder) = &entry.source else {
            continue;
        };
        let package = package(folder).ok_or_else(|| BuildError::NoCrate {
            plugin: entry.name.clone(),
            path: folder.clone(),
        })?;
        workspaces
            .entry(workspace(folder))
            .or_default()
            .push(package.name);
    }
    for (workspace, packages) in workspaces {
        let folder = workspace.clone();
        blocking(move || complete(&folder)).await?;
        cargo(&workspace, &packages).await?;
    }
    Ok(())
}

/// Has rustup add the guests' target to the toolchain that a workspace is built with. Blocks.
fn complete(workspace: &Path) -> Result<(), ToolchainError> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    Toolchain::of(&compiler, workspace)?.complete()
}

async fn cargo(workspace: &Path, packages: &[String]) -> Result<(), BuildError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = tokio::process::Command::new(cargo);
    command
        .current_dir(workspace)
        .args(["build", "--profile", PROFILE, "--target", TARGET])
        .arg("--target-dir")
        .arg(target_folder(workspace))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true);
    // A caller's flags are for its own machine, not for the guests.
    for name in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_TARGET_DIR",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTDOCFLAGS",
    ] {
        command.env_remove(name);
    }
    for setting in PROFILE_SETTINGS {
        command.args(["--config", &format!("profile.{PROFILE}.{setting}")]);
    }
    for package in packages {
        command.args(["--package", package]);
    }
    let status = command.status().await.map_err(BuildError::NoCargo)?;
    if status.success() {
        Ok(())
    } else {
        Err(BuildError::Failed {
            packages: packages.join(", "),
        })
    }
}

/// The folders whose change makes a plugin's component another one: its crate, and the path dependencies that it shares.
pub(crate) fn watched(entry: &ManifestEntry) -> Vec<PathBuf> {
    let ManifestSource::Crate(folder) = &entry.source else {
        let ManifestSource::File(file) = &entry.source else {
            return Vec::new();
        };
        return file.parent().map(Path::to_owned).into_iter().collect();
    };
    let workspace = workspace(folder);
    let shared = ["sdk", "wit"].map(|name| workspace.join(name));
    std::iter::once(folder.clone())
        .chain(shared.into_iter().filter(|path| path.is_dir()))
        .collect()
}
