//! The proxy for programs that run for a plugin.

use std::net::SocketAddr;
use std::time::Duration;

use super::written::WrittenProxy;
use super::{ConfigError, time, within};

/// The proxy for programs that run for a plugin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProxySettings {
    /// On loopback; port 0 is any.
    pub(crate) listen: SocketAddr,
    /// Connections at once; more wait in the kernel's backlog.
    pub(crate) connections_max: usize,
    /// For the head of a request, from the connection's start.
    pub(crate) head: Duration,
    /// After which a tunnel or a request in which nothing moves is ended.
    pub(crate) idle: Duration,
    /// For a whole tunnel or request.
    pub(crate) total: Duration,
    /// Of one tunnel or request, both ways together.
    pub(crate) bytes_max: u64,
}

impl ProxySettings {
    /// Checks what was written.
    pub(super) fn read(written: &WrittenProxy) -> Result<Self, ConfigError> {
        let listen = written.listen;
        if !listen.ip().is_loopback() {
            let rule =
                "a loopback address such as 127.0.0.1:0, because credentials are sent in cleartext";
            return Err(ConfigError::value("proxy.listen", listen.to_string(), rule));
        }
        Ok(Self {
            listen,
            connections_max: within("proxy.connections", written.connections, 1, 100_000)?,
            head: time("proxy.head_ms", written.head_ms)?,
            idle: time("proxy.idle_ms", written.idle_ms)?,
            total: time("proxy.total_ms", written.total_ms)?,
            bytes_max: within("proxy.bytes", written.bytes, 1024, 1 << 40)?,
        })
    }
}
