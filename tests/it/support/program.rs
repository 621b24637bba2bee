//! System programs that a test runs.

use std::process::Command;
use std::sync::Mutex;

/// Held while a package is installed, because two installations at once fail.
static INSTALLING: Mutex<()> = Mutex::new(());

/// Makes sure that a program of a Debian package is there: installs it where this process may, otherwise names the command
/// that does.
pub(crate) fn ensure(program: &str, package: &str) {
    let _turn = INSTALLING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let found = || succeeds(&format!("command -v {program}"));
    if found() {
        return;
    }
    let installed = succeeds(&format!("apt-get update -qq && apt-get install -y -qq {package}")) && found();
    assert!(installed, "the tests need `{program}`; install it with: sudo apt-get install {package}");
}

fn succeeds(script: &str) -> bool {
    Command::new("sh").args(["-c", script]).output().is_ok_and(|done| done.status.success())
}
