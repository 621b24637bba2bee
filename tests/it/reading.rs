//! How a request is read: types, sizes, names and values, and which offence is told (docs/api.md, "Requests").
//!
//! Bank QR stands for every operation: its body has required and optional fields, strings and integers, and a small limit.

use futures::stream;
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Service};

const BANKS: &str = "/api/v1/tools/bank-qr/banks";
const GENERATE: &str = "/api/v1/tools/bank-qr";
const GOOD: &str = r#"{"bank":"VCB","accountNumber":"0011001234567"}"#;

/// What a refusal says beside its request id: the field, and the bound where there is one.
fn told(answer: &Answer, code: &str) -> Value {
    let (_, found) = answer.refusal();
    let body = answer.json();
    assert_eq!(found, code, "{body}");
    let mut data = body["data"].clone();
    data.as_object_mut()
        .expect("data is an object")
        .remove("requestId");
    data
}

/// Posts a body which is refused with 400 and with this in `data`.
async fn refused(body: impl Into<Vec<u8>>, expected: Value) {
    let body = body.into();
    let shown = String::from_utf8_lossy(&body).into_owned();
    let answer = Service::shared().post_raw(GENERATE, body).await;
    assert_eq!(
        (answer.status, told(&answer, "VALIDATION_ERROR")),
        (400, expected),
        "{shown}"
    );
}

/// Posts a body which is accepted as this transfer.
async fn accepted(body: impl Into<Vec<u8>>, expected: Value) {
    let body = body.into();
    let shown = String::from_utf8_lossy(&body).into_owned();
    let answer = Service::shared().post_raw(GENERATE, body).await;
    assert_eq!(
        (answer.status, &answer.json()["data"]["transfer"]),
        (200, &expected),
        "{shown}"
    );
}

/// A body with one more member after the required ones.
fn and(member: &str) -> String {
    format!(r#"{{"bank":"VCB","accountNumber":"0011001234567",{member}}}"#)
}

/// The transfer of [`GOOD`] with this amount and this memo.
fn transfer(amount: Value, memo: Value) -> Value {
    json!({ "accountNumber": "0011001234567", "amount": amount, "memo": memo })
}

#[tokio::test]
async fn an_unknown_field_is_refused_by_its_name() {
    refused(and(r#""surprise":1"#), json!({ "field": "surprise" })).await;
    refused(and(r#""surprise":null"#), json!({ "field": "surprise" })).await;
    refused(and(r#""Memo":"x""#), json!({ "field": "Memo" })).await;
    refused(
        and(r#""account_number":"123456""#),
        json!({ "field": "account_number" }),
    )
    .await;
    refused(and(r#""":1"#), json!({ "field": "" })).await;
    refused(
        and(&format!(r#""{}":1"#, "ñ".repeat(300))),
        json!({ "field": "ñ".repeat(100) }),
    )
    .await;
}

#[tokio::test]
async fn a_field_given_twice_is_refused() {
    refused(and(r#""bank":"VCB""#), json!({ "field": "bank" })).await;
    refused(and(r#""memo":"a","memo":"a""#), json!({ "field": "memo" })).await;
    refused(and(r#""memo":"a","memo":null"#), json!({ "field": "memo" })).await;
    refused(
        and(r#""memo":"a","m\u0065mo":"b""#),
        json!({ "field": "memo" }),
    )
    .await;
    refused(and(r#""x":{"y":1,"y":2}"#), json!({ "field": "y" })).await;
}

#[tokio::test]
async fn an_integer_is_written_as_one() {
    for text in ["1.0", "1e3", "1.5", r#""5""#, "true", "[5]", "{}", "-0.0"] {
        refused(
            and(&format!(r#""amount":{text}"#)),
            json!({ "field": "amount" }),
        )
        .await;
        refused(
            and(&format!(r#""imageSize":{text}"#)),
            json!({ "field": "imageSize" }),
        )
        .await;
    }
    accepted(and(r#""amount":5"#), transfer(json!(5), json!(null))).await;
}

#[tokio::test]
async fn a_number_out_of_range_is_told_the_bound() {
    refused(and(r#""amount":0"#), json!({ "field": "amount", "min": 1 })).await;
    refused(
        and(r#""amount":-1"#),
        json!({ "field": "amount", "min": 1 }),
    )
    .await;
    refused(
        and(r#""amount":10000000000000"#),
        json!({ "field": "amount", "max": 9_999_999_999_999_u64 }),
    )
    .await;
    refused(
        and(r#""amount":18446744073709551615"#),
        json!({ "field": "amount", "max": 9_999_999_999_999_u64 }),
    )
    .await;
    refused(
        and(r#""imageSize":159"#),
        json!({ "field": "imageSize", "min": 160 }),
    )
    .await;
    refused(
        and(r#""imageSize":1025"#),
        json!({ "field": "imageSize", "max": 1024 }),
    )
    .await;
    accepted(
        and(r#""amount":1,"imageSize":160"#),
        transfer(json!(1), json!(null)),
    )
    .await;
    let largest = json!(9_999_999_999_999_u64);
    accepted(
        and(r#""amount":9999999999999,"imageSize":1024"#),
        transfer(largest, json!(null)),
    )
    .await;
}

#[tokio::test]
async fn a_length_out_of_range_is_told_the_bound_in_characters() {
    let bank = |text: &str| json!({ "bank": text, "accountNumber": "123456" }).to_string();
    let memo = |text: &str| and(&format!(r#""memo":"{text}""#));
    refused(bank(""), json!({ "field": "bank", "min": 2 })).await;
    refused(bank("V"), json!({ "field": "bank", "min": 2 })).await;
    refused(bank("Đ"), json!({ "field": "bank", "min": 2 })).await;
    refused(bank(&"V".repeat(65)), json!({ "field": "bank", "max": 64 })).await;
    refused(
        memo(&"m".repeat(201)),
        json!({ "field": "memo", "max": 200 }),
    )
    .await;
    refused(
        memo(&"🙏".repeat(201)),
        json!({ "field": "memo", "max": 200 }),
    )
    .await;
    accepted(memo(&"🙏".repeat(200)), transfer(json!(null), json!(""))).await;
}

#[tokio::test]
async fn an_account_number_is_six_to_nineteen_digits_in_a_string() {
    let body = |number: &str| format!(r#"{{"bank":"VCB","accountNumber":{number}}}"#);
    for number in [
        r#""12345""#,
        r#""12345678901234567890""#,
        r#""12345a""#,
        r#"" 123456""#,
        r#""123456\n""#,
        r#""٠١٢٣٤٥""#,
    ] {
        refused(body(number), json!({ "field": "accountNumber" })).await;
    }
    refused(body("123456"), json!({ "field": "accountNumber" })).await;
    refused(body("null"), json!({ "field": "accountNumber" })).await;
    accepted(
        body(r#""000000""#),
        json!({ "accountNumber": "000000", "amount": null, "memo": null }),
    )
    .await;
    let longest = json!({ "accountNumber": "1234567890123456789", "amount": null, "memo": null });
    accepted(body(r#""1234567890123456789""#), longest).await;
}

#[tokio::test]
async fn null_counts_as_omitted_where_the_field_is_optional() {
    let nothing = transfer(json!(null), json!(null));
    accepted(
        and(r#""amount":null,"memo":null,"imageSize":null"#),
        nothing,
    )
    .await;
    refused(
        r#"{"bank":null,"accountNumber":"123456"}"#,
        json!({ "field": "bank" }),
    )
    .await;
    refused(
        r#"{"bank":"VCB","accountNumber":null}"#,
        json!({ "field": "accountNumber" }),
    )
    .await;
}

#[tokio::test]
async fn the_first_offence_in_document_order_is_told_and_then_the_first_missing_in_schema_order() {
    refused(
        r#"{"accountNumber":"12x","surprise":1,"bank":"V"}"#,
        json!({ "field": "accountNumber" }),
    )
    .await;
    refused(
        r#"{"surprise":1,"accountNumber":"12x","bank":"V"}"#,
        json!({ "field": "surprise" }),
    )
    .await;
    refused(
        r#"{"bank":"V","accountNumber":"12x","surprise":1}"#,
        json!({ "field": "bank", "min": 2 }),
    )
    .await;
    refused(
        r#"{"imageSize":1,"amount":0}"#,
        json!({ "field": "imageSize", "min": 160 }),
    )
    .await;
    refused(r#"{"zebra":1,"ape":2}"#, json!({ "field": "zebra" })).await;
    refused(r#"{"memo":5}"#, json!({ "field": "memo" })).await;
    refused(r#"{"memo":"x"}"#, json!({ "field": "bank" })).await;
    refused(r#"{"accountNumber":"123456"}"#, json!({ "field": "bank" })).await;
    refused(r#"{"bank":"VCB"}"#, json!({ "field": "accountNumber" })).await;
    refused("{}", json!({ "field": "bank" })).await;
}

#[tokio::test]
async fn a_body_that_is_no_json_text_is_400_and_never_422() {
    let surrogate = and(r#""memo":"\ud800""#);
    let texts = [
        "{",
        "}",
        "{}}",
        "{} x",
        "{'bank':'VCB'}",
        r#"{"bank":}"#,
        r#"{"bank":"VCB",}"#,
        "//\n{}",
        "\u{FEFF}{}",
    ];
    for text in texts
        .into_iter()
        .chain([surrogate.as_str(), "NaN", " ", &"[".repeat(4000)])
    {
        refused(text, json!({})).await;
    }
    refused(b"{\"bank\":\"\xFF\xFE\"}".as_slice(), json!({})).await;
}

#[tokio::test]
async fn a_body_is_an_object() {
    for text in [
        "[]",
        "null",
        "true",
        "5",
        r#""VCB""#,
        r#"[{"bank":"VCB","accountNumber":"123456"}]"#,
    ] {
        refused(text, json!({})).await;
    }
}

#[tokio::test]
async fn json_is_read_as_json_and_not_as_bytes() {
    accepted(
        format!(" \t\r\n{GOOD}\n"),
        transfer(json!(null), json!(null)),
    )
    .await;
    accepted(
        r#"{"accountNumber":"0011001234567","bank":"\u0056CB"}"#,
        transfer(json!(null), json!(null)),
    )
    .await;
    accepted(
        and(r#""memo":"a\/b \u0111""#),
        transfer(json!(null), json!("a/b d")),
    )
    .await;
}

#[tokio::test]
async fn an_empty_body_lacks_the_required_fields_whatever_its_type() {
    let service = Service::shared();
    for content_type in [None, Some("application/json"), Some("text/plain")] {
        let mut request = service.request(Method::POST, GENERATE);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        for request in [
            request.try_clone().expect("no stream"),
            request.body(chunked(&[])),
        ] {
            let answer = Service::send(request).await;
            let expected = (400, json!({ "field": "bank" }));
            assert_eq!(
                (answer.status, told(&answer, "VALIDATION_ERROR")),
                expected,
                "{content_type:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_body_says_that_it_is_json() {
    check_type("application/json", 200).await;
    check_type("application/json; charset=utf-8", 200).await;
    check_type("application/json;charset=UTF-8", 200).await;
    check_type("Application/JSON ; charset=\"utf-8\"", 200).await;
    check_type("", 415).await;
    check_type("text/plain", 415).await;
    check_type("application/jsonp", 415).await;
    check_type("application/problem+json", 415).await;
    check_type("text/plain, application/json", 415).await;
    check_type("application/x-www-form-urlencoded", 415).await;
    let untyped = Service::shared().request(Method::POST, GENERATE).body(GOOD);
    assert_eq!(
        Service::send(untyped).await.refusal(),
        (415, "UNSUPPORTED_MEDIA_TYPE".to_owned())
    );
}

async fn check_type(content_type: &str, expected: u16) {
    for body in [reqwest::Body::from(GOOD), chunked(&[GOOD])] {
        let request = Service::shared()
            .request(Method::POST, GENERATE)
            .header("content-type", content_type)
            .body(body);
        let answer = Service::send(request).await;
        assert_eq!(answer.status, expected, "{content_type:?}");
        if expected == 415 {
            assert_eq!(
                told(&answer, "UNSUPPORTED_MEDIA_TYPE"),
                json!({}),
                "{content_type:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_bank_qr_body_has_at_most_4_kib_announced_or_not() {
    let padded = |bytes: usize| format!("{GOOD}{}", " ".repeat(bytes - GOOD.len()));
    for bytes in [4096, 4097, 6000] {
        let text = padded(bytes);
        let (first, second) = text.split_at(3000);
        for body in [reqwest::Body::from(text.clone()), chunked(&[first, second])] {
            let answer = Service::shared().post_raw(GENERATE, body).await;
            if bytes == 4096 {
                assert_eq!(answer.status, 200);
                continue;
            }
            let expected = (413, json!({ "max": 4096 }));
            assert_eq!(
                (answer.status, told(&answer, "PAYLOAD_TOO_LARGE")),
                expected,
                "{bytes}"
            );
        }
    }
}

#[tokio::test]
async fn what_the_query_and_the_body_may_not_hold_is_refused_by_name() {
    check_names(Method::GET, "?surprise=1", "", "surprise").await;
    check_names(Method::GET, "?surprise", "", "surprise").await;
    check_names(Method::GET, "?%73urprise=1", "", "surprise").await;
    check_names(Method::GET, "?a=1&a=2", "", "a").await;
    check_names(Method::GET, "?b=1&a=2", "", "b").await;
    check_names(Method::GET, "", r#"{"surprise":1}"#, "surprise").await;
    check_names(Method::POST, "?bank=VCB", GOOD, "bank").await;
    check_names(Method::POST, "?amount=5&amount=5", GOOD, "amount").await;
    check_names(Method::POST, "?surprise=1", r#"{"other":1}"#, "surprise").await;
}

async fn check_names(method: Method, query: &str, body: &'static str, field: &str) {
    let path = if method == Method::GET {
        BANKS
    } else {
        GENERATE
    };
    let mut request = Service::shared().request(method, &format!("{path}{query}"));
    if !body.is_empty() {
        request = request
            .header("content-type", "application/json")
            .body(body);
    }
    let answer = Service::send(request).await;
    assert_eq!(
        (answer.status, told(&answer, "VALIDATION_ERROR")),
        (400, json!({ "field": field })),
        "{query} {body}"
    );
}

#[tokio::test]
async fn a_get_may_carry_an_empty_query_and_an_empty_object() {
    let service = Service::shared();
    assert_eq!(service.get(&format!("{BANKS}?")).await.status, 200);
    let request = service
        .request(Method::GET, BANKS)
        .header("content-type", "application/json")
        .body("{}");
    assert_eq!(Service::send(request).await.status, 200);
    let request = service
        .request(Method::GET, BANKS)
        .header("content-type", "text/plain")
        .body("{}");
    assert_eq!(
        Service::send(request).await.refusal(),
        (415, "UNSUPPORTED_MEDIA_TYPE".to_owned())
    );
}

/// A body whose length is not announced.
fn chunked(parts: &[&str]) -> reqwest::Body {
    let frames: Vec<Result<Frame<Bytes>, std::io::Error>> = parts
        .iter()
        .map(|part| Ok(Frame::data(Bytes::copy_from_slice(part.as_bytes()))))
        .collect();
    reqwest::Body::wrap(StreamBody::new(stream::iter(frames)))
}
