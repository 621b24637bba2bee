//! The configuration file as it is written: each field with its default, unknown keys are errors. What it means, and whether
//! it may be, is the parent's to say.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::databases::WrittenIpDatabase;
use super::resolvers::ClientSubnet;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
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
    /// Files in the MaxMind DB format, by their names in grants: `city = { files = ["city-ipv4.mmdb", "city-ipv6.mmdb"],
    /// title = "Cities", license = "CC-BY-4.0" }`. Without any, those that `switchbay data fetch` left in the data folder serve.
    pub(super) ip_databases: BTreeMap<String, WrittenIpDatabase>,
}

/// What the process and its listeners may hold, and how long requests may take. Each listener, the public one and
/// the operator's, has these places for itself.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenLimits {
    /// Connections of a listener. One more closes the longest idle one of the address that holds the most.
    pub(super) connections: usize,
    /// Requests of known callers under way. More are answered 503 with `Retry-After`. A fourth as many again wait
    /// in the lobby, where callers are not known yet.
    pub(super) in_flight: usize,
    /// Bytes of answers that clients have not taken yet.
    pub(super) unsent_bytes: usize,
    /// The same of one connection.
    pub(super) connection_unsent_bytes: usize,
    /// Plugin instances that may live at once. Half are kept for revisions that are draining.
    pub(super) instances: u32,
    /// Milliseconds for the first bytes of a connection and for the head of a request.
    pub(super) header_ms: u64,
    /// Milliseconds for a request's body.
    pub(super) body_ms: u64,
    /// Milliseconds for a whole request, and as long again for its answer to be taken.
    pub(super) request_ms: u64,
    /// Milliseconds after which an answer is given up of which the client takes nothing.
    pub(super) write_ms: u64,
    /// Milliseconds after which a connection without requests is closed.
    pub(super) idle_ms: u64,
    /// Milliseconds that running requests have when the process stops.
    pub(super) drain_ms: u64,
    /// Bytes of memory for the process that compiles a component.
    pub(super) compile_memory: u64,
    /// Seconds of processor time for that process.
    pub(super) compile_cpu_seconds: u64,
    /// Milliseconds for that process altogether. It gives way to whatever serves, so this is more than its
    /// processor time.
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

/// The operator's own web pages, which may call without a credential the operations that have an allowance for each
/// address.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenFirstParty {
    /// Origins of those pages, such as `https://www.example.com`. None turns this off.
    pub(super) origins: Vec<String>,
    /// Stands in `[peers]`.
    #[serde(skip_serializing)]
    #[schemars(skip)]
    pub(super) trusted_proxies: Option<toml::Value>,
}

/// What one address may have of a listener. An IPv6 client is its /64.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenPeers {
    /// Addresses or networks, such as `10.0.0.0/8`, whose `X-Forwarded-For` is believed and whose own connections
    /// are not limited as a peer's.
    pub(super) trusted_proxies: Vec<String>,
    /// Connections. One more closes the peer's longest idle one; where none is idle, the new one is turned away.
    pub(super) connections: usize,
    /// Requests, in the lobby and beyond. More are answered 503 with `Retry-After`.
    pub(super) in_flight: usize,
    /// Bytes of answers that the peer has not taken.
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

/// Who may call `/mcp` from a web page.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenMcp {
    /// Web origins, such as `https://app.example.com`, that browsers may call from beside the service's own.
    pub(super) origins: Vec<String>,
}

/// The identity provider whose access tokens are accepted. Without this table none are.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenOAuth {
    /// The issuer, to the byte as it stands in `iss` of the tokens: https, or http on loopback.
    pub(super) issuer: String,
    /// Audiences that are accepted beside the service's own.
    #[serde(default)]
    pub(super) audiences: Vec<String>,
    /// Calls a minute of each client and subject.
    #[serde(default = "oauth_per_minute")]
    pub(super) per_minute: u32,
    /// Calls in a calendar month (UTC) of each client and subject. Without it there is no limit.
    #[serde(default)]
    pub(super) per_month: Option<u64>,
    /// Milliseconds for fetching the issuer's keys.
    #[serde(default = "oauth_fetch_ms")]
    pub(super) fetch_ms: u64,
    /// Milliseconds after which keys are fetched again, when a token comes.
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

/// What calls of self-service keys cost.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenCredits {
    /// Calls at once of an account that has no number of its own.
    pub(super) concurrency: u32,
    /// Credits of a call, by plugin and operation, in place of what the plugin's description says:
    /// `[credits.costs.bank-qr]` with `generate = 2`.
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

/// How plugins reach the network.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenEgress {
    /// Destinations that are sent somewhere else: `"api.example.com:443" = "10.0.0.5:8443"`. The address is not
    /// judged, and only a grant that names the host reaches it; `{ to = "10.0.0.5:8443", public = true }` opens it
    /// to `public` and wildcards too.
    pub(super) connect_to: BTreeMap<String, WrittenConnectTo>,
    /// Name servers, such as `9.9.9.9:53`. Without any, those of the system are used.
    pub(super) dns_servers: Vec<SocketAddr>,
    /// PEM files with root certificates that are trusted beside those of the system.
    pub(super) extra_roots: Vec<PathBuf>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
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

/// The resolvers that `dns:NAME` lends.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenDns {
    /// DNS over HTTPS and HTTP/2, by name: `cloudflare = "https://cloudflare-dns.com/dns-query"`, or `{ url =
    /// "https://dns.google/dns-query", client_subnet = "withheld" }`, which tells the resolver not to pass on where
    /// a question comes from; `"unsaid"` says nothing of it. `cloudflare` and `google` are there unless they are
    /// written otherwise.
    pub(super) resolvers: BTreeMap<String, WrittenResolver>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
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

/// The forward proxy, the same way out for programs that run for a plugin.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenProxy {
    /// Its address, on loopback. Port 0 is any.
    pub(super) listen: SocketAddr,
    /// Connections at once. More wait in the kernel's backlog.
    pub(super) connections: usize,
    /// Milliseconds for the head of a request, from the connection's start.
    pub(super) head_ms: u64,
    /// Milliseconds after which a tunnel or a request in which nothing moves is ended.
    pub(super) idle_ms: u64,
    /// Milliseconds for a whole tunnel or request.
    pub(super) total_ms: u64,
    /// Bytes of one tunnel or request, both ways together.
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

/// How many jobs each plugin may have. Above `open` or a limit that begins with `owner_` a new job is refused;
/// above `running` and `owner_running` jobs wait. An owner here is a caller: all keys of one account are one.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenJobs {
    /// Jobs that run at once. The last quarter is for callers that run none.
    pub(super) running: usize,
    /// Jobs that wait or run. The last quarter is for callers that have none.
    pub(super) open: usize,
    /// Jobs of one caller that run at once.
    pub(super) owner_running: usize,
    /// Jobs of one caller that wait or run.
    pub(super) owner_open: usize,
    /// Jobs of one caller that are kept, those that have ended included.
    pub(super) owner_kept: usize,
    /// Bytes that are kept for one caller. Above it no new job is accepted.
    pub(super) owner_bytes: u64,
    /// Seconds of processor time of one job over all its runs. One that needs more fails with `RATE_LIMITED`.
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

/// What one caller may have of each plugin. All keys of one account are one caller, and so is a /64 of IPv6.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenShares {
    /// Calls that wait for a place behind the caller's own. More are answered 503 with `Retry-After`.
    pub(super) waiting: usize,
    /// Seconds of processor time in a minute, of calls and jobs. Above it calls are answered 429 and jobs wait.
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
