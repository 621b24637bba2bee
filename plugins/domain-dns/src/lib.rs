//! A hostname's records of 16 types, from one of two public resolvers (docs/api.md, "DNS").
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
use switchbay_sdk::{
    Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Timestamp, Tool, plugin,
};

use hostname::{Hostname, NotHostname};
use lookup::{Lookup, Provider};
use query::Failed;

const NOT_HOSTNAME: ErrorCode = ErrorCode::validation_error("`domain` is not a valid hostname.");
const BAD_ANSWERS: ErrorCode = ErrorCode::upstream_bad_response(
    "Every query failed, at least one of them with an unusable response.",
);
const UNREACHABLE: ErrorCode = ErrorCode::service_unavailable(
    "Every query failed: the resolver could not be reached or may not be used.",
);
const LATE: ErrorCode = ErrorCode::upstream_timeout(
    "Every query failed, at least one of them by its timeout of 5 seconds.",
);

/// The plugin, for [`switchbay_sdk::export!`] and for the benchmarks.
pub fn plugin() -> Plugin {
    plugin!("DNS records of 16 types for a hostname, from a public resolver")
    .wants("dns:cloudflare", "to query the default resolver")
    .wants(
        "dns:google",
        "to query the other resolver that callers can choose",
    )
    .wants("cache:16MiB", "to answer repeated lookups within a minute")
    .operation(
        Operation::new("lookup", lookup)
            .title("Look up DNS records")
            .description(
                "Resolves a hostname across 16 DNS record types (A, AAAA, CNAME, MX, NS, PTR, SRV, \
                 SOA, TXT, CAA, DS, DNSKEY, TLSA, NAPTR, HTTPS, SVCB) with a public resolver. \
                 Returns each record once in `records` and by section and type in `sections`, with \
                 the status of each query in `queries`. A name that does not exist is a success: \
                 check `statusSummary.domainExists`. Only the exact name is looked up: use \
                 `_dmarc.example.com` for a DMARC policy, `1.2.0.192.in-addr.arpa` for the name of \
                 192.0.2.1. Results are cached for 60 seconds; `queried_at` is when the resolver \
                 was queried.",
            )
            .rest(Rest::post("/api/v1/domain/dns", "domain:dns"))
            .tool(
                Tool::lookup("lookup_domain_dns", "domain:dns"),
            )
            .errors([NOT_HOSTNAME, BAD_ANSWERS, UNREACHABLE, LATE])
            .deadline_ms(10_000)
            // Its length is that of its ASCII form, and letters beyond ASCII may stand in it.
            .judges(&["domain"])
            .first_party_per_minute(30)
            .example(
                "All records of a hostname",
                r#"{ "domain": "example.com" }"#,
            )
            .example(
                "A DMARC policy, from the other resolver",
                r#"{ "domain": "_dmarc.example.com", "provider": "google" }"#,
            ),
    )
}

#[cfg(target_family = "wasm")]
switchbay_sdk::export!(plugin);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The hostname, without scheme, port or path; at most 253 characters in ASCII form. Non-ASCII letters are allowed.
    #[schemars(length(min = 1, max = 253), extend("format" = "idn-hostname"))]
    domain: String,
    /// The resolver to query.
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
    let queried_at = Timestamp::now();
    let outcomes = resolve::all(&domain, provider).await;
    if let Some(failed) = lookup::failure(&outcomes) {
        return Err(all_failed(failed, provider));
    }
    let lookup = Lookup::of(domain.as_str(), provider, &outcomes, queried_at);
    let data =
        serde_json::to_string(&lookup).expect("a result has string keys, so it always serialises");
    if outcomes.iter().all(|outcome| outcome.answer().is_some()) {
        kept::put(&domain, provider, &data);
    }
    Ok(Reply::ok_text(data))
}

fn not_hostname(text: &str, error: NotHostname) -> Failure {
    let failure = NOT_HOSTNAME
        .failure(format!("`domain` {error}"))
        .field("domain");
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
    let (code, told) = match failed {
        Failed::Late => (&LATE, "did not answer any query in time"),
        Failed::Bad => (&BAD_ANSWERS, "returned no usable answer"),
        Failed::Unreachable => (&UNREACHABLE, "could not be queried; try again later"),
    };
    code.failure(format!("the resolver `{}` {told}", provider.name()))
}
