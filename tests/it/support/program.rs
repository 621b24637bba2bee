//! System programs that a test runs.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Held while packages are installed, because two installations at once fail.
static INSTALLING: Mutex<()> = Mutex::new(());

/// Makes sure that programs of Debian packages are there: installs what is missing in one go where this process may, otherwise
/// names the command that does.
pub(crate) fn ensure(programs: &[(&str, &str)]) {
    let _turn = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let missing = || -> Vec<(&str, &str)> {
        programs
            .iter()
            .copied()
            .filter(|(program, _)| !succeeds(&format!("command -v {program}")))
            .collect()
    };
    let absent = missing();
    if absent.is_empty() {
        return;
    }
    let packages: Vec<&str> = absent.iter().map(|(_, package)| *package).collect();
    let packages = packages.join(" ");
    let installed = succeeds(&format!(
        "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 {packages}"
    ));
    let absent: Vec<&str> = missing().into_iter().map(|(program, _)| program).collect();
    assert!(
        installed && absent.is_empty(),
        "the tests need {}; install with: sudo apt-get install {packages}",
        absent.join(", ")
    );
}

/// Where programs are looked for: servers stand where only the administrator's own path leads.
pub(crate) fn path() -> String {
    format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned())
    )
}

fn succeeds(script: &str) -> bool {
    Command::new("sh")
        .env("PATH", path())
        .args(["-c", script])
        .output()
        .is_ok_and(|done| done.status.success())
}
