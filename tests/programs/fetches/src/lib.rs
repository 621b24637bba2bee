//! A guest that fetches what the caller asks for, and tells what came of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchbay_sdk::http::{Denial, Error, Request, Response};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, Failure, Operation, Plugin, Reply, Rest};

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Where to.
    url: String,
    /// How: GET, if this is not said.
    #[serde(default)]
    method: Option<String>,
    /// More headers, one a line.
    #[serde(default)]
    headers: Option<String>,
    /// The body.
    #[serde(default)]
    body: Option<String>,
    /// A body of so many bytes instead.
    #[serde(default)]
    body_bytes: Option<usize>,
    /// How many redirects to follow.
    #[serde(default)]
    redirects: Option<u32>,
    /// The most bytes of the answer's body.
    #[serde(default)]
    response_bytes: Option<u32>,
    /// The time for all of it, in milliseconds.
    #[serde(default)]
    total_ms: Option<u32>,
    /// The time until the answer begins, in milliseconds.
    #[serde(default)]
    first_byte_ms: Option<u32>,
    /// The time between two pieces, in milliseconds.
    #[serde(default)]
    idle_ms: Option<u32>,
    /// How often, all at once.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    times: Option<usize>,
}

#[derive(Default, Serialize, JsonSchema)]
struct Output {
    /// `ok`, or the name of what went wrong.
    outcome: String,
    /// What else there is to say of that.
    told: String,
    /// The answer's status.
    status: u16,
    /// Where the answer came from.
    url: String,
    /// The answer's headers, one a line.
    headers: String,
    /// Bytes of the answer's body.
    bytes: u64,
    /// How the body begins.
    text: String,
    /// How often each outcome was, if there were several.
    outcomes: String,
}

fn plugin() -> Plugin {
    Plugin::new(
        env!("CARGO_PKG_NAME"),
        "0.1.0",
        "Fetches what it is asked for",
    )
    .wants("http:GET,POST public", "to fetch what it is asked for")
    .wants(
        "http:GET http://api.fetches.test:8080/granted/",
        "to fetch from another port",
    )
    .operation(
        Operation::new("fetch", fetch)
            .title("Fetch")
            .description("Makes the request that the caller describes.")
            .rest(
                Rest::post(
                    concat!("/api/v1/test/", env!("CARGO_PKG_NAME")),
                    "test:fetch",
                )
                .body_bytes_max(131_072),
            )
            .deadline_ms(60_000),
    )
}

switchbay_sdk::export!(plugin);

async fn fetch(_call: Call, input: Input) -> Result<Reply<Output>, Failure> {
    let times = input.times.unwrap_or(1);
    let mut all = futures::future::join_all((0..times).map(|_| one(&input))).await;
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for output in &all {
        *outcomes.entry(output.outcome.clone()).or_default() += 1;
    }
    let outcomes: Vec<String> = outcomes
        .iter()
        .map(|(outcome, count)| format!("{outcome} {count}"))
        .collect();
    let first = all.swap_remove(0);
    Ok(Reply::ok(Output {
        outcomes: outcomes.join(", "),
        ..first
    }))
}

async fn one(input: &Input) -> Output {
    match request(input.clone()).send().await {
        Ok(response) => answered(&response),
        Err(error) => {
            let (outcome, told) = named(error);
            Output {
                outcome: outcome.to_owned(),
                told,
                ..Output::default()
            }
        }
    }
}

fn request(input: Input) -> Request {
    let mut request = Request::new(input.method.as_deref().unwrap_or("GET"), input.url);
    for line in input.headers.iter().flat_map(|lines| lines.lines()) {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        request = request.header(name, value);
    }
    if let Some(body) = input.body {
        request = request.body(body);
    }
    if let Some(bytes) = input.body_bytes {
        request = request.body(vec![b'x'; bytes]);
    }
    if let Some(bytes) = input.response_bytes {
        request = request.response_bytes(bytes);
    }
    if let Some(ms) = input.total_ms {
        request = request.total_ms(ms);
    }
    if let Some(ms) = input.first_byte_ms {
        request = request.first_byte_ms(ms);
    }
    if let Some(ms) = input.idle_ms {
        request = request.idle_ms(ms);
    }
    request.redirects(input.redirects.unwrap_or(0))
}

fn answered(response: &Response) -> Output {
    let headers: Vec<String> = response
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    Output {
        outcome: "ok".to_owned(),
        status: response.status(),
        url: response.url().to_owned(),
        headers: headers.join("\n"),
        bytes: u64::try_from(response.bytes().len()).unwrap_or(u64::MAX),
        text: response.text().chars().take(4000).collect(),
        ..Output::default()
    }
}

fn named(error: Error) -> (&'static str, String) {
    let none = String::new;
    match error {
        Error::Denied(denial) => denied(denial),
        Error::RedirectDenied(denial) => {
            let (kind, told) = denied(denial);
            ("redirect_denied", format!("{kind}: {told}"))
        }
        Error::InvalidRequest(told) => ("invalid_request", told),
        Error::Busy => ("busy", none()),
        Error::Unresolved => ("unresolved", none()),
        Error::Unreachable => ("unreachable", none()),
        Error::FirstByteLate => ("first_byte_late", none()),
        Error::Idle => ("idle", none()),
        Error::TotalLate => ("total_late", none()),
        Error::HeadersTooLarge => ("headers_too_large", none()),
        Error::BodyTooLarge => ("body_too_large", none()),
        Error::TooManyRedirects => ("too_many_redirects", none()),
        Error::BadResponse(told) => ("bad_response", told),
    }
}

fn denied(denial: Denial) -> (&'static str, String) {
    match denial {
        Denial::NotGranted(told) => ("not_granted", told),
        Denial::NotPublic(told) => ("not_public", told),
        Denial::NotAcceptable(told) => ("not_acceptable", told),
    }
}
