//! A guest that uses up its processor budget, and one operation that counts its instance's calls.
//!
//! It stands alone because repeated kills pause the whole plugin.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, Failure, Operation, Plugin, Reply, Rest};

const SCOPE: &str = "test:spin";

static CALLS: AtomicU64 = AtomicU64::new(0);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// How long to work, in milliseconds of the clock; left out, for ever.
    milliseconds: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// Calls that this instance has served.
    calls: u64,
}

fn plugin() -> Plugin {
    Plugin::new("spin", "0.1.0", "Works without end").operation(
        Operation::new("spin", spin)
            .title("Spin")
            .description("Works for as long as the caller asks, or for ever.")
            .rest(Rest::post("/api/v1/test/spin", SCOPE)),
    )
}

switchbay_sdk::export!(plugin);

async fn spin(_call: Call, input: Input) -> Result<Reply<Output>, Failure> {
    let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    let started = std::time::Instant::now();
    let time = input.milliseconds.map(std::time::Duration::from_millis);
    while time.is_none_or(|time| started.elapsed() < time) {
        std::hint::black_box(calls);
    }
    Ok(Reply::ok(Output { calls }))
}
