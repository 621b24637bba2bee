//! Operations that a plugin serves to the operator alone: called, kept in the history, listed, and hidden from everybody else.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Answer, Options, Service, binary, build, described_by, describing, good, operator, workspace,
};

const DROP: &str = "/admin/v1/plugins/tends/operations/drop";

async fn serve() -> Service {
    Service::start(Options {
        manifest: Some(workspace().join("tests/programs/tends.toml")),
        ..Options::default()
    })
    .await
}

async fn make(service: &Service, name: &str) -> Value {
    let made = service
        .post("/api/v1/test/tends", &json!({ "name": name }))
        .await;
    assert_eq!(made.status, 200, "{made:?}");
    made.json()["data"].clone()
}

async fn drop_record(service: &Service, body: Value) -> Answer {
    operator(service, Method::POST, DROP, &body).await
}

/// What the history says of calls, oldest first.
async fn calls(service: &Service) -> Vec<Value> {
    let told = service.told("/admin/v1/history?plugin=tends").await;
    let events = told["events"].as_array().expect("events");
    let of_calls = |event: &&Value| event.get("operation").is_some();
    events.iter().filter(of_calls).cloned().collect()
}

#[tokio::test]
async fn the_operator_calls_what_a_plugin_serves_to_it_and_the_history_has_the_reason() {
    let service = serve().await;
    let maker = make(&service, "first").await;
    assert_eq!(maker["kind"], "api-key");
    let body = json!({ "by": "ada", "why": "abuse report 7", "input": { "name": "first" } });
    let dropped = drop_record(&service, body.clone()).await;
    assert_eq!(dropped.status, 200, "{dropped:?}");
    let data = dropped.json()["data"].clone();
    assert_eq!(
        (&data["kind"], &data["made_by"]),
        (&json!("operator"), &maker["owner"])
    );
    assert_ne!(data["owner"], maker["owner"]);
    // It is gone, which is a failure that the operation declares.
    let again = drop_record(&service, body).await;
    assert_eq!(again.refusal(), (404, "NOT_FOUND".to_owned()));
    assert_eq!(again.json()["data"]["field"], "name");
    let told: Vec<[Value; 6]> = calls(&service)
        .await
        .into_iter()
        .map(|event| {
            ["event", "operation", "outcome", "by", "why", "revision"]
                .map(|name| event.get(name).cloned().unwrap_or_default())
        })
        .collect();
    let event = |event: &str, outcome: Value| {
        let words = [event, "drop"].map(|word| json!(word));
        let [event, operation] = words;
        [
            event,
            operation,
            outcome,
            json!("ada"),
            json!("abuse report 7"),
            json!(1),
        ]
    };
    let expected = [
        event("called", Value::Null),
        event("call-ended", json!("ok")),
        event("called", Value::Null),
        event("call-ended", json!("NOT_FOUND")),
    ];
    assert_eq!(told, expected);
    // The plugin knows the operator again, by another name than any caller's.
    make(&service, "second").await;
    let once_more = drop_record(&service, json!({ "input": { "name": "second" } })).await;
    assert_eq!(once_more.json()["data"]["owner"], data["owner"]);
    service.log_until(|lines| {
        let is_call =
            |line: &&Value| line["message"] == "an operator's call" && line["operation"] == "drop";
        lines.iter().filter(is_call).count() == 6
    });
    let metrics = operator(&service, Method::GET, "/metrics", &Value::Null).await;
    let sample =
        r#"switchbay_requests_total{plugin="tends",operation="drop",face="operator",code="ok"} 2"#;
    let metrics = String::from_utf8_lossy(&metrics.bytes);
    assert!(metrics.contains(sample), "{metrics}");
}

#[tokio::test]
async fn a_job_that_the_operator_started_knows_it() {
    let service = serve().await;
    let path = "/admin/v1/plugins/tends/operations/survey";
    let done = operator(&service, Method::POST, path, &json!({})).await;
    assert_eq!(done.status, 200, "{done:?}");
    let output = done.json()["data"]["output"].clone();
    let output: Value = serde_json::from_str(output.as_str().expect("an output")).expect("JSON");
    assert_eq!(output["kind"], "operator");
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_told_by_its_name_and_the_plugin_hears_nothing_of_it() {
    let service = serve().await;
    for (body, field) in [
        (json!({ "input": { "name": "" } }), "name"),
        (json!({ "input": { "nome": "first" } }), "nome"),
        (json!({}), "name"),
        (
            json!({ "input": { "name": "first" }, "reason": "none" }),
            "reason",
        ),
        (
            json!({ "input": { "name": "first" }, "why": "two\nlines" }),
            "why",
        ),
    ] {
        let refused = drop_record(&service, body).await;
        assert_eq!(refused.refusal(), (400, "VALIDATION_ERROR".to_owned()));
        assert_eq!(refused.json()["data"]["field"], field);
    }
    let twice = r#"{ "input": { "name": "first", "name": "second" } }"#;
    let url = format!("{}{DROP}", service.operator_url());
    let request = reqwest::Client::new()
        .post(&url)
        .bearer_auth(service.operator_token())
        .header("content-type", "application/json")
        .body(twice);
    let twice = Service::send(request).await;
    assert_eq!(
        (twice.status, &twice.json()["data"]["field"]),
        (400, &json!("name"))
    );
    for (plugin, operation) in [("tends", "make"), ("tends", "nothing"), ("nobody", "drop")] {
        let path = format!("/admin/v1/plugins/{plugin}/operations/{operation}");
        let refused = operator(&service, Method::POST, &path, &json!({})).await;
        assert_eq!(refused.refusal(), (404, "NOT_FOUND".to_owned()));
        let message = refused.json()["error"]["message"].clone();
        let message = message.as_str().expect("text");
        assert!(
            message.contains(plugin) && message.contains(operation),
            "{message}"
        );
    }
    assert_eq!(calls(&service).await, Vec::<Value>::new());
    let disable = "/admin/v1/plugins/tends/disable";
    operator(&service, Method::POST, disable, &Value::Null).await;
    let off = drop_record(&service, json!({ "input": { "name": "first" } })).await;
    assert_eq!(off.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
}

#[tokio::test]
async fn nobody_else_finds_or_calls_what_is_the_operators() {
    let service = serve().await;
    let published = [
        "/openapi.json",
        "/developer-guide",
        "/llms.txt",
        "/.well-known/mcp.json",
    ];
    for path in published {
        let document = service.get(path).await;
        assert!(
            !String::from_utf8_lossy(&document.bytes).contains("survey"),
            "{path}"
        );
    }
    let tools = service
        .mcp(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
        .await;
    let tools = tools.json()["result"]["tools"].clone();
    let names: Vec<&Value> = tools
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["make_record"]);
    let request = service
        .bare(Method::POST, DROP)
        .bearer_auth(service.operator_token());
    let public = Service::send(request.json(&json!({}))).await;
    assert_eq!(public.refusal(), (404, "NOT_FOUND".to_owned()));
    let document = operator(
        &service,
        Method::GET,
        "/admin/v1/openapi.json",
        &Value::Null,
    )
    .await;
    let document = document.json();
    let method = &document["paths"][DROP]["post"];
    assert_eq!(method["operationId"], "call_tends_drop");
    assert_eq!(method["summary"], "Tend records");
    let body = &method["requestBody"]["content"]["application/json"];
    assert_eq!(body["schema"]["required"], json!(["input"]));
    assert_eq!(
        body["schema"]["properties"]["input"]["properties"]["name"]["maxLength"],
        20
    );
    assert_eq!(
        body["examples"]["example1"]["value"],
        json!({ "input": { "name": "first" } })
    );
    let answer = &method["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(
        answer["properties"]["data"]["properties"]["kind"]["type"],
        "string"
    );
    let missing = method["responses"]["404"]["description"]
        .as_str()
        .expect("text");
    assert!(
        missing.contains("`NOT_FOUND`: Nobody has made such a record."),
        "{missing}"
    );
    assert!(
        document["paths"]
            .get("/admin/v1/plugins/tends/operations/make")
            .is_none()
    );
}

fn cli(service: &Service, words: &[&str], input: &str) -> Output {
    let mut started = Command::new(binary())
        .args(["plugin", "call"])
        .args(words)
        .arg("--data")
        .arg(service.data.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = started.stdin.take().expect("its input");
    // A command that is refused does not read it.
    stdin.write_all(input.as_bytes()).ok();
    drop(stdin);
    started.wait_with_output().expect("it ends")
}

#[tokio::test]
async fn the_command_line_calls_with_a_file_or_with_what_it_reads() {
    let service = serve().await;
    make(&service, "first").await;
    make(&service, "second").await;
    let file = service.data.path().join("input.json");
    std::fs::write(&file, r#"{ "name": "first" }"#).expect("the file is written");
    let file = file.to_str().expect("a path");
    for (named, piped) in [(file, ""), ("-", r#"{ "name": "second" }"#)] {
        let words = ["tends", "drop", "--input", named, "--why", "told to"];
        let done = cli(&service, &words, piped);
        let told = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{told}");
        let printed: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        assert_eq!(printed["kind"], "operator");
    }
    assert_eq!(calls(&service).await[3]["why"], "told to");
    for (words, piped, expected) in [
        (
            &["tends", "drop", "--input", file][..],
            "",
            "There is no such record (NOT_FOUND)",
        ),
        (
            &["tends", "drop"],
            "",
            "`name` is required (VALIDATION_ERROR)",
        ),
        (
            &["tends", "drop", "--input", "-"],
            "[]",
            "the input - must be a JSON object",
        ),
        (
            &["tends", "drop", "--input", "-"],
            "{",
            "the input - is not valid JSON: line 1, column 1",
        ),
        (
            &["tends", "drop", "--input", "nowhere"],
            "",
            "the input nowhere cannot be read: ",
        ),
    ] {
        let done = cli(&service, words, piped);
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(told.contains(expected), "{told}");
        assert_ne!(done.status.code(), Some(0));
    }
}

/// What a component is refused for that describes itself so.
async fn refusal(component: &[u8]) -> String {
    let service = serve().await;
    let staged = service.stage("tends", component.to_vec(), "").await;
    assert_eq!(staged["state"], "rejected", "{staged}");
    staged["changed"]["why"].as_str().expect("text").to_owned()
}

/// The description of a plugin whose operation is the operator's, with these members beside it.
fn operators(schema: u32, members: Value) -> Value {
    let mut description = good("tends");
    description["schema"] = json!(schema);
    let operation = description["operations"][0]
        .as_object_mut()
        .expect("an operation");
    operation.remove("rest");
    operation.remove("tool");
    operation.insert("operator".to_owned(), json!({}));
    operation.extend(members.as_object().expect("members").clone());
    description
}

#[tokio::test]
async fn a_face_for_the_operator_stands_alone_and_needs_the_newer_contract() {
    build();
    let served = describing(&operators(2, json!({})).to_string());
    let service = serve().await;
    assert_eq!(service.stage("tends", served, "").await["state"], "staged");
    let tool = good("tends")["operations"][0]["tool"].clone();
    for (schema, members, expected) in [
        (
            1,
            json!({}),
            "operation `first` has `operator`, which came with schema 2; its description has schema 1",
        ),
        (
            3,
            json!({}),
            "its description has schema 3; this host reads 1 and 2",
        ),
        (
            2,
            json!({ "tool": tool }),
            "operation `first` has `operator` and another face",
        ),
        (
            2,
            json!({ "cost": 2 }),
            "operation `first` has `cost`, which an operation with the face `operator` cannot have",
        ),
        (
            2,
            json!({ "first_party_per_minute": 2 }),
            "operation `first` has `first_party_per_minute`, which",
        ),
        (
            2,
            json!({ "operator": { "body_bytes_max": 0 } }),
            "operation `first` has `body_bytes_max` 0; it must be from 1 to 1048576",
        ),
    ] {
        let told = refusal(&describing(&operators(schema, members).to_string())).await;
        assert!(told.contains(expected), "{told}");
    }
    // One that was built when there was only `switchbay:plugin@0.1.0` serves on, and cannot have the face.
    let earlier = |text: &str| described_by(earlier(), text);
    let told = refusal(&earlier(&operators(2, json!({})).to_string())).await;
    let expected = "its operation `first` has the face `operator`, which `switchbay:plugin@0.1.0` does not have: rebuild it with a newer SDK";
    assert!(told.contains(expected), "{told}");
    let staged = service
        .stage(
            "tends",
            earlier(&good("tends").to_string()),
            "?activate=true",
        )
        .await;
    assert_eq!(staged["state"], "active", "{staged}");
    let answer = service.request(Method::GET, "/api/v1/test/tends");
    assert_eq!(Service::send(answer).await.status, 200);
}

/// The guest that describes itself, as it was built when `switchbay:plugin` was at 0.1.0.
fn earlier() -> Vec<u8> {
    let path = workspace().join("tests/programs/describes-0.1.0.wasm");
    std::fs::read(path).expect("the component is kept")
}
