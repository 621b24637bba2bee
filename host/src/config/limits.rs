//! How long a connection and its requests may take, and how much compiling a component may.
//!
//! Must not know who keeps these limits.

use std::time::Duration;

use super::written::WrittenLimits;
use super::{ConfigError, time, within};

/// Limits of the process that compiles one component.
#[derive(Clone, Copy, Debug)]
pub struct Compile {
    /// Memory that it may have for its own data.
    pub memory_bytes: u64,
    /// Processor time; the kernel counts whole seconds.
    pub cpu_seconds: u64,
    /// From its start to its end. It gives way to whatever serves, so this is more than its processor time.
    pub wall: Duration,
}

/// Limits of connections and requests.
#[derive(Clone, Copy, Debug)]
pub struct Transport {
    /// For the head of a request, from its first byte (of the first one from the connection's start), and for a peer to
    /// close a connection that we ended.
    pub header: Duration,
    /// For a request's body.
    pub body: Duration,
    /// For a whole request, from its head to its answer, and as long again for the peer to take that.
    pub request: Duration,
    /// For a peer that takes nothing of an answer.
    pub write: Duration,
    /// After which a connection without requests is closed.
    pub idle: Duration,
    /// For running requests to end when the process stops.
    pub drain: Duration,
}

impl Transport {
    /// Checks what was written.
    pub(super) fn read(written: &WrittenLimits) -> Result<Self, ConfigError> {
        Ok(Self {
            header: time("limits.header_ms", written.header_ms)?,
            body: time("limits.body_ms", written.body_ms)?,
            request: time("limits.request_ms", written.request_ms)?,
            write: time("limits.write_ms", written.write_ms)?,
            idle: time("limits.idle_ms", written.idle_ms)?,
            drain: time("limits.drain_ms", written.drain_ms)?,
        })
    }
}

impl Compile {
    /// Checks what was written.
    pub(super) fn read(written: &WrittenLimits) -> Result<Self, ConfigError> {
        let (memory, cpu) = (written.compile_memory, written.compile_cpu_seconds);
        Ok(Self {
            memory_bytes: within("limits.compile_memory", memory, 16 << 20, 1 << 40)?,
            cpu_seconds: within("limits.compile_cpu_seconds", cpu, 1, 3600)?,
            wall: time("limits.compile_wall_ms", written.compile_wall_ms)?,
        })
    }
}
