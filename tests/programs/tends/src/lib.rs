//! A guest whose records callers make, and the operator tends.

use serde::{Deserialize, Serialize};
use switchbay_sdk::jobs::{self, Submission};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::state::{self, Expected};
use switchbay_sdk::{Call, CallerKind, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Tool};

const NOT_FOUND: ErrorCode = ErrorCode::new("NOT_FOUND", 404, "Nobody has made such a record.");
const UNAVAILABLE: ErrorCode =
    ErrorCode::new("SERVICE_UNAVAILABLE", 503, "The records cannot be used.");

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    /// The record's name.
    #[schemars(length(min = 1, max = 20))]
    name: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Seen {
    /// Of what kind the caller is.
    kind: String,
    /// Who the caller is.
    owner: String,
    /// Who made the record.
    #[serde(default)]
    made_by: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Started {
    /// The job.
    job: String,
    /// What came of it.
    output: Option<String>,
}

fn plugin() -> Plugin {
    let with = |operation: Operation| {
        operation
            .title("Tend records")
            .description("Tends records by their names.")
            .error(NOT_FOUND)
            .error(UNAVAILABLE)
            .example("A record", r#"{ "name": "first" }"#)
    };
    Plugin::new("tends", "0.1.0", "Tends records")
        .wants("state:64KiB", "to keep the records")
        .wants("jobs", "to tend them in peace")
        .operation(
            with(Operation::new("make", make))
                .rest(Rest::post("/api/v1/test/tends", "test:tends"))
                .tool(Tool::new("make_record", "test:tends")),
        )
        .operation(with(Operation::new("drop", drop_record)).operator())
        .operation(
            Operation::new("survey", survey)
                .title("Survey the records")
                .description("Has a job look at the records, and waits for its end.")
                .error(UNAVAILABLE)
                .worker(look)
                .operator(),
        )
}

fn seen(call: &Call, made_by: Option<String>) -> Seen {
    let kind = match call.caller.kind {
        CallerKind::ApiKey => "api-key",
        CallerKind::Oauth => "oauth",
        CallerKind::Session => "session",
        CallerKind::JobToken => "job-token",
        CallerKind::FirstParty => "first-party",
        CallerKind::Operator => "operator",
    };
    Seen {
        kind: kind.to_owned(),
        owner: call.caller.owner.clone(),
        made_by,
    }
}

async fn make(call: Call, named: Named) -> Result<Reply<Seen>, Failure> {
    let kept = state::put(&named.name, call.caller.owner.as_bytes(), Expected::Any).await;
    kept.map_err(|_| unavailable())?;
    Ok(Reply::ok(seen(&call, None)))
}

async fn drop_record(call: Call, named: Named) -> Result<Reply<Seen>, Failure> {
    let found = state::get(&named.name).await.map_err(|_| unavailable())?;
    let Some(found) = found else {
        return Err(NOT_FOUND.failure("there is no such record").field("name"));
    };
    let dropped = state::delete(&named.name, Expected::Version(found.version)).await;
    dropped.map_err(|_| unavailable())?;
    let made_by = String::from_utf8_lossy(&found.value).into_owned();
    Ok(Reply::ok(seen(&call, Some(made_by))))
}

async fn survey(call: Call, input: Nothing) -> Result<Reply<Started>, Failure> {
    let submission = Submission::new(call.request_id.clone(), &input);
    let job = jobs::submit(&submission).await.map_err(told)?;
    jobs::wait(&job, 8_000).await.map_err(told)?;
    let page = jobs::Page {
        offset: 0,
        items_max: 1,
        bytes_max: 1 << 10,
    };
    let output = jobs::read(&job, page)
        .await
        .map_err(|_| unavailable())?
        .output;
    Ok(Reply::ok(Started { job, output }))
}

async fn look(call: Call, _input: Nothing) -> Result<Reply<Seen>, Failure> {
    Ok(Reply::ok(seen(&call, None)))
}

fn unavailable() -> Failure {
    UNAVAILABLE.failure("the records cannot be used")
}

fn told(error: impl std::fmt::Debug) -> Failure {
    UNAVAILABLE.failure(format!("{error:?}"))
}

switchbay_sdk::export!(plugin);
switchbay_sdk::export_worker!(plugin);
