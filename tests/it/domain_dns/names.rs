//! Names that can be looked up, and what is refused because it is none.

use serde_json::{Value, json};

use super::{Resolver, ask, lookup, query, service};
use crate::support::{Post, failure, outcome};

#[tokio::test]
async fn a_name_of_other_letters_is_asked_for_in_ascii() {
    let data = lookup("Bücher.letters.test").await;
    let ascii = "xn--bcher-kva.letters.test";
    assert_eq!(data["domain"], ascii);
    assert_eq!(query(&data, "A")["query"]["normalizedName"], ascii);
    assert_eq!(query(&data, "A")["records"][0]["normalizedName"], ascii);
    assert_eq!(Resolver::shared().asked(ascii), 16);
}

/// Both faces refuse an input in the same words, with these members of `data`.
async fn refused(input: Value, details: Value) {
    let answer = ask(&input).await;
    assert_eq!(
        answer.refusal(),
        (400, "VALIDATION_ERROR".to_owned()),
        "{input}"
    );
    let service = service().await;
    let called = Post::call("lookup_domain_dns", &input)
        .bearer(service.key())
        .send(service)
        .await;
    assert_eq!(
        outcome(&called),
        "200 isError VALIDATION_ERROR #7",
        "{input}"
    );
    let mut bodies = [answer.json(), failure(&called.json()["result"]).1];
    for body in &mut bodies {
        body["data"]
            .as_object_mut()
            .and_then(|data| data.remove("requestId"))
            .expect("an id");
        assert_eq!(body["data"], details, "{input}");
    }
    assert_eq!(bodies[0], bodies[1], "{input}");
}

#[tokio::test]
async fn what_is_no_hostname_is_refused_by_its_field() {
    let names = [
        "192.0.2.1",
        "2001:db8::1",
        "https://example.com",
        "example.com/",
        "example.com:53",
        "exa mple.com",
        " example.com",
        "a..b",
        ".",
        ".a",
        "a..",
        "-a.test",
        "a-.test",
        "*.example.com",
        "me@example.com",
        "example.com\n",
        "0x7f.1",
        "℀.test",
    ];
    for name in names {
        refused(json!({ "domain": name }), json!({ "field": "domain" })).await;
    }
    refused(
        json!({ "domain": "a".repeat(64) + ".test" }),
        json!({ "field": "domain" }),
    )
    .await;
    refused(
        json!({ "domain": "a.".repeat(127) + "a" }),
        json!({ "field": "domain", "max": 253 }),
    )
    .await;
    refused(
        json!({ "domain": "bücher.".repeat(30) }),
        json!({ "field": "domain", "max": 253 }),
    )
    .await;
    refused(
        json!({ "domain": "" }),
        json!({ "field": "domain", "min": 1 }),
    )
    .await;
    refused(json!({}), json!({ "field": "domain" })).await;
    refused(json!({ "domain": null }), json!({ "field": "domain" })).await;
    refused(json!({ "domain": 7 }), json!({ "field": "domain" })).await;
    refused(
        json!({ "domain": "a.test", "provider": "quad9" }),
        json!({ "field": "provider" }),
    )
    .await;
    refused(
        json!({ "domain": "a.test", "provider": "Google" }),
        json!({ "field": "provider" }),
    )
    .await;
    refused(
        json!({ "domain": "a.test", "type": "A" }),
        json!({ "field": "type" }),
    )
    .await;
    refused(
        json!({ "provider": "bing", "domain": "a b" }),
        json!({ "field": "provider" }),
    )
    .await;
}

#[tokio::test]
async fn the_longest_name_is_asked_for_with_its_dot() {
    let longest = format!(
        "plain.{}{}",
        format!("{}.", "a".repeat(61)).repeat(3),
        "b".repeat(61)
    );
    assert_eq!(longest.len(), 253);
    assert_eq!(
        lookup(&format!("{longest}.")).await["domain"],
        longest.as_str()
    );
}
