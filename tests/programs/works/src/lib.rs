//! A guest that works on jobs: it fetches one page after the other and emits what it found, or goes wrong as it is asked to.

use serde::{Deserialize, Serialize};
use serde_json::json;
use switchbay_sdk::jobs::{self, Error, Page, State, Submission, SubmitError, WorkError};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, http};

const SCOPE: &str = "test:works";
const NOT_FOUND: ErrorCode = ErrorCode::new("NOT_FOUND", 404, "The caller has no such job.");
const DUPLICATE: ErrorCode = ErrorCode::new("DUPLICATE_REQUEST", 409, "The request id is taken.");
const FULL: ErrorCode = ErrorCode::new("SERVICE_UNAVAILABLE", 503, "There are too many jobs.");
const REFUSED: ErrorCode = ErrorCode::new("REFUSED", 422, "The host refused what was asked.");
const UNDECLARED: ErrorCode = ErrorCode::new("SURPRISE", 422, "Nobody said so.");

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Start {
    /// The client's name for the submission.
    request: String,
    /// How many pages to fetch.
    #[serde(default)]
    pages: u32,
    /// What goes wrong after them.
    #[serde(default)]
    then: Then,
    /// In how many slices it uses much processor time, where it does.
    #[serde(default = "four")]
    slices: u32,
    /// How long the job lives.
    #[serde(default = "minute")]
    ttl_ms: u32,
    /// How long it may take.
    #[serde(default = "minute")]
    budget_ms: u32,
    /// How long the call waits for its end.
    #[serde(default)]
    wait_ms: u32,
}

fn minute() -> u32 {
    60_000
}

fn four() -> u32 {
    4
}

/// `Toil` uses much processor time between any two items, `Flood` emits until there is no room, `Crowd` emits a hundred items
/// at once, `Refused` emits what is refused. No variant has a comment of its own: the schema would be a union.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Then {
    #[default]
    Complete,
    Fail,
    Surprise,
    Trap,
    Spin,
    Toil,
    Flood,
    Crowd,
    Refused,
}

#[derive(Serialize, JsonSchema)]
struct Started {
    /// The job.
    job: String,
    /// How it stands.
    state: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Read {
    /// The job.
    job: String,
    /// How many items to pass over.
    #[serde(default)]
    offset: u32,
    /// How many items to read.
    #[serde(default = "five")]
    #[schemars(range(max = 1000))]
    items: u32,
    /// How many bytes of them.
    #[serde(default = "mebibyte")]
    bytes: u32,
}

fn five() -> u32 {
    5
}

fn mebibyte() -> u32 {
    1 << 20
}

#[derive(Serialize, JsonSchema)]
struct Shown {
    /// How it stands.
    state: String,
    /// All pages, if it says.
    total: Option<u32>,
    /// Pages that are done.
    completed: u32,
    /// The keys of the items.
    keys: Vec<String>,
    /// The first characters of each value.
    values: Vec<String>,
    /// Where the next page begins.
    next: Option<u32>,
    /// When it expires.
    expires_at_ms: u64,
    /// What it came to.
    output: Option<String>,
    /// Why it failed.
    failure: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {
    /// The job.
    job: String,
}

#[derive(Serialize, JsonSchema)]
struct Stands {
    /// How it stands.
    state: String,
}

fn plugin() -> Plugin {
    let with = |operation: Operation| {
        operation
            .title("Work")
            .description("Works on jobs as the caller asks.")
            .error(NOT_FOUND)
            .error(DUPLICATE)
            .error(FULL)
            .error(REFUSED)
            .deadline_ms(60_000)
    };
    let rest = |rest: Rest| rest.outcome("accepted", 202);
    Plugin::new("works", "0.1.0", "Works on jobs")
        .wants("http:GET http://pages.test/", "pages are there")
        .wants("jobs", "it works on jobs")
        .operation(
            with(Operation::new("start", start))
                .rest(rest(Rest::post("/api/v1/test/jobs", SCOPE)))
                .worker(work),
        )
        .operation(
            with(Operation::new("read", read))
                .rest(rest(Rest::get("/api/v1/test/jobs/{job}", SCOPE))),
        )
        .operation(
            with(Operation::new("cancel", cancel))
                .rest(rest(Rest::delete("/api/v1/test/jobs/{job}", SCOPE))),
        )
        .operation(
            with(Operation::new("crowd", crowd))
                .rest(Rest::post("/api/v1/test/jobs/{job}/crowd", SCOPE)),
        )
        .operation(
            with(Operation::new("outside", outside))
                .rest(Rest::post("/api/v1/test/outside", SCOPE)),
        )
}

switchbay_sdk::export!(plugin);
switchbay_sdk::export_worker!(plugin);

async fn start(_call: Call, start: Start) -> Result<Reply<Started>, Failure> {
    let submission = Submission {
        request_id: start.request.clone(),
        fingerprint: start.pages.to_string(),
        input: serde_json::to_string(&start).expect("it has a JSON form"),
        ttl_ms: start.ttl_ms,
        budget_ms: start.budget_ms,
    };
    let job = jobs::submit(&submission)
        .await
        .map_err(|error| match error {
            SubmitError::Duplicate(earlier) => Failure::new(&DUPLICATE, "taken")
                .detail("job", earlier.job)
                .detail("same", earlier.is_same),
            SubmitError::Full => Failure::new(&FULL, "full").retry_after_ms(10_000),
            SubmitError::Busy => Failure::new(&FULL, "busy"),
            SubmitError::Unavailable => Failure::new(&FULL, "unavailable"),
            SubmitError::NotGranted(told) | SubmitError::NotAcceptable(told) => {
                Failure::new(&REFUSED, told)
            }
        })?;
    let state = match start.wait_ms {
        0 => State::Pending,
        ms => jobs::wait(&job, ms).await.map_err(refused)?,
    };
    Ok(Reply::outcome(
        "accepted",
        Started {
            job,
            state: name(state).to_owned(),
        },
    ))
}

async fn read(_call: Call, read: Read) -> Result<Reply<Shown>, Failure> {
    let page = Page {
        offset: read.offset,
        items_max: read.items,
        bytes_max: read.bytes,
    };
    let found = jobs::read(&read.job, page).await.map_err(refused)?;
    let values = found
        .items
        .iter()
        .map(|item| item.value.chars().take(40).collect())
        .collect();
    Ok(Reply::ok(Shown {
        state: name(found.state).to_owned(),
        total: found.total,
        completed: found.completed,
        keys: found.items.into_iter().map(|item| item.key).collect(),
        values,
        next: found.next_offset,
        expires_at_ms: found.expires_at_ms,
        output: found.output,
        failure: found
            .failure
            .map(|failure| format!("{}: {}", failure.code, failure.message)),
    }))
}

async fn cancel(_call: Call, cancel: Cancel) -> Result<Reply<Stands>, Failure> {
    let state = jobs::cancel(&cancel.job).await.map_err(refused)?;
    Ok(Reply::ok(Stands {
        state: name(state).to_owned(),
    }))
}

/// Asks for a job's end a hundred times at once.
async fn crowd(_call: Call, crowd: Cancel) -> Result<Reply<Stands>, Failure> {
    let waits = (0..100).map(|_| jobs::wait(&crowd.job, 2000));
    let waited = futures::future::join_all(waits).await;
    let busy = waited
        .iter()
        .filter(|waited| matches!(waited, Err(Error::Busy)))
        .count();
    let running = waited
        .iter()
        .filter(|waited| matches!(waited, Ok(State::Running)))
        .count();
    Ok(Reply::ok(Stands {
        state: format!("busy {busy}, running {running}"),
    }))
}

/// Asks for a job's means where there is no job.
async fn outside(_call: Call, _input: Nothing) -> Result<Reply<Stands>, Failure> {
    let asked = [
        jobs::emit("key", "value", None).await.map(|_| ()),
        jobs::checkpoint("here").await,
        jobs::progress(None, 1),
        jobs::emitted().await.map(|_| ()),
    ];
    let told: Vec<&str> = asked
        .iter()
        .map(|asked| asked.as_ref().map_or_else(word, |()| "kept"))
        .collect();
    Ok(Reply::ok(Stands {
        state: told.join(" "),
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn refused(error: Error) -> Failure {
    match error {
        Error::NotFound => Failure::new(&NOT_FOUND, "there is no such job"),
        Error::Busy => Failure::new(&FULL, "busy"),
        Error::Unavailable => Failure::new(&FULL, "unavailable"),
        Error::NotGranted(told) | Error::NotAcceptable(told) => Failure::new(&REFUSED, told),
    }
}

fn word(error: &WorkError) -> &'static str {
    match error {
        WorkError::NotGranted(_) => "not-granted",
        WorkError::NotAcceptable(_) => "not-acceptable",
        WorkError::Ended => "ended",
        WorkError::Full => "full",
        WorkError::Busy => "busy",
        WorkError::Unavailable => "unavailable",
    }
}

fn name(state: State) -> &'static str {
    match state {
        State::Pending => "pending",
        State::Running => "running",
        State::Completed => "completed",
        State::Failed => "failed",
        State::Cancelled => "cancelled",
    }
}

async fn work(call: Call, start: Start) -> Result<Reply<serde_json::Value>, Failure> {
    let job = call.job.expect("a worker has a job");
    let first = job
        .checkpoint
        .map_or(0, |checkpoint| checkpoint.parse().expect("a number"));
    let lost = |error: WorkError| Failure::new(&REFUSED, word(&error));
    for page in first..start.pages {
        let url = format!("http://pages.test/{}/{page}", start.request);
        let fetched = http::get(url).total_ms(60_000).send().await;
        let text = fetched.map_or_else(|error| format!("{error:?}"), |answer| answer.text());
        let told = jobs::progress(Some(start.pages), page + 1);
        told.map_err(lost)?;
        let value = json!({ "page": page, "attempt": job.attempt, "text": text }).to_string();
        jobs::emit(&page.to_string(), &value, Some(&(page + 1).to_string()))
            .await
            .map_err(lost)?;
    }
    match start.then {
        Then::Complete => {}
        Then::Fail => return Err(Failure::new(&REFUSED, "the pages are no good")),
        Then::Surprise => return Err(Failure::new(&UNDECLARED, "surprise")),
        Then::Trap => panic!("the worker says no"),
        Then::Spin => toil(u64::MAX),
        Then::Toil => {
            for item in 0..start.slices {
                toil(250);
                jobs::emit(&format!("toil-{item}"), "{}", None)
                    .await
                    .map_err(lost)?;
            }
        }
        Then::Flood => return flood().await,
        Then::Crowd => return emit_at_once().await,
        Then::Refused => return refuse().await,
    }
    let keys = jobs::emitted().await.map_err(lost)?.len();
    Ok(Reply::ok(json!({ "attempt": job.attempt, "keys": keys })))
}

/// Uses the processor for so many milliseconds.
fn toil(ms: u64) {
    let began = std::time::Instant::now();
    let mut number = 1_u64;
    while began.elapsed() < std::time::Duration::from_millis(ms) {
        number = std::hint::black_box(
            number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1),
        );
    }
}

async fn flood() -> Result<Reply<serde_json::Value>, Failure> {
    let mut number = 0_u32;
    loop {
        match jobs::emit(&number.to_string(), "{}", None).await {
            Ok(_) => number += 1,
            Err(error) => return Ok(Reply::ok(json!({ "items": number, "then": word(&error) }))),
        }
    }
}

async fn emit_at_once() -> Result<Reply<serde_json::Value>, Failure> {
    let keys: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let emitted =
        futures::future::join_all(keys.iter().map(|key| jobs::emit(key, "{}", None))).await;
    let busy = emitted
        .iter()
        .filter(|emitted| matches!(emitted, Err(WorkError::Busy)))
        .count();
    let kept = emitted
        .iter()
        .filter(|emitted| matches!(emitted, Ok(true)))
        .count();
    Ok(Reply::ok(
        json!({ "busy": busy > 0, "kept": kept >= 32, "all": busy + kept }),
    ))
}

async fn refuse() -> Result<Reply<serde_json::Value>, Failure> {
    let (long, large) = ("k".repeat(2049), "v".repeat((1 << 20) + 1));
    let asked = [
        jobs::emit("", "{}", None).await,
        jobs::emit(&long, "{}", None).await,
        jobs::emit("key", &large, None).await,
        jobs::emit("key", "{}", Some(&large)).await,
        jobs::emit("key", "first", None).await,
        jobs::emit("key", "second", None).await,
    ];
    let told: Vec<String> = asked
        .iter()
        .map(|asked| {
            asked
                .as_ref()
                .map_or_else(|e| word(e).to_owned(), bool::to_string)
        })
        .collect();
    Ok(Reply::ok(json!(told)))
}
