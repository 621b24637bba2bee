//! A guest whose operations differ in what a call takes of its caller's limits, and end as the caller asks.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Tool};

const SCOPE: &str = "test:metered";
const DECLARED: ErrorCode = ErrorCode::new("TEAPOT", 418, "The pot was asked for coffee.");

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// How it should end.
    #[serde(default)]
    how: How,
    /// How long it takes before that, in milliseconds.
    #[serde(default)]
    #[schemars(range(max = 60_000))]
    wait_ms: u64,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum How {
    #[default]
    Reply,
    Fail,
    Trap,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// What came of it.
    result: String,
    /// How the caller is known.
    caller: String,
}

fn plugin() -> Plugin {
    let of = |id: &'static str, path: &'static str, tool: &'static str| {
        Operation::new(id, answer)
            .title("Metered")
            .description("Ends as the caller asks, for a price.")
            .rest(Rest::post(path, SCOPE))
            .tool(Tool::new(tool, SCOPE))
            .error(DECLARED)
            // Long enough for a busy machine.
            .deadline_ms(30_000)
    };
    Plugin::new("metered", "0.1.0", "Differs in what a call takes")
        .operation(of("plain", "/api/v1/test/plain", "call_plain"))
        .operation(of("limited", "/api/v1/test/limited", "call_limited").window_per_minute(3))
        .operation(of("unmetered", "/api/v1/test/unmetered", "call_unmetered").consumes(&[]))
        .operation(of("costly", "/api/v1/test/costly", "call_costly").cost(4))
        .operation(
            of("brief", "/api/v1/test/brief", "call_brief")
                .cost(4)
                .deadline_ms(1000),
        )
        .operation(of("open", "/api/v1/test/open", "call_open").first_party_per_minute(3))
        .operation(of("started", "/api/v1/test/started", "call_started").named_by_request_id())
}

switchbay_sdk::export!(plugin);

async fn answer(call: Call, input: Input) -> Result<Reply<Output>, Failure> {
    std::thread::sleep(Duration::from_millis(input.wait_ms));
    match input.how {
        How::Reply => Ok(Reply::ok(Output {
            result: "done".to_owned(),
            caller: format!("{:?}", call.caller.kind),
        })),
        How::Fail => Err(Failure::new(&DECLARED, "`how` asks for coffee")),
        How::Trap => panic!("the guest says no"),
    }
}
