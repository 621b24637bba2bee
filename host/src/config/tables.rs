//! The tables of the configuration file whose settings are numbers and names.
//!
//! Must not know who keeps these limits.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;

use super::table::{Milliseconds, Seconds, TIME, within};
use super::{ConfigError, origins};

settings! {
    /// What the process and its listeners may hold, and how long requests may take. Each listener, the public one and
    /// the operator's, has these places for itself.
    #[derive(Copy)]
    LimitSettings "limits" {
        /// Connections of a listener. One more closes the longest idle one of the address that holds the most.
        connections: usize = 4096, in 1..=1_000_000;
        /// Requests of known callers under way. More are answered 503 with `Retry-After`. A fourth as many again wait
        /// in the lobby, where callers are not known yet.
        in_flight: usize = 2048, in 1..=1_000_000;
        /// Bytes of answers that clients have not taken yet.
        unsent_bytes: usize = 256 << 20, in 65_536..=1 << 40;
        /// The same of one connection.
        connection_unsent_bytes: usize = 16 << 20, in 65_536..=1 << 40;
        /// Plugin instances that may live at once. Half are kept for revisions that are draining.
        instances: u32 = 1024, in 2..=100_000;
        /// Milliseconds for the first bytes of a connection and for the head of a request.
        header_ms: Milliseconds = Milliseconds(10_000), in TIME;
        /// Milliseconds for a request's body.
        body_ms: Milliseconds = Milliseconds(15_000), in TIME;
        /// Milliseconds for a whole request, and as long again for its answer to be taken.
        request_ms: Milliseconds = Milliseconds(180_000), in TIME;
        /// Milliseconds after which an answer is given up of which the client takes nothing.
        write_ms: Milliseconds = Milliseconds(30_000), in TIME;
        /// Milliseconds after which a connection without requests is closed.
        idle_ms: Milliseconds = Milliseconds(75_000), in TIME;
        /// Milliseconds that running requests have when the process stops.
        drain_ms: Milliseconds = Milliseconds(30_000), in TIME;
        /// Bytes of memory for the process that compiles a component.
        compile_memory: u64 = 2 << 30, in 16 << 20..=1 << 40;
        /// Seconds of processor time for that process.
        compile_cpu_seconds: u64 = 120, in 1..=3600;
        /// Milliseconds for that process altogether. It gives way to whatever serves, so this is more than its
        /// processor time.
        compile_wall_ms: Milliseconds = Milliseconds(300_000), in TIME;
    }
}

settings! {
    /// What one address may have of a listener. An IPv6 client is its /64.
    PeerSettings "peers" {
        /// Addresses or networks, such as `10.0.0.0/8`, whose `X-Forwarded-For` is believed and whose own connections
        /// are not limited as a peer's.
        trusted_proxies: Vec<String> = Vec::new(), by networks;
        /// Connections. One more closes the peer's longest idle one; where none is idle, the new one is turned away.
        connections: usize = 256, in 1..=1_000_000;
        /// Requests, in the lobby and beyond. More are answered 503 with `Retry-After`.
        in_flight: usize = 128, in 1..=1_000_000;
        /// Bytes of answers that the peer has not taken.
        unsent_bytes: usize = 64 << 20, in 65_536..=1 << 40;
    }
}

impl PeerSettings {
    /// Proxies whose word on a client's address counts.
    pub(crate) fn trusted_networks(&self) -> Vec<IpNet> {
        self.trusted_proxies
            .iter()
            .filter_map(|text| network(text))
            .collect()
    }
}

/// An address, or a network such as `10.0.0.0/8`.
fn network(text: &str) -> Option<IpNet> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse().ok().or_else(address)
}

fn networks(name: &'static str, written: &[String]) -> Result<(), ConfigError> {
    match written.iter().find(|text| network(text).is_none()) {
        Some(wrong) => {
            let rule = "an address or a network such as 10.0.0.0/8";
            Err(ConfigError::value(name, wrong, rule))
        }
        None => Ok(()),
    }
}

settings! {
    /// Who may call `/mcp` from a web page.
    McpSettings "mcp" {
        /// Web origins, such as `https://app.example.com`, that browsers may call from beside the service's own.
        origins: Vec<String> = Vec::new(), by origins;
    }
}

settings! {
    /// What calls of self-service keys cost.
    Credits "credits" {
        /// Calls at once of an account that has no number of its own.
        concurrency: u32 = 5, in 1..=100_000;
        /// Credits of a call, by plugin and operation, in place of what the plugin's description says:
        /// `[credits.costs.bank-qr]` with `generate = 2`.
        costs: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new(), in 0..=1_000_000;
    }
}

impl Credits {
    /// The configured price of an operation.
    pub(crate) fn cost(&self, plugin: &str, operation: &str) -> Option<u32> {
        self.costs.get(plugin)?.get(operation).copied()
    }
}

settings! {
    /// The operator's own web pages, which may call without a credential the operations that have an allowance for each
    /// address.
    FirstPartySettings "first_party" {
        /// Origins of those pages, such as `https://www.example.com`. None turns this off.
        origins: Vec<String> = Vec::new(), by origins;
        /// Stands in `[peers]`.
        #[serde(skip_serializing)]
        #[schemars(skip)]
        trusted_proxies: Option<toml::Value> = None, by moved_to_peers;
    }
}

fn moved_to_peers(name: &'static str, written: &Option<toml::Value>) -> Result<(), ConfigError> {
    match written {
        Some(_) => Err(ConfigError::Moved {
            name,
            to: "peers.trusted_proxies",
        }),
        None => Ok(()),
    }
}

settings! {
    /// The forward proxy, the same way out for programs that run for a plugin.
    #[derive(Copy)]
    ProxySettings "proxy" {
        /// Its address, on loopback. Port 0 is any.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 0)), by loopback;
        /// Connections at once. More wait in the kernel's backlog.
        connections: usize = 256, in 1..=100_000;
        /// Milliseconds for the head of a request, from the connection's start.
        head_ms: Milliseconds = Milliseconds(10_000), in TIME;
        /// Milliseconds after which a tunnel or a request in which nothing moves is ended.
        idle_ms: Milliseconds = Milliseconds(60_000), in TIME;
        /// Milliseconds for a whole tunnel or request.
        total_ms: Milliseconds = Milliseconds(600_000), in TIME;
        /// Bytes of one tunnel or request, both ways together.
        bytes: u64 = 256 << 20, in 1024..=1 << 40;
    }
}

fn loopback(name: &'static str, listen: &SocketAddr) -> Result<(), ConfigError> {
    if listen.ip().is_loopback() {
        return Ok(());
    }
    let rule = "a loopback address such as 127.0.0.1:0, because credentials are sent in cleartext";
    Err(ConfigError::value(name, listen.to_string(), rule))
}

settings! {
    /// How many jobs each plugin may have. Above `open` or a limit that begins with `owner_` a new job is refused;
    /// above `running` and `owner_running` jobs wait. An owner here is a caller: all keys of one account are one.
    #[derive(Copy)]
    JobLimits "jobs" {
        /// Jobs that run at once. The last quarter is for callers that run none.
        running: usize = 8, in 1..=1000;
        /// Jobs that wait or run. The last quarter is for callers that have none.
        open: usize = 512, in 1..=100_000;
        /// Jobs of one caller that run at once.
        owner_running: usize = 2, in 1..=1000;
        /// Jobs of one caller that wait or run.
        owner_open: usize = 16, in 1..=100_000;
        /// Jobs of one caller that are kept, those that have ended included.
        owner_kept: usize = 512, in 1..=100_000;
        /// Bytes that are kept for one caller. Above it no new job is accepted.
        owner_bytes: u64 = 256 << 20, in 1 << 20..=1 << 40;
        /// Seconds of processor time of one job over all its runs. One that needs more fails with `RATE_LIMITED`.
        #[serde(rename = "cpu_seconds", with = "whole_seconds")]
        #[schemars(with = "u64")]
        cpu: Duration = Duration::from_secs(60), by job_seconds;
    }
}

fn job_seconds(_: &'static str, cpu: &Duration) -> Result<(), ConfigError> {
    within("jobs.cpu_seconds", &cpu.as_secs(), 1..=3600)
}

/// A time that is written as whole seconds.
mod whole_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.as_secs())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_secs)
    }
}

settings! {
    /// What one caller may have of each plugin. All keys of one account are one caller, and so is a /64 of IPv6.
    #[derive(Copy)]
    TenantShares "shares" {
        /// Calls that wait for a place behind the caller's own. More are answered 503 with `Retry-After`.
        waiting: usize = 64, in 0..=10_000;
        /// Seconds of processor time in a minute, of calls and jobs. Above it calls are answered 429 and jobs wait.
        cpu_seconds: Seconds = Seconds(30), in 1..=1_000_000;
    }
}
