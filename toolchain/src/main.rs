//! What `cargo run` starts: completes the toolchain, then is `cargo run --bin switchbay` with the same arguments.
//!
//! It is compiled in a second, where the host takes minutes: what is missing is added, or said, before the long part. The
//! host's build script would say it late, because cargo does first what most others wait for.
#![expect(
    clippy::print_stderr,
    reason = "the one line that says why nothing is built"
)]

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use switchbay_toolchain::Toolchain;

fn main() -> ExitCode {
    let named =
        |variable: &str, program: &str| env::var_os(variable).unwrap_or_else(|| program.into());
    let done = Toolchain::of(&named("RUSTC", "rustc"), Path::new("."))
        .and_then(|toolchain| toolchain.complete());
    if let Err(error) = done {
        eprintln!("switchbay: {error}");
        return ExitCode::FAILURE;
    }
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    // The profile of this program is the one that was asked for. A binary of all default members has their features, so that
    // nothing is compiled again for `cargo test`.
    let profile: &[&str] = if cfg!(debug_assertions) {
        &[]
    } else {
        &["--release"]
    };
    let mut cargo = Command::new(named("CARGO", "cargo"));
    let failed = cargo
        .args(["run", "--bin", "switchbay"])
        .args(profile)
        .arg("--")
        .args(arguments)
        .exec();
    eprintln!("switchbay: cannot run cargo: {failed}");
    ExitCode::FAILURE
}
