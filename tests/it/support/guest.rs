//! The guest whose description a test writes into it: one build gives every plugin that only has to be there.

use serde_json::{Value, json};

use super::workspace;

/// A component that `switchbay build` made of the tests' programs.
pub(crate) fn built(component: &str) -> Vec<u8> {
    let file = workspace().join(format!(
        "target/components/wasm32-wasip2/plugin/{component}.wasm"
    ));
    std::fs::read(file).expect("the component is built")
}

/// The guest (`tests/programs/describes`), describing itself by this text.
pub(crate) fn describing(text: &str) -> Vec<u8> {
    described_by(built("describes"), text)
}

/// The guest as it was built once, describing itself by this text.
pub(crate) fn described_by(mut component: Vec<u8>, text: &str) -> Vec<u8> {
    const PLACE: [u8; 16384] = [b'#'; 16384];
    let at = component
        .windows(PLACE.len())
        .position(|window| window == PLACE)
        .expect("a place for the text");
    component[at..at + text.len()].copy_from_slice(text.as_bytes());
    component
}

/// A description that can be served.
pub(crate) fn good(name: &str) -> Value {
    json!({
        "schema": 1,
        "name": name,
        "version": "0.1.0",
        "summary": "Describes itself as a test wants",
        "operations": [operation("first", name)],
    })
}

/// An operation with both faces, which serves whatever it is asked for.
pub(crate) fn operation(id: &str, word: &str) -> Value {
    json!({
        "id": id,
        "title": "Serve",
        "description": "Serves, whatever it is asked for.",
        "input": {
            "type": "object",
            "properties": { "colour": { "type": "string", "description": "A colour.", "maxLength": 5 } },
            "additionalProperties": false,
        },
        "output": { "type": "object", "properties": { "served": { "type": "boolean" } }, "required": ["served"] },
        "rest": {
            "method": "GET",
            "path": format!("/api/v1/test/{word}"),
            "access": { "scope": "test:describes" },
            "outcomes": { "ok": 200 },
        },
        "tool": { "name": format!("serve_{word}"), "access": { "scope": "test:describes" } },
        "errors": [{ "code": "TEAPOT", "status": 418, "when": "Coffee is asked for." }],
        "examples": [{ "title": "Red", "input": { "colour": "red" } }],
    })
}
