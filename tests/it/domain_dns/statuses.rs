//! Statuses of lookups: what a resolver says of a name, and what becomes of queries that failed.

use serde_json::json;

use super::{LOOKUP, Resolver, ask, lookup, query, service, start};
use crate::support::{Post, members, outcome};

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
    check(
        "plain.status.test",
        ("NOERROR", "ok", true),
        (0, "NOERROR", "noerror"),
    )
    .await;
    check(
        "empty.status.test",
        ("NOERROR", "no_records", true),
        (0, "NOERROR", "noerror"),
    )
    .await;
    check(
        "nxdomain.status.test",
        ("NXDOMAIN", "nxdomain", false),
        (3, "NXDOMAIN", "nxdomain"),
    )
    .await;
    check(
        "dangling.status.test",
        ("NOERROR", "ok", true),
        (3, "NXDOMAIN", "nxdomain"),
    )
    .await;
    check(
        "gone.status.test",
        ("NXDOMAIN", "nxdomain", true),
        (3, "NXDOMAIN", "nxdomain"),
    )
    .await;
    check(
        "loop.status.test",
        ("NOERROR", "ok", true),
        (0, "NOERROR", "noerror"),
    )
    .await;
    check(
        "refused.status.test",
        ("REFUSED", "refused", true),
        (5, "REFUSED", "refused"),
    )
    .await;
    check(
        "servfail.status.test",
        ("SERVFAIL", "servfail", true),
        (2, "SERVFAIL", "servfail"),
    )
    .await;
    check(
        "strange.status.test",
        ("RCODE11", "servfail", true),
        (11, "RCODE11", "rcode11"),
    )
    .await;
    check(
        "partly.status.test",
        ("NOERROR", "partial", true),
        (0, "NOERROR", "noerror"),
    )
    .await;
}

/// A lookup with one query that failed in transport.
async fn check_one_failed(domain: &str) {
    let data = lookup(domain).await;
    let summary =
        json!({ "status": "NOERROR", "message": "dns.summary.partial", "domainExists": true });
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
    assert_eq!(
        Resolver::shared().asked(domain),
        32,
        "{domain} is kept, and should be asked for again"
    );
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
    let called = Post::call("lookup_domain_dns", &input)
        .bearer(service.key())
        .send(service)
        .await;
    assert_eq!(
        outcome(&called),
        format!("200 isError {code} #7"),
        "{domain}"
    );
}

#[tokio::test]
async fn a_lookup_fails_where_every_query_did() {
    check_failure("garbage.none.test", 502, "UPSTREAM_BAD_RESPONSE").await;
    check_failure("status.none.test", 502, "UPSTREAM_BAD_RESPONSE").await;
    check_failure("late.none.test", 504, "UPSTREAM_TIMEOUT").await;
    check_failure("silent.none.test", 504, "UPSTREAM_TIMEOUT").await;
    assert_eq!(
        Resolver::shared().asked("garbage.none.test"),
        32,
        "a failure is not kept"
    );
}

#[tokio::test]
async fn a_resolver_that_is_not_reached_is_an_unavailable_service() {
    let closed = ["cloudflare-dns.com", "dns.google"]
        .map(|host| format!("\"{host}:443\" = \"127.0.0.1:1\""));
    let service = start(&format!(
        "[egress]\nconnect_to = {{ {} }}\n",
        closed.join(", ")
    ))
    .await;
    for provider in ["cloudflare", "google"] {
        let answer = service
            .post(
                LOOKUP,
                &json!({ "domain": "example.com", "provider": provider }),
            )
            .await;
        assert_eq!(answer.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
        assert!(
            answer.json()["error"]["message"]
                .as_str()
                .is_some_and(|message| message.contains(provider))
        );
    }
}
