//! Domain DNS: what a lookup publishes of a resolver's answers, and what it does where there are none.
//!
//! The resolver of most tests is scripted; `differential` holds the plugin against real servers and the usual tools.

mod differential;
mod message;
mod resolver;

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::support::{Answer, Options, Post, Service, failure, in_one_minute, members, outcome};
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

/// The service before the scripted resolver.
async fn service() -> &'static Service {
    static SHARED: OnceCell<Service> = OnceCell::const_new();
    SHARED.get_or_init(async || start(&Resolver::shared().configuration()).await).await
}

async fn start(egress: &str) -> Service {
    let config = format!("{egress}[first_party]\norigins = [\"{PAGE}\"]\n");
    Service::start(Options { config, ..Options::default() }).await
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
    value.as_array().unwrap_or_else(|| panic!("{value} is no array"))
}

/// The query of one type.
fn query<'v>(data: &'v Value, name: &str) -> &'v Value {
    let found = items(&data["queries"]).iter().find(|query| query["query"]["typeName"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {data}"))
}

#[tokio::test]
async fn a_lookup_publishes_the_fields_of_the_contract() {
    let data = lookup("plain.fields.test").await;
    let expected = ["domain", "provider", "records", "sections", "queries", "statusSummary", "queried_at"];
    assert_eq!(members(&data), expected);
    assert_eq!((&data["domain"], &data["provider"]), (&json!("plain.fields.test"), &json!("cloudflare")));
    let asked: Vec<(Value, Value)> = items(&data["queries"])
        .iter()
        .map(|query| (query["query"]["typeName"].clone(), query["query"]["typeCode"].clone()))
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
    assert!(queried_at.len() > 19 && queried_at.ends_with('Z'), "{queried_at}");
}

/// What a name's lookup comes to: the summary, and the status of the query for A.
async fn check(domain: &str, summary: (&str, &str, bool), first: (u16, &str, &str)) {
    let data = lookup(domain).await;
    let (status, message, exists) = summary;
    let message = format!("dns.summary.{message}");
    let expected = json!({ "status": status, "message": message, "domainExists": exists });
    assert_eq!(data["statusSummary"], expected, "{domain}");
    let (code, name, key) = first;
    let expected = json!({ "code": code, "name": name, "message": format!("dns.status.{key}") });
    assert_eq!(query(&data, "A")["status"], expected, "{domain}");
}

#[tokio::test]
async fn each_status_of_a_name_is_a_success_that_tells_it() {
    check("plain.status.test", ("NOERROR", "ok", true), (0, "NOERROR", "noerror")).await;
    check("empty.status.test", ("NOERROR", "no_records", true), (0, "NOERROR", "noerror")).await;
    check("nxdomain.status.test", ("NXDOMAIN", "nxdomain", false), (3, "NXDOMAIN", "nxdomain")).await;
    check("dangling.status.test", ("NOERROR", "ok", true), (3, "NXDOMAIN", "nxdomain")).await;
    check("gone.status.test", ("NXDOMAIN", "nxdomain", true), (3, "NXDOMAIN", "nxdomain")).await;
    check("loop.status.test", ("NOERROR", "ok", true), (0, "NOERROR", "noerror")).await;
    check("refused.status.test", ("REFUSED", "refused", true), (5, "REFUSED", "refused")).await;
    check("servfail.status.test", ("SERVFAIL", "servfail", true), (2, "SERVFAIL", "servfail")).await;
    check("strange.status.test", ("RCODE11", "servfail", true), (11, "RCODE11", "rcode11")).await;
    check("partly.status.test", ("NOERROR", "partial", true), (0, "NOERROR", "noerror")).await;
}

/// A lookup with one query that failed in transport.
async fn check_one_failed(domain: &str) {
    let data = lookup(domain).await;
    let summary = json!({ "status": "NOERROR", "message": "dns.summary.partial", "domainExists": true });
    assert_eq!(data["statusSummary"], summary, "{domain}");
    let failed = json!({
        "query": { "name": domain, "normalizedName": domain, "typeName": "TXT", "typeCode": 16 },
        "status": { "code": 2, "name": "SERVFAIL", "message": "dns.status.unreachable" },
        "flags": { "tc": false, "rd": false, "ra": false, "ad": false, "cd": false },
        "records": [],
        "counts": { "answer": 0, "authority": 0, "additional": 0 },
    });
    assert_eq!(query(&data, "TXT"), &failed);
    assert_eq!(query(&data, "A")["status"]["code"], 0);
    lookup(domain).await;
    assert_eq!(Resolver::shared().asked(domain), 32, "{domain} is kept, and should be asked for again");
}

#[tokio::test]
async fn a_query_that_failed_is_told_and_such_a_lookup_is_not_kept() {
    check_one_failed("torn.failed.test").await;
    check_one_failed("huge.failed.test").await;
    check_one_failed("quiet.failed.test").await;
}

async fn check_failure(domain: &str, status: u16, code: &str) {
    let input = json!({ "domain": domain });
    let answer = ask(&input).await;
    assert_eq!(answer.refusal(), (status, code.to_owned()), "{domain}");
    assert_eq!(members(&answer.json()["data"]), ["requestId"], "{domain}");
    let service = service().await;
    let called = Post::call("lookup_domain_dns", &input).bearer(service.key()).send(service).await;
    assert_eq!(outcome(&called), format!("200 isError {code} #7"), "{domain}");
}

#[tokio::test]
async fn a_lookup_fails_where_every_query_did() {
    check_failure("garbage.none.test", 502, "UPSTREAM_BAD_RESPONSE").await;
    check_failure("status.none.test", 502, "UPSTREAM_BAD_RESPONSE").await;
    check_failure("late.none.test", 504, "UPSTREAM_TIMEOUT").await;
    check_failure("silent.none.test", 504, "UPSTREAM_TIMEOUT").await;
    assert_eq!(Resolver::shared().asked("garbage.none.test"), 32, "a failure is not kept");
}

#[tokio::test]
async fn a_resolver_that_is_not_reached_is_an_unavailable_service() {
    let closed = ["cloudflare-dns.com", "dns.google"].map(|host| format!("\"{host}:443\" = \"127.0.0.1:1\""));
    let service = start(&format!("[egress]\nconnect_to = {{ {} }}\n", closed.join(", "))).await;
    for provider in ["cloudflare", "google"] {
        let answer = service.post(LOOKUP, &json!({ "domain": "example.com", "provider": provider })).await;
        assert_eq!(answer.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
        assert!(answer.json()["error"]["message"].as_str().is_some_and(|message| message.contains(provider)));
    }
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
    let tool = service.tool("lookup_domain_dns", &json!({ "domain": "plain.kept.test" })).await;
    assert_eq!(tool["structuredContent"]["data"], first);
    assert_eq!(asked(), 16);
    let other = ask(&json!({ "domain": "plain.kept.test", "provider": "google" })).await.json()["data"].clone();
    assert_eq!((&other["provider"], asked()), (&json!("google"), 32));
    assert_ne!(other["queried_at"], first["queried_at"]);
    // That a name does not exist is an answer like any other.
    let missing = lookup("nxdomain.kept.test").await;
    assert_eq!(lookup("nxdomain.kept.test").await["queried_at"], missing["queried_at"]);
}

#[tokio::test]
async fn the_caller_chooses_the_resolver() {
    for provider in ["cloudflare", "google"] {
        let input = json!({ "domain": "whose.test", "provider": provider });
        let data = ask(&input).await.json()["data"].clone();
        assert_eq!(data["provider"], provider);
        assert_eq!(query(&data, "TXT")["records"][0]["normalizedData"], provider);
    }
    let null = ask(&json!({ "domain": "whose.null.test", "provider": null })).await.json();
    assert_eq!(null["data"]["provider"], "cloudflare");
}

/// The resolver answers none of the queries before it holds them all.
#[tokio::test]
async fn the_queries_of_a_lookup_are_asked_at_once() {
    let data = lookup("together.test").await;
    assert!(items(&data["queries"]).iter().all(|query| query["status"]["name"] == "NOERROR"), "{data}");
    assert_eq!(Resolver::shared().asked("together.test"), 16);
}

#[tokio::test]
async fn a_record_of_several_answers_is_one_with_the_shortest_time_to_live() {
    let data = lookup("same.test").await;
    let records: Vec<[&Value; 6]> = items(&data["records"])
        .iter()
        .map(|record| {
            ["section", "name", "canonicalName", "typeName", "ttl", "normalizedData"].map(|name| &record[name])
        })
        .collect();
    let expected = [
        [json!("answer"), json!("target.test"), json!("target.test."), json!("A"), json!(43), json!("192.0.2.7")],
        [json!("answer"), json!("SAME.TEST"), json!("same.test."), json!("CNAME"), json!(11), json!("target.test")],
        [
            json!("authority"),
            json!("test"),
            json!("test."),
            json!("SOA"),
            json!(1001),
            json!("ns.test host.test 1 2 3 4 5"),
        ],
    ];
    assert_eq!(records, expected.each_ref().map(|record| record.each_ref()));
    assert!(items(&data["records"]).iter().all(|record| record["ttl"] == record["TTL"]));
    for (name, code) in TYPES {
        let query = query(&data, name);
        let lives: Vec<&Value> = items(&query["records"]).iter().map(|record| &record["ttl"]).collect();
        let expected = [json!(code + 10), json!(300_u16.saturating_sub(code)), json!(1000 + code)];
        assert_eq!(lives, expected.iter().collect::<Vec<_>>(), "{name}: each answer as it came");
        assert_eq!(query["counts"], json!({ "answer": 2, "authority": 1, "additional": 0 }), "{name}");
        assert_eq!(query["flags"], json!({ "tc": false, "rd": true, "ra": true, "ad": true, "cd": false }), "{name}");
    }
}

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
    assert_eq!(answer.refusal(), (400, "VALIDATION_ERROR".to_owned()), "{input}");
    let service = service().await;
    let called = Post::call("lookup_domain_dns", &input).bearer(service.key()).send(service).await;
    assert_eq!(outcome(&called), "200 isError VALIDATION_ERROR #7", "{input}");
    let mut bodies = [answer.json(), failure(&called.json()["result"]).1];
    for body in &mut bodies {
        body["data"].as_object_mut().and_then(|data| data.remove("requestId")).expect("an id");
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
    refused(json!({ "domain": "a".repeat(64) + ".test" }), json!({ "field": "domain" })).await;
    refused(json!({ "domain": "a.".repeat(127) + "a" }), json!({ "field": "domain", "max": 253 })).await;
    refused(json!({ "domain": "bücher.".repeat(30) }), json!({ "field": "domain", "max": 253 })).await;
    refused(json!({ "domain": "" }), json!({ "field": "domain", "min": 1 })).await;
    refused(json!({}), json!({ "field": "domain" })).await;
    refused(json!({ "domain": null }), json!({ "field": "domain" })).await;
    refused(json!({ "domain": 7 }), json!({ "field": "domain" })).await;
    refused(json!({ "domain": "a.test", "provider": "quad9" }), json!({ "field": "provider" })).await;
    refused(json!({ "domain": "a.test", "provider": "Google" }), json!({ "field": "provider" })).await;
    refused(json!({ "domain": "a.test", "type": "A" }), json!({ "field": "type" })).await;
    refused(json!({ "provider": "bing", "domain": "a b" }), json!({ "field": "provider" })).await;
}

#[tokio::test]
async fn the_longest_name_is_asked_for_with_its_dot() {
    let longest = format!("plain.{}{}", format!("{}.", "a".repeat(61)).repeat(3), "b".repeat(61));
    assert_eq!(longest.len(), 253);
    assert_eq!(lookup(&format!("{longest}.")).await["domain"], longest.as_str());
}

#[tokio::test]
async fn a_key_needs_the_scope() {
    let service = service().await;
    let input = json!({ "domain": "plain.scope.test" });
    for (scope, status) in [("domain:dns", 200), ("domain:whois", 403)] {
        let key = service.issue(&["--scope", scope]);
        let request = service.bare(reqwest::Method::POST, LOOKUP).bearer_auth(key).json(&input);
        assert_eq!(Service::send(request).await.status, status, "{scope}");
    }
}

#[tokio::test]
async fn a_page_of_ours_looks_up_30_names_a_minute() {
    let service = start(&Resolver::shared().configuration()).await;
    let (_, answers) = in_one_minute(async || {
        let mut answers = Vec::new();
        for _ in 0..31 {
            let request = service.bare(reqwest::Method::POST, LOOKUP).header("origin", PAGE);
            answers.push(Service::send(request.json(&json!({ "domain": "plain.page.test" }))).await);
        }
        answers
    })
    .await;
    for (index, answer) in answers.iter().enumerate() {
        let (status, left) = if index < 30 { (200, 29 - index) } else { (429, 0) };
        assert_eq!(answer.status, status, "call {}", index + 1);
        let told = ["limit", "remaining"].map(|name| answer.header(&format!("x-ratelimit-{name}")).to_owned());
        assert_eq!(told, ["30".to_owned(), left.to_string()], "call {}", index + 1);
    }
    assert_eq!(answers[30].refusal(), (429, "RATE_LIMITED".to_owned()));
}
