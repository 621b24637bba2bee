//! Arguments → command → exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    switchbay::cli::run()
}
