//! The DNS resolvers that plugins may be granted by name: two by default, and what the operator writes.

use std::collections::BTreeMap;

use super::ConfigError;
use super::written::{WrittenDns, WrittenResolver};
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
/// More are a mistake.
const RESOLVERS_MAX: usize = 32;

/// A resolver that speaks DNS over HTTPS.
#[derive(Clone, Debug)]
pub struct ResolverSettings {
    /// Its endpoint: https, a host name and a path.
    pub url: String,
    /// What it is told of where a question comes from.
    pub client_subnet: ClientSubnet,
}

/// What a resolver is told of where a question comes from. Nothing in either case: they differ in whether it is told not to
/// tell others (RFC 7871, 7.1.2).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Deserialize,
    serde::Serialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ClientSubnet {
    /// The question does not speak of it.
    #[default]
    Unsaid,
    /// The question has a subnet of length 0.
    Withheld,
}

impl ResolverSettings {
    /// The right to ask there, as an atom of `http`.
    pub(crate) fn grant(url: &str) -> String {
        format!("http:POST {url}")
    }
}

/// The defaults, and what was written in their place and beside them.
pub(super) fn resolvers(
    written: WrittenDns,
) -> Result<BTreeMap<String, ResolverSettings>, ConfigError> {
    let mut resolvers: BTreeMap<String, ResolverSettings> = DEFAULTS
        .map(|(name, url, client_subnet)| {
            let url = url.to_owned();
            (name.to_owned(), ResolverSettings { url, client_subnet })
        })
        .into();
    for (name, row) in written.resolvers {
        let (url, client_subnet) = match row {
            WrittenResolver::Url(url) => (url, ClientSubnet::default()),
            WrittenResolver::Row { url, client_subnet } => (url, client_subnet),
        };
        check(&name, &url)?;
        resolvers.insert(name, ResolverSettings { url, client_subnet });
    }
    let count = resolvers.len();
    if count > RESOLVERS_MAX {
        return Err(refused(
            format!("a table of {count} resolvers"),
            format!("one of at most {RESOLVERS_MAX}"),
        ));
    }
    Ok(resolvers)
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
