//! Registration data of a domain, in one form and without personal data (the spec's "Domain WHOIS").
//!
//! This file is the index: the operation, its types and its rows. `lookup` is the way to an answer (what is kept, RDAP,
//! port 43) and alone reaches out; `name` reads what is asked for, `servers` knows whom to ask, `rdap` and `text` read
//! answers into a `registration`. What is told of persons is decided in one place, `public`.

#[cfg(test)]
mod corpus;
mod dates;
mod lookup;
mod name;
#[cfg(test)]
mod privacy;
mod public;
mod rdap;
mod registration;
mod servers;
mod status;
mod suffixes;
mod text;

use serde::{Deserialize, Serialize};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Tool};

use lookup::{Found, Trouble};
use name::Name;

const NO_DOMAIN: ErrorCode = ErrorCode::new(
    "VALIDATION_ERROR",
    400,
    "`domain` is an IP address, a bare public suffix or no host name.",
);
const BAD_RESPONSE: ErrorCode = ErrorCode::new(
    "UPSTREAM_BAD_RESPONSE",
    502,
    "The registry cannot be reached, refuses or answers nothing usable, or the top-level domain has no service.",
);
const LATE: ErrorCode = ErrorCode::new(
    "UPSTREAM_TIMEOUT",
    504,
    "The registry did not answer in time.",
);

/// All of a call, in milliseconds: what `lookup` grants itself, and what reading takes.
const DEADLINE_MS: u32 = 11_000;
/// When to try again after a missed deadline, in seconds.
const RETRY_AFTER_S: u32 = 5;

/// The plugin, for [`switchbay_sdk::export!`].
pub fn plugin() -> Plugin {
    Plugin::new("domain-whois", "0.1.0", "Registration data of domains, normalized and without personal data")
        .wants("http:GET public", "to ask RDAP services of registries and registrars, and IANA which there are")
        .wants("line-query:*:43", "to ask WHOIS servers of registries without RDAP")
        .welcomes("cache:64MiB", "to keep answers and the list of services, so that registries are asked once a day")
        .wants("config", "to learn where the list of RDAP services is")
        .operation(
            Operation::new("whois", whois)
                .title("Look up domain registration data")
                .description(
                    "Tells whether a domain is registered, and its registrar, dates, EPP statuses, DNSSEC and name \
                     servers, from the registry's RDAP service or its WHOIS server. Takes a domain, a subdomain or an \
                     HTTP(S) URL. Never returns names of persons, addresses, mail, phones or handles; `organization` \
                     is there only when the registrant is an organisation that the registry publishes. Answers are \
                     kept for a day (10 minutes when not registered); `forceRefresh` asks again. `meta.stale` marks \
                     kept data that was returned because the registry failed.",
                )
                .rest(Rest::post("/api/v1/domain/whois", "domain:whois"))
                .tool(Tool::new("lookup_domain_whois", "domain:whois").read_only().open_world())
                .error(NO_DOMAIN)
                .error(BAD_RESPONSE)
                .error(LATE)
                .deadline_ms(DEADLINE_MS)
                .on_deadline(&LATE, Some(RETRY_AFTER_S))
                .example("A subdomain", r#"{ "domain": "www.example.de" }"#)
                .example("A URL, asked anew", r#"{ "domain": "https://example.de/path", "forceRefresh": true }"#),
        )
}

#[cfg(target_family = "wasm")]
switchbay_sdk::export!(plugin);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Lookup {
    /// A domain, a subdomain or an HTTP(S) URL. International names are taken in either form.
    #[schemars(length(min = 1, max = 2048))]
    domain: String,
    /// Asks the registry even where a fresh answer is kept. Kept data is still returned if the registry fails.
    #[serde(default)]
    force_refresh: bool,
}

#[derive(Serialize, JsonSchema)]
struct Whois {
    /// The registrable domain below an ICANN public suffix, in A-labels.
    domain: String,
    /// The host name that was asked for, in A-labels.
    query_domain: String,
    /// Whether the domain is registered.
    registered: bool,
    /// The registrar's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    registrar: Option<String>,
    /// The registrant, where it is an organisation and published.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    organization: Option<String>,
    /// When the domain was registered. A day without a time is its beginning in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    creation_date: Option<String>,
    /// When the registration last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    updated_date: Option<String>,
    /// When the registration ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    expiration_date: Option<String>,
    /// Statuses by their EPP names, such as `clientTransferProhibited`; `reserved` is a name that nobody can register.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    status: Vec<String>,
    /// `signedDelegation` or `unsigned`, where the registry tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    dnssec: Option<String>,
    /// Host names of the name servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    name_servers: Vec<String>,
    /// Where the data comes from.
    meta: Meta,
}

#[derive(Serialize, JsonSchema)]
struct Meta {
    /// Whether the data was kept from an earlier lookup.
    cached: bool,
    /// Whether kept data was returned because a fresh lookup failed.
    stale: bool,
}

async fn whois(_call: Call, input: Lookup) -> Result<Reply<Whois>, Failure> {
    let name = Name::read(&input.domain).map_err(|refused| {
        Failure::new(&NO_DOMAIN, refused.to_string()).detail("field", "domain")
    })?;
    let found = lookup::lookup(&name.registrable, input.force_refresh).await;
    match found {
        Ok(found) => Ok(Reply::ok(told(name, found))),
        Err(trouble) => Err(failed(&name.registrable, &trouble)),
    }
}

fn told(name: Name, found: Found) -> Whois {
    let Found {
        record,
        cached,
        stale,
    } = found;
    let registration = record.registration;
    Whois {
        domain: name.registrable,
        query_domain: name.asked,
        registered: record.registered,
        registrar: registration.registrar,
        organization: registration.organization,
        creation_date: registration.creation_date,
        updated_date: registration.updated_date,
        expiration_date: registration.expiration_date,
        status: registration.status,
        dnssec: registration.dnssec,
        name_servers: registration.name_servers,
        meta: Meta { cached, stale },
    }
}

fn failed(domain: &str, trouble: &Trouble) -> Failure {
    match trouble {
        Trouble::Late => Failure::new(
            &LATE,
            format!("the registry of `{domain}` did not answer in time"),
        )
        .retry_after_ms(RETRY_AFTER_S * 1000),
        Trouble::Throttled { retry_after_ms } => Failure::new(
            &BAD_RESPONSE,
            format!("the registry of `{domain}` answers no more questions for a while"),
        )
        .retry_after_ms(*retry_after_ms),
        Trouble::Unusable(why) => Failure::new(
            &BAD_RESPONSE,
            format!("the registry of `{domain}` is of no use: {why}"),
        ),
        Trouble::Unreachable => Failure::new(
            &BAD_RESPONSE,
            format!("the registry of `{domain}` cannot be reached"),
        ),
        Trouble::Unsupported => {
            let top = domain.rsplit('.').next().unwrap_or_default();
            Failure::new(
                &BAD_RESPONSE,
                format!("the top-level domain `{top}` has neither an RDAP nor a WHOIS service"),
            )
        }
    }
}
