//! Questions that are not asked: not granted, not public, not acceptable, or none.

use serde_json::{Value, json};

use super::{dials, query, start_with, told};
use crate::lab;
use crate::lab::Reply;
use crate::lab::dns::{Endpoint, Scripted};
use crate::metrics::{revision, scrape};

/// A question for an address of `example.test`, by its outcome and what was told of that.
async fn ask(
    service: &crate::support::Service,
    resolver: &str,
    name: &str,
    record_type: u16,
) -> (String, String) {
    let answer = query(
        service,
        json!({ "resolver": resolver, "name": name, "types": [record_type] }),
    )
    .await
    .swap_remove(0);
    let text = |field: &str| answer[field].as_str().expect("text").to_owned();
    (text("outcome"), text("told"))
}

/// One resolver that answers, one whose host leads to a private address, and one that no atom of `dns` lends.
async fn configuration(answering: &Endpoint) -> String {
    let ungranted = Endpoint {
        host: "ungranted.resolver.test".to_owned(),
        ..answering.clone()
    };
    let names = crate::egress::private_names();
    lab::dns::configuration(&[("cloudflare", answering), ("ungranted", &ungranted)]).replace(
        "[egress]",
        &format!("[egress]\ndns_servers = [\"{names}\"]"),
    ) + "near = \"https://private.rebound.test/dns-query\"\n"
}

const LENDS: &str = "the resolver is not granted: a grant `dns:NAME` is needed";

/// The name of a resolver, which of the three it is, and what is told of that.
const DENIED: [(&str, &str, &str); 6] = [
    ("ungranted", "not_granted", LENDS),
    ("nowhere", "not_granted", LENDS),
    ("", "not_granted", LENDS),
    ("Cloudflare", "not_granted", LENDS),
    (
        "unknown",
        "not_acceptable",
        "the operator's configuration has no such resolver",
    ),
    (
        "near",
        "not_public",
        "the host `private.rebound.test` resolves to an address that is not public",
    ),
];

#[tokio::test]
async fn a_denial_says_which_of_three_it_is_and_nothing_is_dialled() {
    let resolver = Scripted::start(async |asked| Reply::dns(asked.answer(0, &[]))).await;
    let service = start_with(configuration(&resolver.endpoint).await).await;
    for (name, outcome, because) in DENIED {
        let expected = (outcome.to_owned(), because.to_owned());
        assert_eq!(
            ask(&service, name, "secret.example.test", 1).await,
            expected,
            "{name}"
        );
    }
    // A right to a resolver is none to its endpoint.
    let endpoint = format!("https://{}/dns-query", resolver.endpoint.host);
    let posted = service
        .post("/api/v1/test/post", &json!({ "url": endpoint }))
        .await;
    assert_eq!(posted.json()["data"]["outcome"], "not_granted");

    assert_eq!(dials(&service).await, 0.0);
    let metrics = scrape(service.data.path()).await;
    let revision = revision(service.data.path(), "resolves").await;
    let series = [("plugin", "resolves"), ("revision", revision.as_str())];
    assert_eq!(
        metrics.value("switchbay_plugin_denials_total", &series),
        7.0
    );

    assert_eq!(
        ask(&service, "cloudflare", "secret.example.test", 1)
            .await
            .0,
        "ok"
    );
    let requests = |lines: &[Value]| -> Vec<Value> {
        let audit = lines
            .iter()
            .filter(|line| line["target"] == "egress" && line["message"] == "request");
        audit.cloned().collect()
    };
    let lines = service.log_until(|lines| requests(lines).len() >= 8);
    let verdicts: Vec<Value> = requests(&lines)
        .iter()
        .map(|line| line["verdict"].clone())
        .collect();
    let three = ["not_granted"; 4];
    let expected = [
        &three[..],
        &["not_acceptable", "not_public", "not_granted", "sent"],
    ]
    .concat();
    assert_eq!(verdicts, expected);
    let sent = &requests(&lines)[7];
    let host = json!(resolver.endpoint.host);
    assert_eq!(
        (&sent["plugin"], &sent["host"], &sent["port"]),
        (&json!("resolves"), &host, &json!(443))
    );
    assert_eq!(
        (&sent["status"], &sent["address"]),
        (&json!(200), &json!(resolver.endpoint.address.to_string()))
    );
    for line in service.stop() {
        assert!(!line.contains("secret.example"), "{line}");
    }
}

#[tokio::test]
async fn a_name_or_a_type_that_cannot_be_asked_for_is_told_its_rule_and_not_sent() {
    let resolver = Scripted::start(async |asked| Reply::dns(asked.answer(0, &[]))).await;
    let service = start_with(configuration(&resolver.endpoint).await).await;
    let (label, longest) = (
        "a".repeat(64),
        format!("{0}.{0}.{0}.{1}", "a".repeat(63), "a".repeat(61)),
    );
    let characters = "has a label with characters other than letters, digits, `-` and `_`; international labels must \
        be A-labels";
    let refused = [
        ("", 1, "has an empty label in its name"),
        ("a..test", 1, "has an empty label in its name"),
        ("đặng.test", 1, characters),
        ("a b.test", 1, characters),
        ("https://a.test/", 1, characters),
        ("a.test\r\nb", 1, characters),
        (
            &format!("{label}.test"),
            1,
            "has a label of 64 characters in its name; at most 63 are allowed",
        ),
        (
            &format!("{longest}a"),
            1,
            "has a name of 254 characters; at most 253 are allowed, not counting a trailing dot",
        ),
        ("a.test", 0, "has the type 0, which is not a data type"),
        ("a.test", 41, "has the type 41, which is not a data type"),
        ("a.test", 252, "has the type 252, which is not a data type"),
    ];
    for (name, record_type, rule) in refused {
        let expected = ("invalid_request".to_owned(), format!("the question {rule}"));
        assert_eq!(
            ask(&service, "cloudflare", name, record_type).await,
            expected,
            "{name}"
        );
    }
    assert_eq!((dials(&service).await, resolver.asked().len()), (0.0, 0));
    for name in [longest.as_str(), "a.test.", ".", "com"] {
        let answers = query(
            &service,
            json!({ "resolver": "cloudflare", "name": name, "types": [1] }),
        )
        .await;
        assert_eq!(told(&answers[0]).status, "NOERROR", "{name}");
        assert_eq!(
            resolver.asked().last().expect("a question").name,
            name.trim_end_matches('.')
        );
    }
}
