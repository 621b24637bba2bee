//! A hostname's records of 16 types, from one of two public resolvers (the spec's "Domain DNS").
//!
//! This file is the index: the operation, its input and its errors. What is asked is in `hostname` and `kind`, how in
//! `resolve`; an answer goes through `wire`, `message`, `rdata` (with `svcb`) and `query`, and all of them through `status` into
//! `lookup`, the published result. `kept` remembers that for a minute.

mod hostname;
mod kept;
mod kind;
mod lookup;
mod message;
mod query;
mod rdata;
mod resolve;
#[cfg(test)]
mod sample;
mod status;
mod svcb;
mod wire;

use serde::Deserialize;
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Tool};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use hostname::{Hostname, NotHostname};
use lookup::{Lookup, Provider};
use query::Failed;

const NOT_HOSTNAME: ErrorCode = ErrorCode::new("VALIDATION_ERROR", 400, "`domain` is no hostname.");
const BAD_ANSWERS: ErrorCode = ErrorCode::new(
    "UPSTREAM_BAD_RESPONSE",
    502,
    "Every query failed, and what came of one was no DNS answer.",
);
const UNREACHABLE: ErrorCode = ErrorCode::new(
    "SERVICE_UNAVAILABLE",
    503,
    "Every query failed: the resolver cannot be reached or asked.",
);
const LATE: ErrorCode = ErrorCode::new(
    "UPSTREAM_TIMEOUT",
    504,
    "Every query failed, and one of them by its deadline of 5 seconds.",
);

/// The plugin, for [`switchbay_sdk::export!`] and for the benchmarks.
pub fn plugin() -> Plugin {
    Plugin::new("domain-dns", "0.1.0", "A hostname's DNS records of 16 types, from a public resolver")
        .wants("dns:cloudflare", "to ask the resolver that is asked where the caller names none")
        .wants("dns:google", "to ask the other resolver that a caller can name")
        .wants("cache:16MiB", "to answer from the last minute's lookups")
        .operation(
            Operation::new("lookup", lookup)
                .title("Look up DNS records")
                .description(
                    "Resolves a hostname across 16 DNS record types (A, AAAA, CNAME, MX, NS, PTR, SRV, SOA, TXT, CAA, DS, \
                     DNSKEY, TLSA, NAPTR, HTTPS, SVCB) at a public resolver and returns the records, each once in `records` \
                     and by section and type in `sections`, with the status of each query in `queries`. A name that does not \
                     exist is a success: read `statusSummary.domainExists`. Answers for exactly this name: ask for \
                     `_dmarc.example.com` to get its TXT record, for `1.2.0.192.in-addr.arpa` to get the name of 192.0.2.1. A \
                     result is kept for 60 seconds; `queried_at` is when the resolver was asked.",
                )
                .rest(Rest::post("/api/v1/domain/dns", "domain:dns"))
                .tool(Tool::new("lookup_domain_dns", "domain:dns").read_only().open_world())
                .error(NOT_HOSTNAME)
                .error(BAD_ANSWERS)
                .error(UNREACHABLE)
                .error(LATE)
                .deadline_ms(10_000)
                // Its length is that of its ASCII form, and letters beyond ASCII may stand in it.
                .judges(&["domain"])
                .first_party_per_minute(30)
                .example("All records of a hostname", r#"{ "domain": "example.com" }"#)
                .example("A mail policy, from the other resolver", r#"{ "domain": "_dmarc.example.com", "provider": "google" }"#),
        )
}

#[cfg(target_family = "wasm")]
switchbay_sdk::export!(plugin);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The hostname, without scheme, port or path: at most 253 characters in ASCII. Letters beyond ASCII may stand in it.
    #[schemars(length(min = 1, max = 253), extend("format" = "idn-hostname"))]
    domain: String,
    /// The resolver to ask.
    #[serde(default)]
    provider: Provider,
}

async fn lookup(_call: Call, input: Input) -> Result<Reply<Lookup<'static>>, Failure> {
    let domain =
        Hostname::read(&input.domain).map_err(|error| not_hostname(&input.domain, error))?;
    let provider = input.provider;
    if let Some(data) = kept::get(&domain, provider) {
        return Ok(Reply::ok_text(data));
    }
    let queried_at = OffsetDateTime::now_utc()
        .format(&Rfc3339)
        .expect("a year of our time has four digits");
    let outcomes = resolve::all(&domain, provider).await;
    if let Some(failed) = lookup::failure(&outcomes) {
        return Err(all_failed(failed, provider));
    }
    let lookup = Lookup::of(domain.as_str(), provider, &outcomes, &queried_at);
    let data =
        serde_json::to_string(&lookup).expect("a result has string keys, so it always serialises");
    if outcomes.iter().all(|outcome| outcome.answer().is_some()) {
        kept::put(&domain, provider, &data);
    }
    Ok(Reply::ok_text(data))
}

fn not_hostname(text: &str, error: NotHostname) -> Failure {
    let failure =
        Failure::new(&NOT_HOSTNAME, format!("`domain` {error}")).detail("field", "domain");
    match error {
        NotHostname::TooLong(_) => failure.detail("max", hostname::CHARACTERS_MAX),
        NotHostname::Empty if text.is_empty() => failure.detail("min", 1),
        NotHostname::Empty
        | NotHostname::Address
        | NotHostname::Character(_)
        | NotHostname::Letters
        | NotHostname::EmptyLabel
        | NotHostname::LongLabel(_)
        | NotHostname::Hyphen => failure,
    }
}

fn all_failed(failed: Failed, provider: Provider) -> Failure {
    let provider = provider.name();
    match failed {
        Failed::Late => Failure::new(
            &LATE,
            format!("the resolver `{provider}` answered no query in time"),
        ),
        Failed::Bad => Failure::new(
            &BAD_ANSWERS,
            format!("the resolver `{provider}` gave no usable answer"),
        ),
        Failed::Unreachable => Failure::new(
            &UNREACHABLE,
            format!("the resolver `{provider}` cannot be asked at the moment"),
        ),
    }
}
