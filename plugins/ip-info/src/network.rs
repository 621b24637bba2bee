//! Whose network an address is of, and what is known of those who hide behind it. Pure.

use serde::Serialize;
use switchbay_sdk::lenient::LooseJson;
use switchbay_sdk::schemars::{self, JsonSchema};

/// Whose network an address is of.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Network {
    /// The network that contains the address, such as `192.0.2.0/24`.
    pub(crate) cidr: Option<String>,
    /// The autonomous system number.
    pub(crate) asn: Option<u32>,
    /// The operator of the autonomous system.
    pub(crate) as_name: Option<String>,
    /// The operator's domain.
    pub(crate) as_domain: Option<String>,
    /// The internet service provider.
    pub(crate) isp: Option<String>,
    /// The organization that uses the address.
    pub(crate) organization: Option<String>,
    /// The host name of the address. Always null: it is not looked up.
    pub(crate) hostname: Option<String>,
}

/// Whether somebody hides behind an address.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Security {
    /// Whether the address belongs to an anonymous network of any kind.
    pub(crate) is_anonymous: bool,
    /// Whether it belongs to an anonymous VPN.
    pub(crate) is_vpn: bool,
    /// Whether it is a public or residential proxy.
    pub(crate) is_proxy: bool,
    /// Whether it is a Tor exit node.
    pub(crate) is_tor: bool,
    /// Whether it belongs to a hosting provider.
    pub(crate) is_hosting: bool,
}

impl Network {
    /// From an entry of a database of autonomous systems or providers.
    pub(crate) fn of(entry: &LooseJson, cidr: Option<String>) -> Self {
        Self {
            cidr,
            asn: entry.count(&[&["autonomous_system_number"]]),
            as_name: entry.text(&[&["autonomous_system_organization"]]),
            as_domain: entry.text(&[&["autonomous_system_domain"]]),
            isp: entry.text(&[&["isp"]]),
            organization: entry.text(&[&["organization"]]),
            hostname: None,
        }
    }
}

impl Security {
    /// From an entry of a database of anonymous addresses, in which the others are not.
    pub(crate) fn of(entry: &LooseJson) -> Self {
        Self {
            is_anonymous: entry.is_any(&[&["is_anonymous"]]),
            is_vpn: entry.is_any(&[&["is_anonymous_vpn"]]),
            is_proxy: entry.is_any(&[&["is_public_proxy"], &["is_residential_proxy"]]),
            is_tor: entry.is_any(&[&["is_tor_exit_node"]]),
            is_hosting: entry.is_any(&[&["is_hosting_provider"]]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_and_providers_are_of_one_schema() {
        let entry = LooseJson::read(Some(
            r#"{ "autonomous_system_number": 1221, "autonomous_system_organization": "Telstra Pty Ltd", "isp": "Telstra Internet" }"#,
        ));
        let network = Network::of(&entry, Some("1.128.0.0/11".to_owned()));
        assert_eq!(
            (network.asn, network.as_name.as_deref()),
            (Some(1221), Some("Telstra Pty Ltd"))
        );
        assert_eq!(
            (network.isp.as_deref(), network.organization),
            (Some("Telstra Internet"), None)
        );
        assert_eq!(Network::of(&LooseJson::default(), None), Network::default());
    }

    #[test]
    fn who_is_not_listed_hides_not() {
        let entry = LooseJson::read(Some(
            r#"{ "is_anonymous": true, "is_residential_proxy": true }"#,
        ));
        let listed = Security::of(&entry);
        assert_eq!(
            (listed.is_anonymous, listed.is_proxy, listed.is_vpn),
            (true, true, false)
        );
        let unlisted = Security::of(&LooseJson::default());
        assert!(
            !unlisted.is_anonymous
                && !unlisted.is_proxy
                && !unlisted.is_tor
                && !unlisted.is_hosting
        );
    }
}
