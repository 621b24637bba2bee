//! Who answers for a domain: RDAP services and port-43 servers by the domain that they answer for.
//!
//! Both tables are text of rows `service name name ...`, and the longest name above a domain wins. Knows no protocol
//! but the line in which a port-43 server wants to be asked.

use serde_json::Value;

const RDAP: &str = include_str!("../tables/rdap.txt");
const SERVERS: &str = include_str!("../tables/servers.txt");

/// How a refreshed table may grow, in bytes: four times what it is.
const TABLE_MAX: usize = 128 << 10;

/// Servers that want more than the name: how each is asked, with `%s` for the domain.
const DIALECTS: &[(&str, &str)] = &[
    ("ccwhois.verisign-grs.com", "domain %s"),
    ("tvwhois.verisign-grs.com", "domain %s"),
    ("whois.verisign-grs.com", "domain %s"),
    ("whois.denic.de", "-T dn,ace %s"),
    ("whois.dk-hostmaster.dk", "--charset=utf-8 %s"),
    ("whois.punktum.dk", "--charset=utf-8 %s"),
    ("whois.jprs.jp", "%s/e"),
    ("whois.nic.name", "domain=%s"),
];

/// RDAP services by domain: IANA's bootstrap registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Services(String);

impl Services {
    /// The registry as it was when the plugin was built.
    pub(crate) fn snapshot() -> Self {
        Self(RDAP.to_owned())
    }

    /// A table that [`Self::bytes`] gave.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Option<Self> {
        String::from_utf8(bytes).ok().map(Self)
    }

    /// The registry as IANA publishes it (RFC 9224), or nothing where it is of another form or names no service.
    pub(crate) fn of_registry(registry: &Value) -> Option<Self> {
        let mut text = String::new();
        for service in registry["services"].as_array()? {
            let strings = |list: &Value| -> Option<Vec<String>> {
                list.as_array()?
                    .iter()
                    .map(|text| text.as_str().map(str::to_owned))
                    .collect()
            };
            let (names, urls) = (strings(&service[0])?, strings(&service[1])?);
            let url = urls
                .iter()
                .find(|url| url.starts_with("https://"))
                .or(urls.first())?;
            let well_formed =
                |text: &String| !text.is_empty() && !text.contains(char::is_whitespace);
            if well_formed(url) && names.iter().all(well_formed) {
                text.push_str(&format!("{url} {}\n", names.join(" ").to_ascii_lowercase()));
            }
        }
        (!text.is_empty() && text.len() <= TABLE_MAX).then_some(Self(text))
    }

    /// The table as it can be kept.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The URL that answers for a domain.
    pub(crate) fn url(&self, domain: &str) -> Option<String> {
        let base = service(&self.0, domain)?;
        let slash = if base.ends_with('/') { "" } else { "/" };
        Some(format!("{base}{slash}domain/{domain}"))
    }
}

/// The port-43 server that answers for a domain.
pub(crate) fn whois(domain: &str) -> Option<&'static str> {
    service(SERVERS, domain)
}

/// What a port-43 server is asked for a domain.
pub(crate) fn question(server: &str, domain: &str) -> String {
    let dialect = DIALECTS
        .iter()
        .find(|(known, _)| *known == server)
        .map_or("%s", |(_, dialect)| dialect);
    dialect.replace("%s", domain)
}

/// The service of the longest name in the table that the domain stands below.
fn service<'t>(table: &'t str, domain: &str) -> Option<&'t str> {
    let above = std::iter::successors(domain.split_once('.'), |(_, rest)| rest.split_once('.'));
    above.map(|(_, name)| name).find_map(|name| {
        table.lines().find_map(|row| {
            let (service, names) = row.split_once(' ').filter(|_| !row.starts_with('#'))?;
            names
                .split(' ')
                .any(|known| known == name)
                .then_some(service)
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_snapshots_know_the_registries() {
        let rdap = Services::snapshot();
        assert_eq!(
            rdap.url("example.com").as_deref(),
            Some("https://rdap.verisign.com/com/v1/domain/example.com")
        );
        assert_eq!(
            rdap.url("example.co.tw").as_deref(),
            Some("https://ccrdap.twnic.tw/tw/domain/example.co.tw")
        );
        assert_eq!(rdap.url("example.unlisted"), None);
        assert_eq!(whois("example.de"), Some("whois.denic.de"));
        assert_eq!(whois("example.co.za"), Some("coza-whois.registry.net.za"));
        assert_eq!((whois("example.vn"), whois("SOURCE:")), (None, None));
    }

    #[test]
    fn a_registry_of_another_form_is_none() {
        let good = json!({ "services": [[["Example", "b.example"], ["http://a.test/", "https://b.test"]]] });
        let services = Services::of_registry(&good).expect("it is one");
        assert_eq!(
            services.url("x.example").as_deref(),
            Some("https://b.test/domain/x.example")
        );
        assert_eq!(
            Services::of_bytes(services.bytes().to_vec()),
            Some(services)
        );
        for bad in [
            json!([]),
            json!({ "services": [] }),
            json!({ "services": [[["a"], [7]]] }),
            json!({ "services": [["a"]] }),
        ] {
            assert_eq!(Services::of_registry(&bad), None, "{bad}");
        }
    }

    #[test]
    fn each_server_is_asked_as_it_wants() {
        let questions = [
            ("whois.nic.fr", "example.fr"),
            ("whois.denic.de", "-T dn,ace example.fr"),
            ("whois.jprs.jp", "example.fr/e"),
            ("whois.verisign-grs.com", "domain example.fr"),
        ];
        for (server, expected) in questions {
            assert_eq!(question(server, "example.fr"), expected);
        }
    }
}
