//! The target that plugins are compiled for, in the Rust toolchain in use: whether its libraries are there, and having
//! rustup add them.
//!
//! The host's build script asks and changes nothing; `cargo run` and the builds of plugins add what is missing. It depends on
//! the standard library alone, because it is compiled before everything else.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The target of plugins.
pub const TARGET: &str = "wasm32-wasip2";

/// Why plugins cannot be compiled.
#[derive(Debug)]
pub enum ToolchainError {
    /// The compiler does not run.
    Compiler(io::Error),
    /// The toolchain has no libraries for the target, and rustup did not add them.
    NoTarget(PathBuf),
}

impl fmt::Display for ToolchainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compiler(error) => write!(f, "cannot run the Rust compiler: {error}"),
            Self::NoTarget(sysroot) => write!(
                f,
                "the Rust toolchain {} has no libraries for the plugin target {TARGET}; run \
                 `rustup target add {TARGET}` in the workspace folder",
                sysroot.display()
            ),
        }
    }
}

impl std::error::Error for ToolchainError {}

/// The toolchain of a compiler, as it is chosen in a folder.
pub struct Toolchain {
    sysroot: PathBuf,
    folder: PathBuf,
}

impl Toolchain {
    /// Asks the compiler where its libraries are.
    ///
    /// # Errors
    /// It does not run.
    pub fn of(compiler: &OsStr, folder: &Path) -> Result<Self, ToolchainError> {
        let asked = Command::new(compiler)
            .args(["--print", "sysroot"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .map_err(ToolchainError::Compiler)?;
        if !asked.status.success() {
            return Err(ToolchainError::Compiler(io::Error::other(
                asked.status.to_string(),
            )));
        }
        let sysroot = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim_end());
        Ok(Self {
            sysroot,
            folder: folder.to_owned(),
        })
    }

    /// Where the target's libraries stand once they are there.
    pub fn libraries(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib").join(TARGET).join("lib")
    }

    /// Whether the target's libraries are there.
    ///
    /// # Errors
    /// They are not.
    pub fn check(&self) -> Result<(), ToolchainError> {
        let core = |file: &io::Result<std::fs::DirEntry>| {
            file.as_ref()
                .is_ok_and(|file| file.file_name().to_string_lossy().starts_with("libcore-"))
        };
        let is_there = std::fs::read_dir(self.libraries())
            .is_ok_and(|mut files| files.any(|file| core(&file)));
        is_there
            .then_some(())
            .ok_or_else(|| ToolchainError::NoTarget(self.sysroot.clone()))
    }

    /// Has rustup add the target's libraries where they are missing. What rustup says goes to standard error.
    ///
    /// # Errors
    /// They are missing still: there is no rustup, or it cannot add them.
    pub fn complete(&self) -> Result<(), ToolchainError> {
        if self.check().is_ok() {
            return Ok(());
        }
        // Whatever became of it, what counts is whether the libraries are there.
        Command::new("rustup")
            .args(["target", "add", TARGET])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .ok();
        self.check()
    }
}

/// What the host's build script tells cargo in a profile (`debug` or `release`): without the target a debug build, which is
/// there to run plugins of this workspace, ends before its long part; a release build may be for another machine.
pub fn told_to_cargo(toolchain: Result<Toolchain, ToolchainError>, profile: &str) -> String {
    let (checked, watched) = match toolchain {
        Ok(toolchain) => (toolchain.check(), Some(toolchain.libraries())),
        Err(error) => (Err(error), None),
    };
    let mut told = String::from("cargo::rerun-if-changed=build.rs\n");
    if let Some(libraries) = watched {
        told += &format!("cargo::rerun-if-changed={}\n", libraries.display());
    }
    match (checked, profile) {
        (Ok(()), _) => {}
        (Err(error), "release") => told += &format!("cargo::warning={error}\n"),
        (Err(error), _) => told += &format!("cargo::error={error}\n"),
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain(sysroot: &Path) -> Result<Toolchain, ToolchainError> {
        Ok(Toolchain {
            sysroot: sysroot.to_owned(),
            folder: sysroot.to_owned(),
        })
    }

    #[track_caller]
    fn check(told: &str, expected: &[&str]) {
        let lines: Vec<&str> = told
            .lines()
            .filter(|line| !line.starts_with("cargo::rerun-if-changed="))
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn without_the_target_a_debug_build_stops_and_a_release_build_warns_in_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = format!(
            "the Rust toolchain {} has no libraries for the plugin target wasm32-wasip2; run \
             `rustup target add wasm32-wasip2` in the workspace folder",
            folder.path().display()
        );
        check(
            &told_to_cargo(toolchain(folder.path()), "debug"),
            &[&format!("cargo::error={line}")],
        );
        check(
            &told_to_cargo(toolchain(folder.path()), "release"),
            &[&format!("cargo::warning={line}")],
        );
        // The folder alone is what a removed target leaves.
        let libraries = folder.path().join("lib/rustlib/wasm32-wasip2/lib");
        std::fs::create_dir_all(&libraries).expect("a folder");
        check(
            &told_to_cargo(toolchain(folder.path()), "debug"),
            &[&format!("cargo::error={line}")],
        );
        std::fs::write(libraries.join("libcore-0123.rlib"), "").expect("a file");
        check(&told_to_cargo(toolchain(folder.path()), "debug"), &[]);
        let watched = format!("cargo::rerun-if-changed={}\n", libraries.display());
        assert!(told_to_cargo(toolchain(folder.path()), "debug").contains(&watched));
    }
}
