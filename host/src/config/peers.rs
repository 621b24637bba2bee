//! Peers: which proxies are believed of addresses, and how much one address may have.

use std::net::IpAddr;

use ipnet::IpNet;

use super::written::{WrittenLimits, WrittenPeers};
use super::{ConfigError, within};

/// How much of a listener there is.
#[derive(Clone, Copy, Debug)]
pub struct PlaceLimits {
    /// Connections at once.
    pub connections: usize,
    /// Requests of known callers under way at once, until their answers are sent.
    pub in_flight: usize,
    /// Bytes of answers that were made and are not sent.
    pub unsent_bytes: usize,
    /// The same of one connection that is no trusted proxy's. One answer is always taken.
    pub connection_unsent_bytes: usize,
    /// Connections of one peer.
    pub peer_connections: usize,
    /// Requests of one peer, wherever they stand.
    pub peer_in_flight: usize,
    /// Unsent bytes of one peer. One answer is always taken.
    pub peer_unsent_bytes: usize,
}

/// Checks what was written of the places of a listener.
pub(super) fn places(
    limits: &WrittenLimits,
    peers: &WrittenPeers,
) -> Result<PlaceLimits, ConfigError> {
    let bytes = |name, bytes| within(name, bytes, 65_536, 1 << 40);
    Ok(PlaceLimits {
        connections: within("limits.connections", limits.connections, 1, 1_000_000)?,
        in_flight: within("limits.in_flight", limits.in_flight, 1, 1_000_000)?,
        unsent_bytes: bytes("limits.unsent_bytes", limits.unsent_bytes)?,
        connection_unsent_bytes: bytes(
            "limits.connection_unsent_bytes",
            limits.connection_unsent_bytes,
        )?,
        peer_connections: within("peers.connections", peers.connections, 1, 1_000_000)?,
        peer_in_flight: within("peers.in_flight", peers.in_flight, 1, 1_000_000)?,
        peer_unsent_bytes: bytes("peers.unsent_bytes", peers.unsent_bytes)?,
    })
}

/// Addresses, or networks such as `10.0.0.0/8`.
pub(super) fn trusted_proxies(
    written: &[String],
    at_old_place: Option<&toml::Value>,
) -> Result<Vec<IpNet>, ConfigError> {
    if at_old_place.is_some() {
        return Err(ConfigError::Moved {
            name: "first_party.trusted_proxies",
            to: "peers.trusted_proxies",
        });
    }
    let network = |text: &String| {
        let network = text
            .parse::<IpNet>()
            .ok()
            .or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        network.ok_or_else(|| {
            let rule = "an address or a network such as 10.0.0.0/8";
            ConfigError::value("peers.trusted_proxies", text, rule)
        })
    };
    written.iter().map(network).collect()
}
