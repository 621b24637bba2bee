//! What an address is by itself, and which are public. Pure: the one rule by which every address is judged before it is
//! dialled, and what plugins are told of one.
//!
//! IPv4 is public unless a row says otherwise. IPv6 is an allow rule: only what the world's registries hand out (2000::/3) and
//! of that nothing special, so every form that carries an IPv4 address inside (mapped, translated, 6to4, Teredo) is refused
//! rather than unwrapped: nobody who means a public address writes one of those. The rows follow IANA's special-purpose
//! registries; AS112 and AMT, which those call global, are public here too, and the anycasts of 192.0.0.0/24 and 2001::/23
//! are not, because no site is there. So what is dialled ([`Class::dialable`]) is less than what is global
//! ([`Class::global`]), and both are columns of one answer.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// The special range that it is of, as a message says it (`of a private network`). Most addresses are of none.
    pub(crate) range: Option<&'static str>,
    /// Whether it is of the public network, by IANA's registries.
    pub(crate) global: bool,
    /// Whether this host connects to it. What is not global never is.
    pub(crate) dialable: bool,
}

/// An address that was found public. Nothing else makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Public(IpAddr);

/// An address that is not public, and the block that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address {address} is not public: it is {block}")]
pub(crate) struct NotPublic {
    address: IpAddr,
    block: &'static str,
}

/// A prefix with its length, and what is said of the addresses within it.
type AddressBlock<A> = (A, u32, &'static str);

const fn v4([a, b, c, d]: [u8; 4], length: u32, said: &'static str) -> AddressBlock<Ipv4Addr> {
    (Ipv4Addr::new(a, b, c, d), length, said)
}

/// By its first segments; those that follow are 0.
const fn v6(first: &[u16], length: u32, said: &'static str) -> AddressBlock<Ipv6Addr> {
    let (mut bits, mut at) = (0, 0);
    while at < first.len() {
        bits |= (first[at] as u128) << (112 - 16 * at);
        at += 1;
    }
    (Ipv6Addr::from_bits(bits), length, said)
}

/// What is said of several.
const AS112: &str = "an AS112 address, which serves private reverse DNS";
const CLOUD_SERVICE: &str = "a cloud provider's internal service";
const PORT_CONTROL: &str = "a Port Control Protocol anycast address";

/// Blocks of IPv4 that are not public.
const V4: [AddressBlock<Ipv4Addr>; 17] = [
    v4([0, 0, 0, 0], 8, "reserved for this network"),
    v4([10, 0, 0, 0], 8, "in a private network"),
    v4(
        [100, 64, 0, 0],
        10,
        "shared address space of a carrier-grade NAT",
    ),
    v4([127, 0, 0, 0], 8, "loopback"),
    v4([168, 63, 129, 16], 32, CLOUD_SERVICE),
    v4([169, 254, 0, 0], 16, "link-local"),
    v4([172, 16, 0, 0], 12, "in a private network"),
    v4([192, 0, 0, 0], 24, "reserved for protocol assignments"),
    v4([192, 0, 2, 0], 24, "reserved for documentation"),
    v4([192, 88, 99, 0], 24, "a 6to4 relay"),
    v4([192, 168, 0, 0], 16, "in a private network"),
    v4([198, 18, 0, 0], 15, "reserved for benchmarks"),
    v4([198, 51, 100, 0], 24, "reserved for documentation"),
    v4([203, 0, 113, 0], 24, "reserved for documentation"),
    v4([224, 0, 0, 0], 4, "multicast"),
    v4([255, 255, 255, 255], 32, "broadcast"),
    v4([240, 0, 0, 0], 4, "reserved"),
];

/// What the registries hand out of IPv6.
const V6_HANDED_OUT: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Blocks of IPv6 within that which are not public.
const V6_WITHIN: [AddressBlock<Ipv6Addr>; 5] = [
    v6(&[0x2001, 0], 32, "Teredo, which carries an IPv4 address"),
    v6(&[0x2001], 23, "reserved for protocol assignments"),
    v6(&[0x2001, 0xdb8], 32, "reserved for documentation"),
    v6(&[0x2002], 16, "6to4, which carries an IPv4 address"),
    v6(&[0x3fff], 20, "reserved for documentation"),
];

/// What has no row and is outside of that.
const NOT_HANDED_OUT: &str = "not allocated";

/// Names for what is outside of it. What has no row is not handed out.
const V6_OUTSIDE: [AddressBlock<Ipv6Addr>; 13] = [
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::UNSPECIFIED, 128, "the unspecified address"),
    v6(&[0, 0, 0, 0, 0, 0xffff], 96, "a mapped IPv4 address"),
    v6(&[0, 0, 0, 0, 0xffff], 96, "a translated IPv4 address"),
    v6(&[0], 96, "a compatible IPv4 address"),
    v6(&[0x64, 0xff9b], 96, "a translated IPv4 address"),
    v6(&[0x64, 0xff9b, 1], 48, "a locally translated IPv4 address"),
    v6(&[0x100], 32, "reserved for discarding packets"),
    v6(&[0x5f00], 16, "reserved for segment routing"),
    v6(&[0xfc00], 7, "in a private network"),
    v6(&[0xfe80], 10, "link-local"),
    v6(&[0xfec0], 10, "site-local"),
    v6(&[0xff00], 8, "multicast"),
];

/// Ranges of IPv4 that are special and global all the same. Those that no block above holds are dialled like any other.
const V4_GLOBAL: [AddressBlock<Ipv4Addr>; 6] = [
    v4([168, 63, 129, 16], 32, CLOUD_SERVICE),
    v4([192, 0, 0, 9], 32, PORT_CONTROL),
    v4([192, 0, 0, 10], 32, "a TURN anycast address"),
    v4([192, 31, 196, 0], 24, AS112),
    v4([192, 52, 193, 0], 24, "reserved for multicast relays"),
    v4([192, 175, 48, 0], 24, AS112),
];

/// The same of IPv6.
const V6_GLOBAL: [AddressBlock<Ipv6Addr>; 9] = [
    v6(&[0x64, 0xff9b], 96, "a translated IPv4 address"),
    v6(&[0x2001, 1, 0, 0, 0, 0, 0, 1], 128, PORT_CONTROL),
    v6(
        &[0x2001, 1, 0, 0, 0, 0, 0, 2],
        128,
        "a TURN anycast address",
    ),
    v6(
        &[0x2001, 1, 0, 0, 0, 0, 0, 3],
        128,
        "a service registration anycast address",
    ),
    v6(&[0x2001, 3], 32, "reserved for multicast relays"),
    v6(&[0x2001, 4, 0x112], 48, AS112),
    v6(&[0x2001, 0x20], 28, "an identifier of a key, not of a host"),
    v6(
        &[0x2001, 0x30],
        28,
        "an identifier of a drone, not of a host",
    ),
    v6(&[0x2620, 0x4f, 0x8000], 48, AS112),
];

/// What an address is. One that carries another is judged as it stands: see [`carried`].
pub(crate) fn classify(address: IpAddr) -> Class {
    let (block, global) = match address {
        IpAddr::V4(v4) => (named_v4(v4, &V4), named_v4(v4, &V4_GLOBAL)),
        IpAddr::V6(v6) => (blocked_v6(v6), named_v6(v6, &V6_GLOBAL)),
    };
    Class {
        range: global.or(block),
        global: global.is_some() || block.is_none(),
        dialable: block.is_none(),
    }
}

/// The IPv4 address within an IPv6 address that only stands for it: mapped, translated by the well-known prefix, or 6to4.
pub(crate) fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [first, a, b, .., y, z] = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    let is_translated = is_in(address, V6_GLOBAL[0].0, V6_GLOBAL[0].1);
    match first {
        0x2002 => Some(of(a, b)),
        _ if is_translated => Some(of(y, z)),
        _ => address.to_ipv4_mapped(),
    }
}

impl Public {
    /// Judges an address.
    ///
    /// # Errors
    /// It is not public.
    pub(crate) fn judge(address: IpAddr) -> Result<Self, NotPublic> {
        let class = classify(address);
        if class.dialable {
            Ok(Self(address))
        } else {
            Err(NotPublic {
                address,
                block: class.range.unwrap_or(NOT_HANDED_OUT),
            })
        }
    }

    /// Judges all that a name leads to: one that is not public spoils the name, whatever stands beside it, because whoever
    /// answers for the name chooses which of them is asked next.
    ///
    /// # Errors
    /// The first that is not public.
    pub(crate) fn judge_all(
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> Result<Vec<Self>, NotPublic> {
        addresses.into_iter().map(Self::judge).collect()
    }

    pub(crate) fn address(self) -> IpAddr {
        self.0
    }
}

impl fmt::Display for Public {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn named_v4(address: Ipv4Addr, blocks: &[AddressBlock<Ipv4Addr>]) -> Option<&'static str> {
    let is_in =
        |prefix: Ipv4Addr, length| (address.to_bits() ^ prefix.to_bits()).leading_zeros() >= length;
    let block = blocks.iter().find(|block| is_in(block.0, block.1));
    block.map(|block| block.2)
}

fn blocked_v6(address: Ipv6Addr) -> Option<&'static str> {
    if is_in(address, V6_HANDED_OUT.0, V6_HANDED_OUT.1) {
        named_v6(address, &V6_WITHIN)
    } else {
        Some(named_v6(address, &V6_OUTSIDE).unwrap_or(NOT_HANDED_OUT))
    }
}

fn named_v6(address: Ipv6Addr, blocks: &[AddressBlock<Ipv6Addr>]) -> Option<&'static str> {
    let block = blocks.iter().find(|block| is_in(address, block.0, block.1));
    block.map(|block| block.2)
}

fn is_in(address: Ipv6Addr, prefix: Ipv6Addr, length: u32) -> bool {
    (address.to_bits() ^ prefix.to_bits()).leading_zeros() >= length
}

#[cfg(test)]
mod tests;
