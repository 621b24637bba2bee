//! A guest that asks resolvers what the caller wants to know, and tells what came of it.

use serde::{Deserialize, Serialize};
use switchbay_sdk::dns::{self, Denial, Error, Question};
use switchbay_sdk::http::{self, Request};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, Failure, Operation, Plugin, Reply, Rest};

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The resolver's name.
    resolver: String,
    /// The name to ask for.
    name: String,
    /// The types to ask for, all at once.
    #[schemars(length(min = 1, max = 100))]
    types: Vec<u16>,
    /// The time for each question, in milliseconds.
    #[serde(default)]
    timeout_ms: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// What came of each question, in their order.
    answers: Vec<Answer>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    /// `ok`, or the name of what went wrong.
    outcome: String,
    /// What else there is to say of that.
    told: String,
    /// The message, in hexadecimal.
    message: String,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Posted {
    /// Where to.
    url: String,
}

#[derive(Serialize, JsonSchema)]
struct Outcome {
    /// `ok`, or what went wrong.
    outcome: String,
}

fn plugin() -> Plugin {
    Plugin::new("resolves", "0.1.0", "Asks resolvers")
        .wants("dns:cloudflare", "to ask it")
        .wants("dns:google", "to ask it as well")
        .wants("dns:near", "to ask one that is not public")
        .wants("dns:unknown", "to ask one that is not configured")
        .wants(
            "http:POST https://ungranted.resolver.test/dns-query",
            "to see that this is no right to ask there",
        )
        .operation(
            Operation::new("query", query)
                .title("Query")
                .description("Asks the questions that the caller describes.")
                .rest(Rest::post("/api/v1/test/query", "test:query"))
                .deadline_ms(60_000),
        )
        .operation(
            Operation::new("post", post)
                .title("Post")
                .description("Makes an empty request.")
                .rest(Rest::post("/api/v1/test/post", "test:query")),
        )
}

switchbay_sdk::export!(plugin);

async fn query(_call: Call, input: Input) -> Result<Reply<Output>, Failure> {
    let asking = input
        .types
        .iter()
        .map(|record_type| one(&input, *record_type));
    Ok(Reply::ok(Output {
        answers: futures::future::join_all(asking).await,
    }))
}

async fn one(input: &Input, record_type: u16) -> Answer {
    let mut question = Question::new(&input.resolver, &input.name, record_type);
    if let Some(ms) = input.timeout_ms {
        question = question.within_ms(ms);
    }
    let (outcome, told, message) = match dns::query(question).await {
        Ok(message) => ("ok", String::new(), message),
        Err(error) => {
            let (outcome, told) = named(error);
            (outcome, told, Vec::new())
        }
    };
    let message = message.iter().map(|byte| format!("{byte:02x}")).collect();
    Answer {
        outcome: outcome.to_owned(),
        told,
        message,
    }
}

async fn post(_call: Call, input: Posted) -> Result<Reply<Outcome>, Failure> {
    let outcome = match Request::new("POST", input.url).send().await {
        Ok(_) => "ok",
        Err(http::Error::Denied(http::Denial::NotGranted(_))) => "not_granted",
        Err(http::Error::Denied(http::Denial::NotPublic(_) | http::Denial::NotAcceptable(_))) => {
            "denied otherwise"
        }
        Err(_) => "failed",
    };
    Ok(Reply::ok(Outcome {
        outcome: outcome.to_owned(),
    }))
}

fn named(error: Error) -> (&'static str, String) {
    match error {
        Error::Denied(Denial::NotGranted(told)) => ("not_granted", told),
        Error::Denied(Denial::NotPublic(told)) => ("not_public", told),
        Error::Denied(Denial::NotAcceptable(told)) => ("not_acceptable", told),
        Error::InvalidRequest(told) => ("invalid_request", told),
        Error::Busy => ("busy", String::new()),
        Error::Unreachable => ("unreachable", String::new()),
        Error::Late => ("late", String::new()),
        Error::BadResponse(told) => ("bad_response", told),
    }
}
