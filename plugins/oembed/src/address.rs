//! The URL that a caller gives, or that a redirect names: read once, judged in one order, and of one network.
//!
//! The order is the contract: no URL, an unsafe one, no network of ours; which path it is, is the network's to say. Knows
//! nothing of what is asked for.

use std::net::{Ipv4Addr, Ipv6Addr};

use switchbay_sdk::host_name::is_never_public;
use url::{Host, Url};

use crate::networks::{self, Link, Network, Place};
use crate::tracking;
use crate::trouble::{Trouble, URL_CHARACTERS_MAX};

/// A URL of one of the networks.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) network: &'static Network,
    /// By https, without a fragment and tracking parameters.
    pub(crate) url: Url,
    /// What its path is there.
    pub(crate) place: Place,
}

impl Address {
    /// Reads what a caller gave.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub(crate) fn read(text: &str) -> Result<Self, Trouble> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Trouble::Empty);
        }
        if text.chars().count() > URL_CHARACTERS_MAX {
            return Err(Trouble::TooLong);
        }
        let invalid = |rule: &str| Trouble::InvalidUrl(rule.to_owned());
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(invalid(
                "must not contain white space or control characters",
            ));
        }
        // A scheme without `//` is a path to some readers and a host to others.
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| invalid("must begin with https:// or http://"))?;
        if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
            return Err(invalid("must begin with https:// or http://"));
        }
        let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
        if authority.is_empty() {
            return Err(invalid("must have a host"));
        }
        let url = Url::parse(text).map_err(|_| invalid("must be a valid URL"))?;
        if authority.contains('@') {
            Err(Trouble::Unsafe(
                "`url` must not contain credentials".to_owned(),
            ))
        } else {
            Self::judge(url)
        }
    }

    /// Reads where a redirect leads from here.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub(crate) fn redirected(&self, location: &str) -> Result<Self, Trouble> {
        let to = self
            .url
            .join(location.trim())
            .map_err(|_| Trouble::Unresolved)?;
        if matches!(to.scheme(), "http" | "https") && location.chars().count() <= URL_CHARACTERS_MAX
        {
            Self::judge(to)
        } else {
            Err(Trouble::Unresolved)
        }
    }

    fn judge(mut url: Url) -> Result<Self, Trouble> {
        let rejected = |rule: String| Err(Trouble::Unsafe(rule));
        if !url.username().is_empty() || url.password().is_some() {
            return rejected("the URL must not contain credentials".to_owned());
        }
        if let Some(port) = url.port() {
            return rejected(format!("the URL must use the default port, not {port}"));
        }
        let is_public = match url.host() {
            None => return Err(Trouble::InvalidUrl("must have a host".to_owned())),
            Some(Host::Ipv4(address)) => is_public_v4(address),
            Some(Host::Ipv6(address)) => is_public_v6(address),
            Some(Host::Domain(name)) => !is_never_public(name),
        };
        let host = url.host_str().unwrap_or_default().to_owned();
        if !is_public {
            return rejected(format!("the host `{host}` is not public"));
        }
        let Some(network) = networks::of_host(&host) else {
            return Err(Trouble::UnsupportedProvider(host));
        };
        url.set_scheme("https")
            .map_err(|()| Trouble::InvalidUrl("must be a valid URL".to_owned()))?;
        url.set_fragment(None);
        tracking::remove(&mut url, network.tracking);
        let place = (network.place)(&Link::new(&url));
        Ok(Self {
            network,
            url,
            place,
        })
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || matches!(
            (a, b, c),
            (0, _, _) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _)
        )
        || a >= 240
        || address == Ipv4Addr::new(168, 63, 129, 16);
    !is_special
}

/// As at the gate: what the registries hand out, and of that nothing that carries another address.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    (0x2000..0x4000).contains(&a)
        && !matches!(
            (a, b),
            (0x2001, 0..=0x1ff | 0xdb8) | (0x2002, _) | (0x3fff, 0..=0xfff)
        )
}
