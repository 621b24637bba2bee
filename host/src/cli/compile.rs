//! `switchbay compile-component`: the process that a server starts for each component which is not in its cache.
//!
//! What it does stands in `registry::compiler`, beside the end that starts it; here are its arguments and its program.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::runtime::compiler;

#[derive(Args)]
pub(super) struct CompileArguments {
    /// Memory that this process may use, in bytes
    #[arg(long, value_name = "BYTES")]
    memory: u64,
    /// Processor time that this process may use, in seconds
    #[arg(long, value_name = "SECONDS")]
    cpu_seconds: u64,
    /// The file to create for the compiled code
    output: PathBuf,
}

pub(super) fn compile_component(arguments: &CompileArguments) -> ExitCode {
    compiler::compile_component(arguments.memory, arguments.cpu_seconds, &arguments.output)
}

/// This program. On Linux by the name that stays its own when its file is replaced, so that an upgrade on disk cannot give
/// a running server another version's compiler.
pub(super) fn program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe()
    }
}
