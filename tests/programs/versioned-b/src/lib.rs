//! Revision b of a plugin that is swapped under load: body, schema, header and text all say `b`, so that an answer that
//! mixes two revisions shows.

use serde::{Deserialize, Serialize};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, Failure, Operation, Plugin, Reply, Rest, Tool};

const SCOPE: &str = "test:versioned";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {}

#[derive(Serialize, JsonSchema)]
struct Output {
    /// The revision.
    #[schemars(regex(pattern = "^b$"))]
    revision: &'static str,
}

fn plugin() -> Plugin {
    Plugin::new("versioned", "0.1.0-b", "Is swapped under load").operation(
        Operation::new("which", which)
            .title("Which revision")
            .description("Tells that this is revision b of the plugin.")
            .rest(
                Rest::get("/api/v1/test/which", SCOPE)
                    .cache_control("max-age=22")
                    .etag(),
            )
            .tool(Tool::new("which_revision", SCOPE).read_only()),
    )
}

switchbay_sdk::export!(plugin);

async fn which(_call: Call, _input: Input) -> Result<Reply<Output>, Failure> {
    Ok(Reply::ok(Output { revision: "b" }))
}
