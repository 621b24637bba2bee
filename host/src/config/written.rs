//! The configuration file as it is written: each field with its default, unknown keys are errors. What it means, and whether
//! it may be, is the parent's to say.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::databases::WrittenIpDatabase;
use super::resolvers::ClientSubnet;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenConfig {
    pub(super) limits: WrittenLimits,
    pub(super) peers: WrittenPeers,
    pub(super) mcp: WrittenMcp,
    pub(super) oauth: Option<WrittenOAuth>,
    pub(super) credits: WrittenCredits,
    pub(super) first_party: WrittenFirstParty,
    pub(super) egress: WrittenEgress,
    pub(super) dns: WrittenDns,
    pub(super) proxy: WrittenProxy,
    pub(super) jobs: WrittenJobs,
    pub(super) shares: WrittenShares,
    pub(super) ip_databases: BTreeMap<String, WrittenIpDatabase>,
}

/// Each field with its default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenLimits {
    pub(super) connections: usize,
    pub(super) in_flight: usize,
    pub(super) unsent_bytes: usize,
    pub(super) connection_unsent_bytes: usize,
    pub(super) instances: u32,
    pub(super) header_ms: u64,
    pub(super) body_ms: u64,
    pub(super) request_ms: u64,
    pub(super) write_ms: u64,
    pub(super) idle_ms: u64,
    pub(super) drain_ms: u64,
    pub(super) compile_memory: u64,
    pub(super) compile_cpu_seconds: u64,
    pub(super) compile_wall_ms: u64,
}

impl Default for WrittenLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            in_flight: 2048,
            unsent_bytes: 256 << 20,
            connection_unsent_bytes: 16 << 20,
            instances: 1024,
            header_ms: 10_000,
            body_ms: 15_000,
            request_ms: 180_000,
            write_ms: 30_000,
            idle_ms: 75_000,
            drain_ms: 30_000,
            compile_memory: 2 << 30,
            compile_cpu_seconds: 120,
            compile_wall_ms: 300_000,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenFirstParty {
    /// Origins such as `https://www.example.com`; none turns it off.
    pub(super) origins: Vec<String>,
    /// Stands in `[peers]`.
    pub(super) trusted_proxies: Option<toml::Value>,
}

/// Each field with its default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenPeers {
    /// Addresses or networks such as `10.0.0.0/8`.
    pub(super) trusted_proxies: Vec<String>,
    pub(super) connections: usize,
    pub(super) in_flight: usize,
    pub(super) unsent_bytes: usize,
}

impl Default for WrittenPeers {
    fn default() -> Self {
        Self {
            trusted_proxies: Vec::new(),
            connections: 256,
            in_flight: 128,
            unsent_bytes: 64 << 20,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenMcp {
    /// Origins such as `https://app.example.com`.
    pub(super) origins: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenOAuth {
    pub(super) issuer: String,
    #[serde(default)]
    pub(super) audiences: Vec<String>,
    #[serde(default = "oauth_per_minute")]
    pub(super) per_minute: u32,
    #[serde(default)]
    pub(super) per_month: Option<u64>,
    #[serde(default = "oauth_fetch_ms")]
    pub(super) fetch_ms: u64,
    #[serde(default = "oauth_renew_ms")]
    pub(super) renew_ms: u64,
}

fn oauth_per_minute() -> u32 {
    60
}

fn oauth_fetch_ms() -> u64 {
    5000
}

fn oauth_renew_ms() -> u64 {
    600_000
}

/// Each field with its default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenCredits {
    pub(super) concurrency: u32,
    pub(super) costs: BTreeMap<String, BTreeMap<String, u32>>,
}

impl Default for WrittenCredits {
    fn default() -> Self {
        Self {
            concurrency: 5,
            costs: BTreeMap::new(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenEgress {
    /// `"api.example.com:443" = "127.0.0.1:8443"`.
    pub(super) connect_to: BTreeMap<String, WrittenConnectTo>,
    pub(super) dns_servers: Vec<SocketAddr>,
    pub(super) extra_roots: Vec<PathBuf>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected an address and a port, such as \"10.0.0.5:8443\", or a table with `to` and optionally \
        `public`"
)]
pub(super) enum WrittenConnectTo {
    Address(SocketAddr),
    Row {
        to: SocketAddr,
        #[serde(default)]
        public: bool,
    },
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenDns {
    /// `cloudflare = "https://cloudflare-dns.com/dns-query"`; those that are not written keep their defaults.
    pub(super) resolvers: BTreeMap<String, WrittenResolver>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a URL, or a table with `url` and optionally `client_subnet`, which is \"unsaid\" or \
        \"withheld\""
)]
pub(super) enum WrittenResolver {
    Url(String),
    Row {
        url: String,
        #[serde(default)]
        client_subnet: ClientSubnet,
    },
}

/// Each field with its default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenProxy {
    pub(super) listen: SocketAddr,
    pub(super) connections: usize,
    pub(super) head_ms: u64,
    pub(super) idle_ms: u64,
    pub(super) total_ms: u64,
    pub(super) bytes: u64,
}

impl Default for WrittenProxy {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            connections: 256,
            head_ms: 10_000,
            idle_ms: 60_000,
            total_ms: 600_000,
            bytes: 256 << 20,
        }
    }
}

/// Each field with its default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenJobs {
    pub(super) running: usize,
    pub(super) open: usize,
    pub(super) owner_running: usize,
    pub(super) owner_open: usize,
    pub(super) owner_kept: usize,
    pub(super) owner_bytes: u64,
    pub(super) cpu_seconds: u64,
}

impl Default for WrittenJobs {
    fn default() -> Self {
        Self {
            running: 8,
            open: 512,
            owner_running: 2,
            owner_open: 16,
            owner_kept: 512,
            owner_bytes: 256 << 20,
            cpu_seconds: 60,
        }
    }
}

/// Each field with its default.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenShares {
    pub(super) waiting: usize,
    pub(super) cpu_seconds: u64,
}

impl Default for WrittenShares {
    fn default() -> Self {
        Self {
            waiting: 64,
            cpu_seconds: 30,
        }
    }
}
