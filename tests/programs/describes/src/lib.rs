//! A guest that describes itself by whatever stands in its place for text, which a test writes into the built component:
//! one build gives every description, right or wrong. It speaks the bare contract, because the SDK's types say nothing wrong.

use switchbay_sdk::bindings;
use switchbay_sdk::bindings::exports::switchbay::plugin0_2_0::feature::{
    Call, Failure, Guest, Reply,
};

/// The place: a run of `#` that no compiler makes by chance. The test puts its text there and fills up with `#`.
static PLACE: [u8; 16384] = [b'#'; 16384];

struct Component;

impl Guest for Component {
    fn describe() -> String {
        // Without the black box the compiler would know what stands there.
        let text = std::hint::black_box(&PLACE);
        let length = text
            .iter()
            .rposition(|&byte| byte != b'#')
            .map_or(0, |last| last + 1);
        let text = String::from_utf8_lossy(&text[..length]).into_owned();
        match text.as_str() {
            "trap" => panic!("the guest does not describe itself"),
            "exit" => std::process::exit(3),
            "loop" => loop {
                std::hint::black_box(&text);
            },
            "eat memory" => {
                let mut held = Vec::new();
                loop {
                    held.push(std::hint::black_box(vec![1_u8; 1 << 20]));
                }
            }
            "unstable" => format!("{:?}", std::time::SystemTime::now()),
            _ => text,
        }
    }

    async fn invoke(_call: Call, _input: String) -> Result<Reply, Failure> {
        let data = r#"{"served":true}"#.to_owned();
        Ok(Reply {
            outcome: "ok".to_owned(),
            data,
            headers: Vec::new(),
            attachments: Vec::new(),
        })
    }
}

bindings::export_component!(Component with_types_in bindings);
