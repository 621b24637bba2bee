//! The DNS resolvers that plugins may be granted by name: two by default, and what the operator writes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::ConfigError;
use crate::contract::grants::Grants;

/// What is there unless the operator writes something else under these names.
const DEFAULTS: [(&str, &str, ClientSubnet); 2] = [
    (
        "cloudflare",
        "https://cloudflare-dns.com/dns-query",
        ClientSubnet::Unsaid,
    ),
    // This one tells the servers that it asks where its clients are, unless they say that it may not.
    (
        "google",
        "https://dns.google/dns-query",
        ClientSubnet::Withheld,
    ),
];
/// The path that RFC 8484 has in its examples.
const USUAL_PATH: &str = "/dns-query";
/// More are a mistake.
const RESOLVERS_MAX: usize = 32;

settings! {
    /// The resolvers that `dns:NAME` lends.
    DnsSettings "dns" {
        /// DNS over HTTPS and HTTP/2, by name: `cloudflare = "https://cloudflare-dns.com/dns-query"`, or `{ url =
        /// "https://dns.google/dns-query", client_subnet = "withheld" }`, which tells the resolver not to pass on where
        /// a question comes from; `"unsaid"` says nothing of it. `cloudflare` and `google` are there unless they are
        /// written otherwise.
        resolvers: BTreeMap<String, ResolverSettings> = BTreeMap::new(), by resolvers;
    }
}

impl DnsSettings {
    /// Adds the resolvers that are there unless they are written otherwise.
    pub(super) fn complete(&mut self) {
        for (name, url, client_subnet) in DEFAULTS {
            let url = url.to_owned();
            let known = ResolverSettings { url, client_subnet };
            self.resolvers.entry(name.to_owned()).or_insert(known);
        }
    }
}

/// A resolver that speaks DNS over HTTPS.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(from = "WrittenResolver")]
pub(crate) struct ResolverSettings {
    /// Its endpoint: https, a host name and a path.
    #[serde(serialize_with = "without_customer")]
    pub(crate) url: String,
    /// What it is told of where a question comes from.
    pub(crate) client_subnet: ClientSubnet,
}

#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a URL, or a table with `url` and optionally `client_subnet`, which is \"unsaid\" or \
        \"withheld\""
)]
enum WrittenResolver {
    Url(String),
    Row {
        url: String,
        #[serde(default)]
        client_subnet: ClientSubnet,
    },
}

impl From<WrittenResolver> for ResolverSettings {
    fn from(written: WrittenResolver) -> Self {
        let (url, client_subnet) = match written {
            WrittenResolver::Url(url) => (url, ClientSubnet::default()),
            WrittenResolver::Row { url, client_subnet } => (url, client_subnet),
        };
        Self { url, client_subnet }
    }
}

/// What a resolver is told of where a question comes from. Nothing in either case: they differ in whether it is told not to
/// tell others (RFC 7871, 7.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClientSubnet {
    /// The question does not speak of it.
    #[default]
    Unsaid,
    /// The question has a subnet of length 0.
    Withheld,
}

/// Some resolvers know their customers by the path, so that only the usual one is told.
fn without_customer<S: Serializer>(url: &str, to: S) -> Result<S::Ok, S::Error> {
    let path = url
        .match_indices('/')
        .nth(2)
        .map_or(url.len(), |(at, _)| at);
    match url.split_at(path) {
        (_, USUAL_PATH) => to.serialize_str(url),
        (host, _) => to.collect_str(&format_args!("{host}/…")),
    }
}

impl ResolverSettings {
    /// The right to ask there, as an atom of `http`.
    pub(crate) fn grant(url: &str) -> String {
        format!("http:POST {url}")
    }
}

/// Judged with the resolvers that are there anyway.
fn resolvers(
    _: &'static str,
    resolvers: &BTreeMap<String, ResolverSettings>,
) -> Result<(), ConfigError> {
    for (name, resolver) in resolvers {
        check(name, &resolver.url)?;
    }
    let count = resolvers.len();
    if count > RESOLVERS_MAX {
        return Err(refused(
            format!("a table of {count} resolvers"),
            format!("one of at most {RESOLVERS_MAX}"),
        ));
    }
    Ok(())
}

/// A name as atoms of `dns` have it, and a URL as those of `http` do, with https.
fn check(name: &str, url: &str) -> Result<(), ConfigError> {
    if Grants::parse([format!("dns:{name}")]).is_err() {
        let rule = "a name of a-z, 0-9, - and _, starting with a letter, as in `dns:NAME`";
        return Err(refused(format!("a table with `{name}`"), rule.to_owned()));
    }
    let rule = "an https URL of a host name and a path, such as https://dns.example.net/dns-query";
    if !url.starts_with("https://") || url.contains('*') || url.ends_with('/') {
        return Err(refused(url.to_owned(), rule.to_owned()));
    }
    match Grants::parse([ResolverSettings::grant(url)]) {
        Ok(_) => Ok(()),
        Err(error) => Err(refused(url.to_owned(), format!("{rule}: {error}"))),
    }
}

fn refused(value: String, rule: String) -> ConfigError {
    ConfigError::value("dns.resolvers", value, rule)
}
