//! REST and MCP are two faces of one road: the same input gives the same data, the same error, and takes the same slot.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Post, Service, failure, in_one_minute, outcome};

const ACCOUNT: &str = "0011001234567";

/// Sends an input to both faces of bank QR. `expected` is `200`, or status, code and the members of `data`.
async fn check(input: Value, expected: (u16, &str, Value)) {
    let service = Service::shared();
    let rest = service.post("/api/v1/tools/bank-qr", &input).await;
    same(&rest, "generate_bank_qr", &input, expected).await;
}

async fn same(rest: &Answer, tool: &str, input: &Value, expected: (u16, &str, Value)) {
    let service = Service::shared();
    let shown: String = input.to_string().chars().take(200).collect();
    let called = Post::call(tool, input)
        .bearer(service.key())
        .send(service)
        .await;
    let (status, code, details) = expected;
    assert_eq!(rest.status, status, "{shown}: {}", rest.json());
    let result = &called.json()["result"];
    if status == 200 {
        assert_eq!(outcome(&called), "200 result #7", "{shown}");
        assert_eq!(rest.json()["success"], true, "{shown}");
        assert_eq!(result["structuredContent"], rest.json(), "{shown}");
        return;
    }
    assert_eq!(
        outcome(&called),
        format!("200 isError {code} #7"),
        "{shown}"
    );
    let mut bodies = [rest.json(), failure(result).1];
    for (body, answer) in bodies.iter_mut().zip([rest, &called]) {
        let id = body["data"]
            .as_object_mut()
            .and_then(|data| data.remove("requestId"));
        assert_eq!(id, Some(json!(answer.header("x-request-id"))), "{shown}");
        assert_eq!(
            (&body["error"]["code"], &body["data"]),
            (&json!(code), &details),
            "{shown}"
        );
    }
    assert_eq!(bodies[0], bodies[1], "{shown}");
}

fn valid() -> (u16, &'static str, Value) {
    (200, "", json!({}))
}

fn invalid(details: Value) -> (u16, &'static str, Value) {
    (400, "VALIDATION_ERROR", details)
}

#[tokio::test]
async fn what_fits_gives_the_same_data() {
    check(json!({ "bank": "VCB", "accountNumber": ACCOUNT }), valid()).await;
    check(
        json!({ "accountNumber": "000000", "bank": "970418" }),
        valid(),
    )
    .await;
    check(
        json!({ "bank": "vietcombank", "accountNumber": "0123456789012345678" }),
        valid(),
    )
    .await;
    check(
        json!({ "bank": "VCB", "accountNumber": ACCOUNT, "amount": 1 }),
        valid(),
    )
    .await;
    check(
        json!({ "bank": "VCB", "accountNumber": ACCOUNT, "amount": 9_999_999_999_999_u64 }),
        valid(),
    )
    .await;
    check(
        json!({ "bank": "VCB", "accountNumber": ACCOUNT, "memo": "Tiền cà phê tháng mười hai" }),
        valid(),
    )
    .await;
    check(
        json!({ "bank": "VCB", "accountNumber": ACCOUNT, "memo": "" }),
        valid(),
    )
    .await;
    check(
        json!({ "bank": "VCB", "accountNumber": ACCOUNT, "memo": "ă".repeat(200) }),
        valid(),
    )
    .await;
    check(
        json!({ "bank": "VCB", "accountNumber": ACCOUNT, "imageSize": 160 }),
        valid(),
    )
    .await;
    check(
        json!({ "bank": "VCB", "accountNumber": ACCOUNT, "imageSize": 1024 }),
        valid(),
    )
    .await;
}

#[tokio::test]
async fn null_for_an_optional_field_is_as_if_it_were_left_out() {
    let plain = json!({ "bank": "VCB", "accountNumber": ACCOUNT });
    let nulls = json!({ "bank": "VCB", "accountNumber": ACCOUNT, "amount": null, "memo": null, "imageSize": null });
    check(nulls.clone(), valid()).await;
    let service = Service::shared();
    assert_eq!(
        service.tool("generate_bank_qr", &nulls).await,
        service.tool("generate_bank_qr", &plain).await
    );
    check(
        json!({ "bank": null, "accountNumber": ACCOUNT }),
        invalid(json!({ "field": "bank" })),
    )
    .await;
    check(
        json!({ "bank": "VCB", "accountNumber": null }),
        invalid(json!({ "field": "accountNumber" })),
    )
    .await;
    let unknown = json!({ "bank": "VCB", "accountNumber": ACCOUNT, "surprise": null });
    check(unknown, invalid(json!({ "field": "surprise" }))).await;
}

/// A good input with one field that is another.
fn with(name: &str, value: Value) -> Value {
    let mut input = json!({ "bank": "VCB", "accountNumber": ACCOUNT });
    input[name] = value;
    input
}

fn field(name: &str) -> (u16, &'static str, Value) {
    invalid(json!({ "field": name }))
}

#[tokio::test]
async fn a_bank_or_an_account_that_does_not_fit_is_refused_in_the_same_words() {
    check(json!({}), field("bank")).await;
    check(json!({ "bank": "VCB" }), field("accountNumber")).await;
    check(json!({ "accountNumber": ACCOUNT }), field("bank")).await;
    check(with("bank", json!(970_436)), field("bank")).await;
    check(
        with("bank", json!("V")),
        invalid(json!({ "field": "bank", "min": 2 })),
    )
    .await;
    check(
        with("bank", json!("V".repeat(65))),
        invalid(json!({ "field": "bank", "max": 64 })),
    )
    .await;
    check(with("bank", json!("no such bank")), field("bank")).await;
    check(
        with("accountNumber", json!(11_001_234_567_u64)),
        field("accountNumber"),
    )
    .await;
    check(
        with("accountNumber", json!("12345")),
        field("accountNumber"),
    )
    .await;
    check(
        with("accountNumber", json!("01234567890123456789")),
        field("accountNumber"),
    )
    .await;
    check(
        with("accountNumber", json!("0011 0012 34")),
        field("accountNumber"),
    )
    .await;
    check(
        with("accountNumber", json!("001100123456\n")),
        field("accountNumber"),
    )
    .await;
    check(
        with("accountNumber", json!("٠٠١١٠٠١٢٣")),
        field("accountNumber"),
    )
    .await;
}

#[tokio::test]
async fn an_amount_that_does_not_fit_is_refused_in_the_same_words() {
    check(
        with("amount", json!(0)),
        invalid(json!({ "field": "amount", "min": 1 })),
    )
    .await;
    check(
        with("amount", json!(-1)),
        invalid(json!({ "field": "amount", "min": 1 })),
    )
    .await;
    let most = 9_999_999_999_999_u64;
    check(
        with("amount", json!(most + 1)),
        invalid(json!({ "field": "amount", "max": most })),
    )
    .await;
    check(
        with("amount", json!(u64::MAX)),
        invalid(json!({ "field": "amount", "max": most })),
    )
    .await;
    check(with("amount", json!(1.5)), field("amount")).await;
    check(with("amount", json!(1.0)), field("amount")).await;
    check(with("amount", json!("150000")), field("amount")).await;
    check(with("amount", json!(true)), field("amount")).await;
}

#[tokio::test]
async fn whatever_else_does_not_fit_is_refused_in_the_same_words() {
    check(
        with("memo", json!("x".repeat(201))),
        invalid(json!({ "field": "memo", "max": 200 })),
    )
    .await;
    check(with("memo", json!(["x"])), field("memo")).await;
    check(
        with("imageSize", json!(159)),
        invalid(json!({ "field": "imageSize", "min": 160 })),
    )
    .await;
    check(
        with("imageSize", json!(1025)),
        invalid(json!({ "field": "imageSize", "max": 1024 })),
    )
    .await;
    check(with("surprise", json!(1)), field("surprise")).await;
    check(with("Bank", json!("VCB")), field("Bank")).await;
    check(with(&"s".repeat(300), json!(1)), field(&"s".repeat(100))).await;
    // The first in the order that the client wrote.
    check(
        json!({ "amount": 0, "surprise": 1, "bank": "V" }),
        invalid(json!({ "field": "amount", "min": 1 })),
    )
    .await;
    check(
        json!({ "surprise": 1, "amount": 0, "bank": "V" }),
        field("surprise"),
    )
    .await;
}

#[tokio::test]
async fn an_operation_without_fields_takes_none() {
    let service = Service::shared();
    let plain = service.get("/api/v1/tools/bank-qr/banks").await;
    same(&plain, "list_bank_qr_banks", &json!({}), valid()).await;
    let asked = service.get("/api/v1/tools/bank-qr/banks?surprise=x").await;
    same(
        &asked,
        "list_bank_qr_banks",
        &json!({ "surprise": "x" }),
        invalid(json!({ "field": "surprise" })),
    )
    .await;
}

/// The limit of the REST body measures a tool's arguments too: inside the result, because the message itself fits.
#[tokio::test]
async fn oversized_arguments_are_too_large_on_both_faces() {
    let of_bytes = |bytes: usize| {
        let empty = json!({ "bank": "VCB", "accountNumber": ACCOUNT, "memo": "" })
            .to_string()
            .len();
        json!({ "bank": "VCB", "accountNumber": ACCOUNT, "memo": "x".repeat(bytes - empty) })
    };
    check(
        of_bytes(4096),
        invalid(json!({ "field": "memo", "max": 200 })),
    )
    .await;
    let service = Service::shared();
    for bytes in [4097, 60_000] {
        let rest = service
            .post("/api/v1/tools/bank-qr", &of_bytes(bytes))
            .await;
        assert_eq!(rest.refusal(), (413, "PAYLOAD_TOO_LARGE".to_owned()));
        assert_eq!(rest.json()["data"]["max"], 4096);
        let called = Post::call("generate_bank_qr", &of_bytes(bytes))
            .bearer(service.key())
            .send(service)
            .await;
        assert_eq!(outcome(&called), "200 isError PAYLOAD_TOO_LARGE #7");
        let (_, envelope) = failure(&called.json()["result"]);
        let id = called.header("x-request-id");
        assert_eq!(envelope["data"], json!({ "requestId": id, "max": 4096 }));
        assert_eq!(envelope["error"], rest.json()["error"]);
    }
}

/// Limit, remaining, reset and window of an answer.
fn standing(answer: &Answer) -> [u64; 4] {
    ["limit", "remaining", "reset", "window"].map(|name| {
        answer
            .header(&format!("x-apikey-ratelimit-{name}"))
            .parse()
            .expect("an integer")
    })
}

#[tokio::test]
async fn both_faces_take_a_slot_of_the_same_window() {
    let service = Service::shared();
    let (started, answers) = in_one_minute(async || {
        let key = service.issue(&["--all-scopes", "--per-minute", "4"]);
        let rest = || {
            service
                .bare(Method::GET, "/api/v1/tools/bank-qr/banks")
                .bearer_auth(&key)
        };
        let call = |arguments: Value| Post::call("list_bank_qr_banks", &arguments).bearer(&key);
        [
            Service::send(rest()).await,
            call(json!({})).send(service).await,
            call(json!({ "surprise": 1 })).send(service).await,
            Service::send(rest()).await,
            call(json!({})).send(service).await,
            Service::send(rest()).await,
            call(json!({ "surprise": 1 })).send(service).await,
        ]
    })
    .await;
    let reset = (started / 60 + 1) * 60;
    let told: Vec<[u64; 4]> = answers.iter().map(standing).collect();
    assert_eq!(
        told,
        [3, 2, 1, 0, 0, 0, 0].map(|remaining| [4, remaining, reset, 60])
    );
    assert_eq!(outcome(&answers[1]), "200 result #7");
    assert_eq!(outcome(&answers[2]), "200 isError VALIDATION_ERROR #7");
    assert_eq!(outcome(&answers[4]), "200 isError RATE_LIMITED #7");
    assert_eq!(answers[5].refusal(), (429, "RATE_LIMITED".to_owned()));
    // The window comes before the arguments.
    assert_eq!(outcome(&answers[6]), "200 isError RATE_LIMITED #7");

    let (rest, (_, tool)) = (answers[5].json(), failure(&answers[4].json()["result"]));
    assert_eq!(tool["error"], rest["error"]);
    assert_eq!(tool["data"]["resetAt"], rest["data"]["resetAt"]);
    assert!(
        tool["data"]["resetAt"]
            .as_str()
            .is_some_and(|at| at.ends_with(":00Z")),
        "{tool}"
    );
    for body in [rest, tool] {
        let wait = body["data"]["retryAfter"].as_u64().expect("retryAfter");
        assert!((1..=reset - started).contains(&wait), "{body}");
    }
}

#[tokio::test]
async fn each_call_of_a_batch_takes_a_slot() {
    let service = Service::shared();
    let (_, answer) = in_one_minute(async || {
        let key = service.issue(&["--all-scopes", "--per-minute", "2"]);
        let call =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "list_bank_qr_banks" } });
        Post::raw(json!([call, call, call]).to_string()).bearer(&key).send(service).await
    })
    .await;
    assert_eq!(answer.status, 200);
    let failed: Vec<Value> = (0..3)
        .map(|index| answer.json()[index]["result"]["isError"].clone())
        .collect();
    assert_eq!(failed, [false, false, true]);
    assert_eq!(standing(&answer)[..2], [2, 0]);
}

#[tokio::test]
async fn an_unlimited_key_is_sent_no_limits() {
    let service = Service::shared();
    for arguments in [json!({}), json!({ "surprise": 1 })] {
        let answer = Post::call("list_bank_qr_banks", &arguments)
            .bearer(service.key())
            .send(service)
            .await;
        let told = answer
            .headers
            .keys()
            .find(|name| name.as_str().contains("ratelimit"));
        assert_eq!(told, None);
    }
}
