//! A guest that asks with the line that the caller gives, and tells what came of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchbay_sdk::line_query::{Denial, Error, Request, query};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, Failure, Operation, Plugin, Reply, Rest};

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Whom.
    host: String,
    /// On which port: 43, if this is not said.
    #[serde(default)]
    port: Option<u16>,
    /// The line.
    line: String,
    /// The most bytes of the answer.
    #[serde(default)]
    response_bytes: Option<u32>,
    /// The time for all of it, in milliseconds.
    #[serde(default)]
    total_ms: Option<u32>,
    /// The time between two pieces, in milliseconds.
    #[serde(default)]
    idle_ms: Option<u32>,
    /// How often, all at once.
    #[serde(default)]
    times: Option<usize>,
}

#[derive(Default, Serialize, JsonSchema)]
struct Output {
    /// `ok`, or the name of what went wrong.
    outcome: String,
    /// What else there is to say of that.
    told: String,
    /// Bytes of the answer.
    bytes: usize,
    /// How the answer begins, with everything escaped that is not printable ASCII.
    text: String,
    /// How often each outcome was.
    outcomes: String,
}

fn plugin() -> Plugin {
    Plugin::new("asks", "0.1.0", "Asks what it is told to")
        .wants("line-query:*:43", "to ask what it is told to")
        .wants("line-query:named.test:4343", "to ask on another port")
        .operation(
            Operation::new("ask", ask)
                .title("Ask")
                .description("Sends the line that the caller gives.")
                .rest(Rest::post("/api/v1/test/ask", "test:ask"))
                .deadline_ms(60_000),
        )
}

switchbay_sdk::export!(plugin);

async fn ask(_call: Call, input: Input) -> Result<Reply<Output>, Failure> {
    let times = input.times.unwrap_or(1);
    let mut all = futures::future::join_all((0..times).map(|_| one(input.clone()))).await;
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for output in &all {
        *outcomes.entry(&output.outcome).or_default() += 1;
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

async fn one(input: Input) -> Output {
    let Input {
        host,
        port,
        line,
        response_bytes,
        total_ms,
        idle_ms,
        ..
    } = input;
    let request = Request {
        response_bytes,
        total_ms,
        idle_ms,
        ..Request::new(host, port.unwrap_or(43), line)
    };
    match query(request).await {
        Ok(answer) => {
            let text = answer
                .iter()
                .take(2000)
                .flat_map(|byte| byte.escape_ascii())
                .map(char::from)
                .collect();
            Output {
                outcome: "ok".to_owned(),
                bytes: answer.len(),
                text,
                ..Output::default()
            }
        }
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

fn named(error: Error) -> (&'static str, String) {
    let none = String::new;
    match error {
        Error::Denied(Denial::NotGranted(told)) => ("not_granted", told),
        Error::Denied(Denial::NotPublic(told)) => ("not_public", told),
        Error::Denied(Denial::NotAcceptable(told)) => ("not_acceptable", told),
        Error::InvalidRequest(told) => ("invalid_request", told),
        Error::Busy => ("busy", none()),
        Error::Unresolved => ("unresolved", none()),
        Error::Unreachable => ("unreachable", none()),
        Error::Late => ("late", none()),
        Error::TooLarge => ("too_large", none()),
        Error::Broken(told) => ("broken", told),
    }
}
