//! Compiling, in a process of its own: whoever wrote a component decides how much processor and memory its compiler takes.
//!
//! Both ends are here. The host starts its own program again as `switchbay compile-component`, writes the component to its
//! standard input and waits for a file; the child limits itself before it reads a byte. It has no environment, so it knows
//! no secret, and it must never start an instance pool: that reserves more address space than it may have.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};

use rustix::process::{Resource, Rlimit, Signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use wasmtime::{Engine, OutOfMemory};

use super::components::COMPONENT_BYTES_MAX;
use super::engine;
use crate::config::LimitSettings;

/// The child's exit code for a component that cannot be compiled. Its reason is on standard error.
const REFUSED: u8 = 1;
/// The child's exit code where an allocation failed in a way that left it able to say so. 2 is a wrong argument.
const OUT_OF_MEMORY: u8 = 3;
/// The child's exit code for everything that is not the component's fault.
const FAILED: u8 = 4;
/// How much of the child's standard error is kept, in bytes.
const TOLD_BYTES_MAX: u64 = 4096;
/// What Rust's standard library says before it aborts on a failed allocation.
const ABORTED_ALLOCATION: &str = "memory allocation of";
/// The child gives way to whatever serves.
const NICE: i32 = 19;

/// A component that was not compiled. What runs is not touched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompileError {
    #[error("it is not a WebAssembly component: {0}")]
    Refused(String),
    #[error(
        "compiling it takes more than {seconds} s of processor time, the limit in `limits.compile_cpu_seconds`"
    )]
    Processor { seconds: u64 },
    #[error(
        "compiling it takes more than {bytes} bytes of memory, the limit in `limits.compile_memory`"
    )]
    Memory { bytes: u64 },
    #[error(
        "compiling it takes longer than {milliseconds} ms, the limit in `limits.compile_wall_ms`"
    )]
    Wall { milliseconds: u128 },
    #[error("its compiler failed ({status}): {told}")]
    Failed { status: ExitStatus, told: String },
    #[error("its compiler {program} cannot be run: {source}")]
    Run {
        program: PathBuf,
        source: std::io::Error,
    },
}

/// The host's end.
pub(crate) struct ComponentCompiler {
    program: PathBuf,
    limits: LimitSettings,
    /// Held while a component compiles: the limits are one child's, and twenty children are no limit.
    turn: Mutex<()>,
}

impl ComponentCompiler {
    /// Compiles with this `switchbay` program.
    pub(crate) fn new(program: &Path, limits: LimitSettings) -> Self {
        Self {
            program: program.to_owned(),
            limits,
            turn: Mutex::new(()),
        }
    }

    /// Writes the compiled form of a component to a new file, after those that came before. On an error, or when this is
    /// dropped, the child is gone; what it wrote is the caller's to remove.
    pub(crate) async fn compile(
        &self,
        component: &[u8],
        output: &Path,
    ) -> Result<(), CompileError> {
        let _turn = self.turn.lock().await;
        let failed = |source| CompileError::Run {
            program: self.program.clone(),
            source,
        };
        let mut child = self.command(output).spawn().map_err(failed)?;
        let wall = self.limits.compile_wall_ms.time();
        let ended = tokio::time::timeout(wall, converse(&mut child, component)).await;
        match ended {
            Ok(ended) => {
                let (status, told) = ended.map_err(failed)?;
                self.judge(status, told)
            }
            Err(_) => {
                child.kill().await.map_err(failed)?;
                Err(CompileError::Wall {
                    milliseconds: wall.as_millis(),
                })
            }
        }
    }

    fn command(&self, output: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg0("switchbay")
            .arg("compile-component")
            .args(["--memory", &self.limits.compile_memory.to_string()])
            .args([
                "--cpu-seconds",
                &self.limits.compile_cpu_seconds.to_string(),
            ])
            .arg(output)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    fn judge(&self, status: ExitStatus, told: String) -> Result<(), CompileError> {
        let exit = status.code().and_then(|code| u8::try_from(code).ok());
        let ended_by = |signal: Signal| status.signal() == Some(signal.as_raw());
        if status.success() {
            return Ok(());
        }
        if ended_by(Signal::XCPU) {
            return Err(CompileError::Processor {
                seconds: self.limits.compile_cpu_seconds,
            });
        }
        if exit == Some(OUT_OF_MEMORY)
            || ended_by(Signal::ABORT) && told.contains(ABORTED_ALLOCATION)
        {
            return Err(CompileError::Memory {
                bytes: self.limits.compile_memory,
            });
        }
        match exit {
            Some(REFUSED) => Err(CompileError::Refused(told)),
            _ => Err(CompileError::Failed { status, told }),
        }
    }
}

/// Gives the child its component and hears what it says until it ends.
async fn converse(child: &mut Child, component: &[u8]) -> std::io::Result<(ExitStatus, String)> {
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let give = async {
        if let Some(mut stdin) = stdin {
            // A child that ends before it has read everything breaks the pipe; its status says why it ended.
            stdin.write_all(component).await.ok();
        }
    };
    let hear = async {
        let mut told = Vec::new();
        if let Some(mut stderr) = stderr {
            (&mut stderr)
                .take(TOLD_BYTES_MAX)
                .read_to_end(&mut told)
                .await?;
            tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await?;
        }
        // wasmtime's messages may have several lines; an error has one.
        Ok::<_, std::io::Error>(
            String::from_utf8_lossy(&told)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        )
    };
    let ((), told, status) = tokio::join!(give, hear, child.wait());
    Ok((status?, told?))
}

/// The child's whole work: from standard input to a new file at `output`, within limits of its own.
pub(crate) fn compile_component(memory_bytes: u64, cpu_seconds: u64, output: &Path) -> ExitCode {
    let done = limit_self(memory_bytes, cpu_seconds)
        .map_err(Fault::Limits)
        .and_then(|()| compile(output));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            // A host that no longer listens has given up on this process.
            writeln!(std::io::stderr(), "{fault}").ok();
            ExitCode::from(fault.exit_code())
        }
    }
}

/// What the child ends with.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("cannot limit itself: {0}")]
    Limits(#[source] rustix::io::Errno),
    #[error("cannot read the component: {0}")]
    Read(#[source] std::io::Error),
    #[error("the component has more than {COMPONENT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("cannot start the compiler: {0:#}")]
    Start(#[source] wasmtime::Error),
    #[error("{0:#}")]
    Compile(#[source] wasmtime::Error),
    #[error("cannot write the compiled code: {0}")]
    Write(#[source] std::io::Error),
}

impl Fault {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Start(error) | Self::Compile(error) if is_out_of_memory(error) => OUT_OF_MEMORY,
            Self::Compile(_) => REFUSED,
            Self::Read(error) | Self::Write(error)
                if error.kind() == std::io::ErrorKind::OutOfMemory =>
            {
                OUT_OF_MEMORY
            }
            Self::Limits(_) | Self::Read(_) | Self::TooLarge | Self::Start(_) | Self::Write(_) => {
                FAILED
            }
        }
    }
}

/// Whether an allocation or a mapping failed.
fn is_out_of_memory(error: &wasmtime::Error) -> bool {
    error.is::<OutOfMemory>()
        || error.chain().any(|cause| {
            cause.is::<OutOfMemory>()
                || cause.downcast_ref::<rustix::io::Errno>() == Some(&rustix::io::Errno::NOMEM)
                || cause
                    .downcast_ref::<std::io::Error>()
                    .is_some_and(|e| e.kind() == std::io::ErrorKind::OutOfMemory)
        })
}

fn compile(output: &Path) -> Result<(), Fault> {
    let mut component = Vec::new();
    std::io::stdin()
        .lock()
        .take(COMPONENT_BYTES_MAX + 1)
        .read_to_end(&mut component)
        .map_err(Fault::Read)?;
    if u64::try_from(component.len()).is_ok_and(|bytes| bytes > COMPONENT_BYTES_MAX) {
        return Err(Fault::TooLarge);
    }
    let engine = Engine::new(&engine::code_configuration()).map_err(Fault::Start)?;
    let compiled = engine
        .precompile_component(&component)
        .map_err(Fault::Compile)?;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(output)
        .map_err(Fault::Write)?;
    file.write_all(&compiled).map_err(Fault::Write)
}

/// `RLIMIT_DATA` counts what may be written and is private, so that mapped programs and reserved room are free.
fn limit_self(memory_bytes: u64, cpu_seconds: u64) -> rustix::io::Result<()> {
    rustix::process::nice(NICE)?;
    limit(Resource::Core, 0, 0)?;
    limit(Resource::Data, memory_bytes, memory_bytes)?;
    // At the first the kernel sends XCPU, which tells the host what happened; at the second it kills.
    limit(Resource::Cpu, cpu_seconds, cpu_seconds + 1)
}

/// Sets a limit, or keeps a stricter one that this process was started with.
fn limit(resource: Resource, current: u64, maximum: u64) -> rustix::io::Result<()> {
    let inherited = rustix::process::getrlimit(resource)
        .maximum
        .unwrap_or(u64::MAX);
    let limit = Rlimit {
        current: Some(current.min(inherited)),
        maximum: Some(maximum.min(inherited)),
    };
    rustix::process::setrlimit(resource, limit)
}
