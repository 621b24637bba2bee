//! Descriptions that break a rule of one row: words, faces, outcomes, errors, examples.

use serde_json::{Value, json};

use super::Floor;

impl Floor {
    /// As `check_with`, for the first operation, whose name stands before the message.
    async fn check_operation(&mut self, member: &str, value: Value, message: &str) {
        let message = format!("operation `first` {message}");
        self.check_with(&[(&format!("/operations/0{member}"), value)], &message)
            .await;
    }
}

async fn heads(floor: &mut Floor) {
    let version =
        "its description must have a version of 1 to 64 printable ASCII characters without spaces";
    floor.check_with(&[("/version", json!(""))], version).await;
    floor
        .check_with(
            &[("/summary", json!(""))],
            "its description must have a summary of 1 to 200 bytes, not 0",
        )
        .await;
    let summary = "its description must have a summary of 1 to 200 bytes, not 201";
    floor
        .check_with(&[("/summary", json!("s".repeat(201)))], summary)
        .await;
}

async fn words(floor: &mut Floor) {
    let id = "operation `First` must have an id of 1 to 40 characters of a-z, 0-9 and _, starting with a letter";
    floor
        .check_with(&[("/operations/0/id", json!("First"))], id)
        .await;
    floor
        .check_operation(
            "/title",
            json!(""),
            "must have a title of 1 to 60 characters, not 0",
        )
        .await;
    let short = "must have a description of 20 to 1000 characters, not 6";
    floor
        .check_operation("/description", json!("Serves"), short)
        .await;
    floor
        .check_operation(
            "/deadline_ms",
            json!(0),
            "has a deadline of 0 ms; it must be from 1 to 150000",
        )
        .await;
    let faceless = [
        ("/operations/0/rest", Value::Null),
        ("/operations/0/tool", Value::Null),
    ];
    floor
        .check_with(
            &faceless,
            "operation `first` has no face; declare `rest`, `tool` or `operator`",
        )
        .await;
}

async fn routes(floor: &mut Floor) {
    floor
        .check_operation(
            "/rest/method",
            json!("PUT"),
            "has the method `PUT`; it must be GET, POST or DELETE",
        )
        .await;
    for path in [
        "/api/v2/test",
        "/api/v1/Test",
        "/api/v1/test/",
        "/api/v1/{*rest}",
        "/api/v1/{a}{b}",
    ] {
        let rule = format!(
            "has the path `{path}`; write /api/v1/ and segments of a-z, 0-9, - or {{name}}"
        );
        floor
            .check_operation("/rest/path", json!(path), &rule)
            .await;
    }
    let shape = "has {shape} in its path, which its input does not have";
    floor
        .check_operation("/rest/path", json!("/api/v1/{shape}"), shape)
        .await;
    let twice = "has {colour} more than once in its path";
    floor
        .check_operation("/rest/path", json!("/api/v1/{colour}/{colour}"), twice)
        .await;
    floor
        .check_operation(
            "/rest/access/scope",
            json!("test"),
            "has the scope `test`; write `area:action`",
        )
        .await;
    let large = "has `body_bytes_max` 1048577; it must be from 1 to 1048576";
    floor
        .check_operation("/rest/body_bytes_max", json!(1_048_577), large)
        .await;
    let header = "declares the header `Set-Cookie`, which plugins may not set";
    floor
        .check_operation("/rest/headers", json!(["Set-Cookie"]), header)
        .await;
}

async fn outcomes(floor: &mut Floor) {
    floor
        .check_operation("/rest/outcomes", json!({}), "declares no outcome")
        .await;
    for status in [199, 204, 302, 404, 1000] {
        let rule = format!(
            "declares the outcome `ok` with status {status}; it must be a 2xx that has a body"
        );
        floor
            .check_operation("/rest/outcomes", json!({ "ok": status }), &rule)
            .await;
    }
    let name = "declares the outcome `OK`; write 1 to 40 characters of a-z, 0-9 and _";
    floor
        .check_operation("/rest/outcomes", json!({ "OK": 200 }), name)
        .await;
    let undeclared = "narrows the outcome `other`, which it does not declare";
    floor
        .check_operation("/rest/narrowed", json!({ "other": {} }), undeclared)
        .await;
    let absent = "narrows `shape`, which its output does not have";
    floor
        .check_operation(
            "/rest/narrowed",
            json!({ "ok": { "shape": { "type": "string" } } }),
            absent,
        )
        .await;
    let foreign = "narrows the outcome `ok`: the schema at `/served` uses `not`, which many clients do not support";
    floor
        .check_operation(
            "/rest/narrowed",
            json!({ "ok": { "served": { "not": {} } } }),
            foreign,
        )
        .await;
}

async fn errors(floor: &mut Floor) {
    let error =
        |code: &str, status: u16| json!({ "code": code, "status": status, "when": "Always." });
    for status in [200, 399, 600] {
        let rule = format!("declares `TEAPOT` with status {status}; it must be from 400 to 599");
        floor
            .check_operation("/errors", json!([error("TEAPOT", status)]), &rule)
            .await;
    }
    let code = "declares the error code `teapot`; write upper-case words with underscores";
    floor
        .check_operation("/errors", json!([error("teapot", 418)]), code)
        .await;
    let own = "declares `UNAUTHORIZED`, which is reserved for the host";
    floor
        .check_operation("/errors", json!([error("UNAUTHORIZED", 401)]), own)
        .await;
    let known = "declares `NOT_FOUND` with status 410 Gone; this service uses 404 Not Found";
    floor
        .check_operation("/errors", json!([error("NOT_FOUND", 410)]), known)
        .await;
    let twice = "declares `TEAPOT` more than once";
    floor
        .check_operation(
            "/errors",
            json!([error("TEAPOT", 418), error("TEAPOT", 500)]),
            twice,
        )
        .await;
    let late = "assigns the undeclared code `TOO_LATE` to a failure of the host";
    floor
        .check_operation("/on_deadline", json!({ "code": "TOO_LATE" }), late)
        .await;
}

async fn tools(floor: &mut Floor) {
    for name in ["Serve", "no", "serve-it", "1st", &"t".repeat(41)] {
        let rule =
            format!("has the tool name `{name}`; write 3 to 40 characters of a-z, 0-9 and _");
        floor
            .check_operation("/tool/name", json!(name), &rule)
            .await;
    }
    let hints = "the annotations are the booleans readOnlyHint, destructiveHint, idempotentHint, openWorldHint";
    let mood = format!("has the tool annotation `mood`; {hints}");
    floor
        .check_operation("/tool/annotations", json!({ "mood": true }), &mood)
        .await;
    let fixed = "fixes or hides `shape`, which its input does not have";
    floor
        .check_operation("/tool/hidden", json!(["shape"]), fixed)
        .await;
    let long = "fixes `colour`, which must have at most 5 characters, not 6";
    floor
        .check_operation("/tool/fixed", json!({ "colour": "purple" }), long)
        .await;
    let added = "adds `colour`, which its input already has";
    floor
        .check_operation("/tool/added", json!({ "colour": {} }), added)
        .await;
}

async fn examples(floor: &mut Floor) {
    let example = |input: Value| json!([{ "title": "One", "input": input }]);
    let judged = "names `shape` in `judges`, which its input does not have";
    floor
        .check_operation("/judges", json!(["shape"]), judged)
        .await;
    let long = "has the example `One`, whose `colour` must have at most 5 characters, not 6";
    floor
        .check_operation("/examples", example(json!({ "colour": "purple" })), long)
        .await;
    let unknown = "has the example `One`, whose `shape` is unknown; the known fields are colour";
    floor
        .check_operation("/examples", example(json!({ "shape": "round" })), unknown)
        .await;
    // An operation without a route has its examples checked by its tool.
    let by_tool = [
        ("/operations/0/rest", Value::Null),
        ("/operations/0/examples", example(json!({ "colour": 5 }))),
    ];
    let kind = "operation `first` has the example `One`, whose `colour` must be a string, not 5";
    floor.check_with(&by_tool, kind).await;
}

async fn defaults(floor: &mut Floor) {
    let kind = "has a default for `colour`, which must be a string, not 5";
    floor
        .check_operation("/input/properties/colour/default", json!(5), kind)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_that_breaks_a_rule_is_told_by_row_and_rule() {
    let mut floor = Floor::open().await;
    heads(&mut floor).await;
    words(&mut floor).await;
    routes(&mut floor).await;
    outcomes(&mut floor).await;
    errors(&mut floor).await;
    tools(&mut floor).await;
    examples(&mut floor).await;
    defaults(&mut floor).await;
}
