//! Domain DNS: what a lookup publishes of a resolver's answers, and what it does where there are none.
//!
//! The resolver of most tests is scripted; `differential` holds the plugin against real servers and the usual tools.

mod differential;
mod message;
mod names;
mod resolver;
mod statuses;

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::support::{Answer, Options, Service, in_one_minute, members};
pub(crate) use resolver::Resolver;

const LOOKUP: &str = "/api/v1/domain/dns";
const PAGE: &str = "https://www.example.com";
const TYPES: [(&str, u16); 16] = [
    ("A", 1),
    ("AAAA", 28),
    ("CNAME", 5),
    ("MX", 15),
    ("NS", 2),
    ("PTR", 12),
    ("SRV", 33),
    ("SOA", 6),
    ("TXT", 16),
    ("CAA", 257),
    ("DS", 43),
    ("DNSKEY", 48),
    ("TLSA", 52),
    ("NAPTR", 35),
    ("HTTPS", 65),
    ("SVCB", 64),
];

const MEMBERS: [&str; 7] = [
    "domain",
    "provider",
    "records",
    "sections",
    "queries",
    "statusSummary",
    "queried_at",
];

/// The service before the scripted resolver.
async fn service() -> &'static Service {
    static SHARED: OnceCell<Service> = OnceCell::const_new();
    SHARED
        .get_or_init(async || start(&Resolver::shared().configuration()).await)
        .await
}

async fn start(egress: &str) -> Service {
    let config = format!("{egress}[first_party]\norigins = [\"{PAGE}\"]\n");
    Service::start(Options {
        config,
        ..Options::default()
    })
    .await
}

async fn ask(input: &Value) -> Answer {
    service().await.post(LOOKUP, input).await
}

/// The `data` of a lookup that succeeds.
async fn lookup(domain: &str) -> Value {
    let answer = ask(&json!({ "domain": domain })).await;
    let body = answer.json();
    assert_eq!(answer.status, 200, "{domain}: {body}");
    assert_eq!(answer.header("cache-control"), "private, no-store");
    body["data"].clone()
}

fn items(value: &Value) -> &[Value] {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is no array"))
}

/// The query of one type.
fn query<'v>(data: &'v Value, name: &str) -> &'v Value {
    let found = items(&data["queries"])
        .iter()
        .find(|query| query["query"]["typeName"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {data}"))
}

#[tokio::test]
async fn a_lookup_publishes_the_fields_of_the_contract() {
    let data = lookup("plain.fields.test").await;
    assert_eq!(members(&data), MEMBERS);
    assert_eq!(
        (&data["domain"], &data["provider"]),
        (&json!("plain.fields.test"), &json!("cloudflare"))
    );
    let asked: Vec<(Value, Value)> = items(&data["queries"])
        .iter()
        .map(|query| {
            (
                query["query"]["typeName"].clone(),
                query["query"]["typeCode"].clone(),
            )
        })
        .collect();
    assert_eq!(asked, TYPES.map(|(name, code)| (json!(name), json!(code))));
    let address = json!({
        "section": "answer",
        "name": "plain.fields.test",
        "canonicalName": "plain.fields.test.",
        "normalizedName": "plain.fields.test",
        "typeCode": 1,
        "typeName": "A",
        "ttl": 300,
        "TTL": 300,
        "data": "192.0.2.1",
        "normalizedData": "192.0.2.1",
    });
    let soa = json!({
        "section": "authority",
        "name": "test",
        "canonicalName": "test.",
        "normalizedName": "test",
        "typeCode": 6,
        "typeName": "SOA",
        "ttl": 3600,
        "TTL": 3600,
        "data": "ns.test. host.test. 1 2 3 4 5",
        "normalizedData": "ns.test host.test 1 2 3 4 5",
    });
    assert_eq!(data["records"], json!([address, soa]));
    let group = |record: &Value| json!([{ "typeName": record["typeName"], "typeCode": record["typeCode"], "records": [record] }]);
    let sections = json!([
        { "section": "answer", "title": "Answer", "groups": group(&address) },
        { "section": "authority", "title": "Authority", "groups": group(&soa) },
    ]);
    assert_eq!(data["sections"], sections);
    let first = json!({
        "query": { "name": "plain.fields.test", "normalizedName": "plain.fields.test", "typeName": "A", "typeCode": 1 },
        "status": { "code": 0, "name": "NOERROR", "message": "dns.status.noerror" },
        "flags": { "tc": false, "rd": true, "ra": true, "ad": false, "cd": false },
        "records": [address, soa],
        "counts": { "answer": 1, "authority": 1, "additional": 0 },
    });
    assert_eq!(data["queries"][0], first);
    let summary = json!({ "status": "NOERROR", "message": "dns.summary.ok", "domainExists": true });
    assert_eq!(data["statusSummary"], summary);
    let queried_at = data["queried_at"].as_str().expect("text");
    assert!(
        queried_at.len() > 19 && queried_at.ends_with('Z'),
        "{queried_at}"
    );
}

#[tokio::test]
async fn a_lookup_is_kept_for_its_name_and_resolver() {
    let first = lookup("plain.kept.test").await;
    for spelling in ["plain.kept.test", "PLAIN.kept.Test", "plain.kept.test."] {
        assert_eq!(lookup(spelling).await, first, "{spelling}");
    }
    let asked = || Resolver::shared().asked("plain.kept.test");
    assert_eq!(asked(), 16);
    let service = service().await;
    let tool = service
        .tool("lookup_domain_dns", &json!({ "domain": "plain.kept.test" }))
        .await;
    assert_eq!(tool["structuredContent"]["data"], first);
    assert_eq!(asked(), 16);
    let other = ask(&json!({ "domain": "plain.kept.test", "provider": "google" }))
        .await
        .json()["data"]
        .clone();
    assert_eq!((&other["provider"], asked()), (&json!("google"), 32));
    assert_ne!(other["queried_at"], first["queried_at"]);
    // That a name does not exist is an answer like any other.
    let missing = lookup("nxdomain.kept.test").await;
    assert_eq!(
        lookup("nxdomain.kept.test").await["queried_at"],
        missing["queried_at"]
    );
}

#[tokio::test]
async fn the_caller_chooses_the_resolver() {
    for provider in ["cloudflare", "google"] {
        let input = json!({ "domain": "whose.test", "provider": provider });
        let data = ask(&input).await.json()["data"].clone();
        assert_eq!(data["provider"], provider);
        assert_eq!(
            query(&data, "TXT")["records"][0]["normalizedData"],
            provider
        );
    }
    let null = ask(&json!({ "domain": "whose.null.test", "provider": null }))
        .await
        .json();
    assert_eq!(null["data"]["provider"], "cloudflare");
}

/// The resolver answers none of the queries before it holds them all.
#[tokio::test]
async fn the_queries_of_a_lookup_are_asked_at_once() {
    let data = lookup("together.test").await;
    assert!(
        items(&data["queries"])
            .iter()
            .all(|query| query["status"]["name"] == "NOERROR"),
        "{data}"
    );
    assert_eq!(Resolver::shared().asked("together.test"), 16);
}

#[tokio::test]
async fn a_record_of_several_answers_is_one_with_the_shortest_time_to_live() {
    let data = lookup("same.test").await;
    let told = [
        "section",
        "name",
        "canonicalName",
        "typeName",
        "ttl",
        "normalizedData",
    ];
    let records: Vec<Value> = items(&data["records"])
        .iter()
        .map(|record| json!(told.map(|name| &record[name])))
        .collect();
    let soa = "ns.test host.test 1 2 3 4 5";
    let expected = [
        json!([
            "answer",
            "target.test",
            "target.test.",
            "A",
            43,
            "192.0.2.7"
        ]),
        json!([
            "answer",
            "SAME.TEST",
            "same.test.",
            "CNAME",
            11,
            "target.test"
        ]),
        json!(["authority", "test", "test.", "SOA", 1001, soa]),
    ];
    assert_eq!(records, expected);
    assert!(
        items(&data["records"])
            .iter()
            .all(|record| record["ttl"] == record["TTL"])
    );
    for (name, code) in TYPES {
        let query = query(&data, name);
        let lives: Vec<&Value> = items(&query["records"])
            .iter()
            .map(|record| &record["ttl"])
            .collect();
        let expected = [
            json!(code + 10),
            json!(300_u16.saturating_sub(code)),
            json!(1000 + code),
        ];
        assert_eq!(
            lives,
            expected.iter().collect::<Vec<_>>(),
            "{name}: each answer as it came"
        );
        assert_eq!(
            query["counts"],
            json!({ "answer": 2, "authority": 1, "additional": 0 }),
            "{name}"
        );
        assert_eq!(
            query["flags"],
            json!({ "tc": false, "rd": true, "ra": true, "ad": true, "cd": false }),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_key_needs_the_scope() {
    let service = service().await;
    let input = json!({ "domain": "plain.scope.test" });
    for (scope, status) in [("domain:dns", 200), ("domain:whois", 403)] {
        let key = service.issue(&["--scope", scope]);
        let request = service
            .bare(reqwest::Method::POST, LOOKUP)
            .bearer_auth(key)
            .json(&input);
        assert_eq!(Service::send(request).await.status, status, "{scope}");
    }
}

#[tokio::test]
async fn a_page_of_ours_looks_up_30_names_a_minute() {
    let service = start(&Resolver::shared().configuration()).await;
    let (_, answers) = in_one_minute(async || {
        let mut answers = Vec::new();
        for _ in 0..31 {
            let request = service
                .bare(reqwest::Method::POST, LOOKUP)
                .header("origin", PAGE);
            answers
                .push(Service::send(request.json(&json!({ "domain": "plain.page.test" }))).await);
        }
        answers
    })
    .await;
    for (index, answer) in answers.iter().enumerate() {
        let (status, left) = if index < 30 {
            (200, 29 - index)
        } else {
            (429, 0)
        };
        assert_eq!(answer.status, status, "call {}", index + 1);
        let told = ["limit", "remaining"]
            .map(|name| answer.header(&format!("x-ratelimit-{name}")).to_owned());
        assert_eq!(
            told,
            ["30".to_owned(), left.to_string()],
            "call {}",
            index + 1
        );
    }
    assert_eq!(answers[30].refusal(), (429, "RATE_LIMITED".to_owned()));
}
