//! The URL that a caller gives, or that a redirect names: read once, judged in one order, and of one network.
//!
//! The order is the contract: no URL, an unsafe one, no network of ours; which path it is, is the network's to say. Knows
//! nothing of what is asked for.

use switchbay_sdk::public_url::{NotPublicUrl, PublicUrl, has_public_host, is_web};
use url::Url;

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
        let url = PublicUrl::read(text).map_err(|broken| broken_rule(text, &broken))?;
        Self::judge(url.into())
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
        if is_web(&to) && location.chars().count() <= URL_CHARACTERS_MAX {
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
            return rejected(unusual_port(port));
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        if !has_public_host(&url) {
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

/// What is told of a rule that a caller's text breaks.
fn broken_rule(text: &str, broken: &NotPublicUrl) -> Trouble {
    let invalid = |rule: &str| Trouble::InvalidUrl(rule.to_owned());
    match broken {
        NotPublicUrl::Relative | NotPublicUrl::Scheme(_) => {
            invalid("must begin with https:// or http://")
        }
        NotPublicUrl::Credentials if Url::parse(text).is_ok() => {
            Trouble::Unsafe("`url` must not contain credentials".to_owned())
        }
        NotPublicUrl::Credentials | NotPublicUrl::Invalid(_) => invalid("must be a valid URL"),
        NotPublicUrl::Port(port) => Trouble::Unsafe(unusual_port(*port)),
        NotPublicUrl::Space | NotPublicUrl::NoHost => invalid(&broken.to_string()),
    }
}

fn unusual_port(port: u16) -> String {
    format!("the URL must use the default port, not {port}")
}
