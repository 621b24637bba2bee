//! Registration data of a domain, in one form and without personal data (docs/api.md, "WHOIS").
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
mod words;

use serde::{Deserialize, Serialize};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Tool, plugin};

use lookup::Trouble;
use name::Name;
use registration::Registration;

const NO_DOMAIN: ErrorCode = ErrorCode::validation_error(
    "`domain` is an IP address, a bare public suffix or not a valid host name.",
);
const BAD_RESPONSE: ErrorCode = ErrorCode::upstream_bad_response(
    "The registry could not be reached, refused the query or returned no usable answer, or the \
     top-level domain has no RDAP or WHOIS service.",
);
const LATE: ErrorCode = ErrorCode::upstream_timeout("The registry did not answer in time.");

/// All of a call, in milliseconds: what `lookup` grants itself, and what reading takes.
const DEADLINE_MS: u32 = 11_000;
/// When to try again after a missed deadline, in seconds.
const RETRY_AFTER_S: u32 = 5;

/// The plugin, for [`switchbay_sdk::export!`].
pub fn plugin() -> Plugin {
    plugin!("Domain registration data, normalized and without personal data")
    .wants(
        "http:GET public",
        "to query RDAP services of registries and registrars, and to fetch IANA's list of them",
    )
    .wants(
        "line-query:*:43",
        "to query WHOIS servers of registries without RDAP",
    )
    .welcomes(
        "cache:64MiB",
        "to cache answers and the list of services for a day",
    )
    .wants("config", "to read the URL of the list of RDAP services")
    .operation(
        Operation::new("whois", whois)
            .title("Look up domain registration data")
            .description(
                "Returns whether a domain is registered, with its registrar, dates, EPP statuses, \
                 DNSSEC and name servers, from the registry's RDAP service or WHOIS server. Takes \
                 a domain, a subdomain or an HTTP(S) URL. Never returns personal names, addresses, \
                 email addresses, phone numbers or handles; `organization` is present only if the \
                 registry publishes an organization as the registrant. Answers are cached for a \
                 day (10 minutes if not registered); `forceRefresh` queries the registry again. \
                 `meta.stale` marks cached data that was returned because the registry failed.",
            )
            .rest(Rest::post("/api/v1/domain/whois", "domain:whois"))
            .tool(
                Tool::lookup("lookup_domain_whois", "domain:whois"),
            )
            .errors([NO_DOMAIN, BAD_RESPONSE, LATE])
            .deadline_ms(DEADLINE_MS)
            .on_deadline(&LATE, Some(RETRY_AFTER_S))
            .example("A subdomain", r#"{ "domain": "www.example.de" }"#)
            .example(
                "A URL, bypassing the cache",
                r#"{ "domain": "https://example.de/path", "forceRefresh": true }"#,
            ),
    )
}

#[cfg(target_family = "wasm")]
switchbay_sdk::export!(plugin);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Lookup {
    /// A domain, a subdomain or an HTTP(S) URL. Internationalized names are accepted in Unicode or ASCII form.
    #[schemars(length(min = 1, max = 2048))]
    domain: String,
    /// Queries the registry even if a fresh answer is cached. Cached data is still returned if the registry fails.
    #[serde(default)]
    force_refresh: bool,
}

#[derive(Serialize, JsonSchema)]
struct Whois {
    /// The registrable domain below an ICANN public suffix, in A-labels.
    domain: String,
    /// The host name that was queried, in A-labels.
    query_domain: String,
    /// Whether the domain is registered.
    registered: bool,
    #[serde(flatten)]
    registration: Registration,
    /// Whether the data was cached.
    meta: Meta,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
struct Meta {
    /// Whether the data was cached by an earlier lookup.
    cached: bool,
    /// Whether cached data was returned because a fresh lookup failed.
    stale: bool,
}

async fn whois(_call: Call, input: Lookup) -> Result<Reply<Whois>, Failure> {
    let name = Name::read(&input.domain).map_err(|rule| NO_DOMAIN.failure(rule).field("domain"))?;
    let found = lookup::lookup(&name.registrable, input.force_refresh)
        .await
        .map_err(|trouble| failed(&name.registrable, trouble))?;
    Ok(Reply::ok(Whois {
        domain: name.registrable,
        query_domain: name.asked,
        registered: found.record.registered,
        registration: found.record.registration,
        meta: found.meta,
    }))
}

fn failed(domain: &str, trouble: Trouble) -> Failure {
    let registry = format!("the registry of `{domain}`");
    let bad = |message: String| BAD_RESPONSE.failure(message);
    match trouble {
        Trouble::Late => LATE
            .failure(format!("{registry} did not answer in time"))
            .retry_after_ms(RETRY_AFTER_S * 1000),
        Trouble::Throttled { retry_after_ms } => bad(format!(
            "{registry} is limiting this service's queries; try again later"
        ))
        .retry_after_ms(retry_after_ms),
        Trouble::Unusable(why) => bad(format!("{registry} returned no usable answer: {why}")),
        Trouble::Unreachable => bad(format!("{registry} could not be reached")),
        Trouble::Unsupported => {
            let top = domain.rsplit('.').next().unwrap_or_default();
            bad(format!(
                "the top-level domain `{top}` has neither an RDAP nor a WHOIS service"
            ))
        }
    }
}
