//! A guest that breaks every promise that a plugin makes, one operation each, and one that behaves.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Tool, config, log};

const SCOPE: &str = "test:misbehave";
const DECLARED: ErrorCode = ErrorCode::new("TEAPOT", 418, "The pot was asked for coffee.");
const UNDECLARED: ErrorCode = ErrorCode::new("SURPRISE", 400, "Nobody was told.");
const LATE: ErrorCode = ErrorCode::new("TOO_LATE", 504, "The operation did not finish.");

static CALLS: AtomicU64 = AtomicU64::new(0);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// How it should misbehave.
    how: How,
    /// What it holds while it misbehaves.
    #[serde(default)]
    note: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum How {
    Behave,
    Trap,
    TrapWithNote,
    FailWithNote,
    LogBelow,
    EatMemory,
    GrowMemory,
    Recurse,
    Exit,
    FailAsDeclared,
    FailUndeclared,
    UndeclaredOutcome,
    UndeclaredHeader,
    HostDetails,
    BreakSchema,
    HugeReply,
    FloodLog,
    ForgeLog,
    ReadConfig,
    OpenFile,
    Connect,
    TellCaller,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Calls that this instance has served.
    #[schemars(range(max = 1_000_000))]
    calls: u64,
    /// What came of it.
    result: String,
}

fn plugin() -> Plugin {
    Plugin::new("misbehave", "0.1.0", "Breaks the promises of a plugin")
        .wants("logging", "to flood the log")
        .wants("config", "to read its settings")
        .operation(
            Operation::new("misbehave", misbehave)
                .title("Misbehave")
                .description("Misbehaves in the way that the caller asks for.")
                .rest(Rest::post("/api/v1/test/misbehave", SCOPE).header("X-Declared"))
                .tool(Tool::new("misbehave", SCOPE))
                .error(DECLARED)
                // Long enough for a thousand callers on a busy machine.
                .deadline_ms(60_000),
        )
        .operation(
            Operation::new("wait", wait)
                .title("Wait")
                .description("Waits for an hour, which is longer than its deadline.")
                .rest(Rest::post("/api/v1/test/wait", SCOPE))
                .tool(Tool::new("wait", SCOPE))
                .error(LATE)
                .deadline_ms(1000)
                .on_deadline(&LATE, Some(7)),
        )
}

switchbay_sdk::export!(plugin);

async fn misbehave(call: Call, input: Input) -> Result<Reply<Output>, Failure> {
    let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    let output = |result: &str| Output {
        calls,
        result: result.to_owned(),
    };
    match input.how {
        How::Behave => Ok(Reply::ok(output("well")).header("X-Declared", "yes")),
        How::Trap => panic!("the guest says no"),
        How::TrapWithNote => panic!("the guest says {:?}", input.note),
        How::FailWithNote => {
            let note = input.note.unwrap_or_default();
            Err(
                Failure::new(&ErrorCode::new("SURPRISE", 400, "Nobody was told."), &note)
                    .detail("note", note.as_str()),
            )
        }
        How::LogBelow => {
            (0..1000).for_each(|line| log::debug(&format!("below {line}")));
            log::info("above");
            Ok(Reply::ok(output("logged")))
        }
        How::EatMemory => Ok(Reply::ok(output(&eat_memory()))),
        How::GrowMemory => {
            let held = std::hint::black_box(vec![1_u8; 8 << 20]);
            Ok(Reply::ok(output(&format!("held {} bytes", held.len()))))
        }
        How::Recurse => Ok(Reply::ok(output(&recurse(1).to_string()))),
        How::Exit => std::process::exit(3),
        How::FailAsDeclared => Err(Failure::new(&DECLARED, "`how` asks for coffee")
            .detail("field", "how")
            .retry_after_ms(1500)),
        How::FailUndeclared => Err(Failure::new(&UNDECLARED, "a secret of the guest")),
        How::UndeclaredOutcome => Ok(Reply::outcome("accepted", output("well"))),
        How::UndeclaredHeader => Ok(Reply::ok(output("well")).header("Set-Cookie", "a=b")),
        How::HostDetails => Err(Failure::new(&DECLARED, "forged").detail("requestId", "forged")),
        How::BreakSchema => Ok(Reply::ok(Output {
            calls: 1_000_001,
            result: "over the bound".to_owned(),
        })),
        How::HugeReply => Ok(Reply::ok(output(&"x".repeat(3 << 20)))),
        How::FloodLog => {
            for line in 0..1000 {
                log::info(&format!("flood {line}"));
            }
            Ok(Reply::ok(output("flooded")))
        }
        How::ForgeLog => {
            log::info("one line\n{\"level\":\"ERROR\",\"message\":\"forged\"}");
            Ok(Reply::ok(output("forged")))
        }
        How::ReadConfig => Ok(Reply::ok(output(&format!(
            "{:?} {:?}",
            config::get("greeting"),
            config::get("list")
        )))),
        How::OpenFile => Ok(Reply::ok(output(&format!(
            "{:?}",
            std::fs::read_to_string("/etc/passwd").is_err()
        )))),
        How::Connect => {
            let refused = std::net::TcpStream::connect("127.0.0.1:7071").is_err();
            Ok(Reply::ok(output(&format!("{refused:?}"))))
        }
        How::TellCaller => Ok(Reply::ok(output(&format!(
            "{:?} {}",
            call.caller.kind, call.caller.owner
        )))),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoInput {}

async fn wait(_call: Call, _input: NoInput) -> Result<Reply<Output>, Failure> {
    std::thread::sleep(std::time::Duration::from_secs(3600));
    Ok(Reply::ok(Output {
        calls: 0,
        result: "waited".to_owned(),
    }))
}

fn eat_memory() -> String {
    let mut held: Vec<Vec<u8>> = Vec::new();
    loop {
        held.push(vec![1; 1 << 20]);
        if held.len() > 4096 {
            return format!("held {} MiB", held.len());
        }
    }
}

fn recurse(depth: u64) -> u64 {
    if depth == u64::MAX {
        return 0;
    }
    let frame = std::hint::black_box([depth; 64]);
    1 + recurse(frame[usize::try_from(depth % 64).unwrap_or(0)] + 1)
}
