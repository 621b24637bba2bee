//! A guest that writes log lines, for a manifest that does not grant them.

use serde::{Deserialize, Serialize};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, Failure, Operation, Plugin, Reply, Rest, log};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {}

#[derive(Serialize, JsonSchema)]
struct Output {}

fn plugin() -> Plugin {
    Plugin::new("ungranted", "0.1.0", "Imports what it was not granted").operation(
        Operation::new("speak", speak)
            .title("Speak")
            .description("Writes a line into the operator's log.")
            .rest(Rest::post("/api/v1/test/speak", "test:speak")),
    )
}

switchbay_sdk::export!(plugin);

async fn speak(_call: Call, _input: Input) -> Result<Reply<Output>, Failure> {
    log::info("spoken");
    Ok(Reply::ok(Output {}))
}
