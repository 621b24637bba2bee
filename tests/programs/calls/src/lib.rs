//! A guest that calls other plugins' operations, and is called. Its name and what it asks for stand in its place for text,
//! which a test writes into the built component: one build gives every plugin of a chain.

use std::hint::black_box;
use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::poll;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchbay_sdk::features::{self, FeatureError};
use switchbay_sdk::jobs::{self, Page, Submission};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Tool};

/// The place: a run of `#` that no compiler makes by chance. The test puts its text there and fills up with `#`.
static PLACE: [u8; 4096] = [b'#'; 4096];

const TEAPOT: ErrorCode = ErrorCode::new("TEAPOT", 418, "The pot was asked for coffee.");

/// What a test writes.
#[derive(Deserialize)]
struct Written {
    name: String,
    /// Tells one component of a plugin from another.
    mark: String,
    /// Atoms that it can do without.
    welcomes: Vec<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// How it should end.
    #[serde(default)]
    how: How,
    /// A short word.
    #[schemars(length(max = 5))]
    word: Option<String>,
    /// How long it takes before that, in milliseconds.
    #[serde(default)]
    #[schemars(range(max = 60_000))]
    wait_ms: u64,
    /// What it calls: plugin and operation.
    call: Option<String>,
    /// The input of that, as JSON text.
    with: Option<String>,
    /// How often at once.
    #[serde(default = "one")]
    times: usize,
    /// How often one after the other, each after the wait.
    #[serde(default = "one")]
    rounds: usize,
    /// For other plugins alone.
    #[serde(default)]
    #[schemars(skip)]
    secret: Option<String>,
}

fn one() -> usize {
    1
}

/// `Forget` begins its call and never looks at it again, `Hang` waits longer than any call may, `Spin` never ends, and `Toil` uses a tenth of a second of the processor. No variant has
/// a comment of its own: the schema would be a union.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum How {
    #[default]
    Reply,
    Forget,
    Fail,
    Hang,
    Spin,
    Toil,
    Trap,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// The plugin.
    name: String,
    /// Which component of it.
    mark: String,
    /// Its caller.
    owner: String,
    /// How that is known.
    kind: String,
    /// The correlation id.
    request: String,
    /// The time that it had.
    deadline_ms: u32,
    /// What only a plugin sends.
    secret: Option<String>,
    /// What its calls came to: the data in JSON, or the error.
    said: Vec<String>,
}

fn written() -> Written {
    // Without the black box the compiler would know what stands there.
    let text = black_box(&PLACE);
    let length = text.iter().rposition(|&byte| byte != b'#');
    let length = length.map_or(0, |last| last + 1);
    serde_json::from_slice(&text[..length]).expect("the test writes JSON")
}

fn plugin() -> Plugin {
    let Written { name, welcomes, .. } = written();
    let name: &'static str = name.leak();
    let text = |text: String| -> &'static str { text.leak() };
    let of = |id: &'static str, scope: &'static str| {
        let path = text(format!("/api/v1/test/{name}/{id}"));
        Operation::new(id, answer)
            .title("Call")
            .description("Calls other plugins as its caller asks.")
            .rest(rest(path, scope, id))
            .error(TEAPOT)
            .deadline_ms(30_000)
            .consumes(&[])
            .feature_input(
                "secret",
                json!({ "type": "string", "description": "Sent by plugins alone.", "maxLength": 20 }),
            )
    };
    let scope = text(format!("test:{name}"));
    let tool = Tool::new(text(format!("answer_{name}")), scope);
    let plugin = Plugin::new(name, "0.1.0", "Calls other plugins")
        .welcomes("jobs", "it calls in jobs too")
        .operation(of("answer", scope).tool(tool).first_party_per_minute(100))
        .operation(of("brief", scope).deadline_ms(1000))
        .operation(
            of("limited", scope)
                .window_per_minute(3)
                .first_party_per_minute(2),
        )
        .operation(of("start", scope).worker(answer))
        .operation(
            Operation::new("costly", answer)
                .title("Call")
                .description("Calls other plugins, for a price and a scope.")
                .rest(Rest::post(
                    text(format!("/api/v1/test/{name}/costly")),
                    "test:costly",
                ))
                .cost(4),
        );
    welcomes.into_iter().fold(plugin, |plugin, atom| {
        plugin.welcomes(text(atom), "it calls what the test says")
    })
}

switchbay_sdk::export!(plugin);
switchbay_sdk::export_worker!(plugin);

/// What `answer` takes is larger than what the others do, so that it can send them too much.
fn rest(path: &'static str, scope: &'static str, id: &str) -> Rest {
    let rest = Rest::post(path, scope);
    match id {
        "answer" => rest.body_bytes_max(65_536),
        _ => rest,
    }
}

async fn answer(call: Call, input: Input) -> Result<Reply<Output>, Failure> {
    if call.operation == "start" && call.job.is_none() {
        return Ok(Reply::ok(in_job(&call, input).await));
    }
    let mut said = Vec::new();
    for _ in 0..input.rounds {
        if let Some(operation) = &input.call {
            let with = input.with.as_deref().unwrap_or("{}");
            if let How::Forget = input.how {
                let mut forgotten = Box::pin(said_by(operation, with));
                said.push(format!("{:?}", poll!(forgotten.as_mut()).is_ready()));
                std::mem::forget(forgotten);
            } else {
                let calls = (0..input.times).map(|_| said_by(operation, with));
                said.extend(join_all(calls).await);
            }
        }
        std::thread::sleep(Duration::from_millis(input.wait_ms));
    }
    match input.how {
        How::Reply | How::Forget => {}
        How::Fail => {
            let failure = TEAPOT.failure("`how` asks for coffee").retry_after_ms(1500);
            return Err(failure.field("how"));
        }
        How::Hang => std::thread::sleep(Duration::from_secs(120)),
        How::Spin => toil(Duration::MAX),
        How::Toil => toil(Duration::from_millis(100)),
        How::Trap => panic!("the guest says no"),
    }
    Ok(Reply::ok(output(&call, input, said)))
}

fn output(call: &Call, input: Input, said: Vec<String>) -> Output {
    let Written { name, mark, .. } = written();
    Output {
        name,
        mark,
        owner: call.caller.owner.clone(),
        kind: format!("{:?}", call.caller.kind),
        request: call.request_id.clone(),
        deadline_ms: call.deadline_ms,
        secret: input.secret,
        said,
    }
}

/// What one call came to, in a line.
async fn said_by(operation: &str, with: &str) -> String {
    let (plugin, operation) = operation
        .split_once('.')
        .expect("a plugin and an operation");
    match features::call::<Value>(
        plugin,
        operation,
        &serde_json::from_str::<Value>(with).expect("JSON"),
    )
    .await
    {
        Ok(data) => data.to_string(),
        Err(FeatureError::NotGranted(told)) => format!("not granted: {told}"),
        Err(FeatureError::NotAcceptable(told)) => format!("not acceptable: {told}"),
        Err(FeatureError::Absent(told)) => format!("absent: {told}"),
        Err(FeatureError::TooDeep) => "too deep".to_owned(),
        Err(FeatureError::Busy) => "busy".to_owned(),
        Err(FeatureError::Unexpected(told)) => format!("unexpected: {told}"),
        Err(FeatureError::Failed(failure)) => format!(
            "failed: {} {} retry {} {}",
            failure.code,
            failure.message,
            failure.retry_after_ms.is_some(),
            failure.details.unwrap_or_default()
        ),
    }
}

/// Works on the input in a job, and tells its output as the one thing that was said.
async fn in_job(call: &Call, input: Input) -> Output {
    let job = jobs::submit(&Submission::new(call.request_id.clone(), &input)).await;
    let job = job.expect("it is submitted");
    jobs::wait(&job, 25_000).await.expect("it is waited for");
    let page = Page {
        offset: 0,
        items_max: 1,
        bytes_max: 1,
    };
    let ended = jobs::read(&job, page).await.expect("it is there");
    let failure = ended.failure.map(|failure| failure.code);
    let said = ended.output.or(failure).unwrap_or_default();
    output(call, input, vec![said])
}

/// Uses the processor for so long.
fn toil(time: Duration) {
    let (began, mut number) = (Instant::now(), 1_u64);
    while began.elapsed() < time {
        number = black_box(
            number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1),
        );
    }
}
