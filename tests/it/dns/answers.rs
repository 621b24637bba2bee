//! What comes back of a real resolver, and how questions travel.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Barrier;

use super::{dials, one, query, start, told};
use crate::lab;
use crate::lab::Reply;
use crate::lab::dns::{Scripted, TYPES, Told};

/// Names of the lab's zones, of which each type has one.
const NAMES: [&str; 11] = [
    "example.test",
    "alias.example.test",
    "chain.example.test",
    "pointer.example.test",
    "sub.example.test",
    "quoted.example.test",
    "binary.example.test",
    "big.example.test",
    "_8443._https.example.test",
    "svc.example.test",
    "naptr.example.test",
];

/// The types and the bytes of all answers, in an order of their own: a resolver turns records round.
fn records(told: &Told) -> Vec<(String, String)> {
    let mut records: Vec<(String, String)> = told
        .answer
        .iter()
        .map(|record| {
            (
                record.record_type.clone(),
                record.hex.clone().expect("bytes"),
            )
        })
        .collect();
    records.sort();
    records
}

#[tokio::test]
async fn each_type_comes_back_validated_and_as_kdig_and_dig_read_it() {
    let lab = lab::dns::start();
    let service = start(&[("cloudflare", &lab.endpoint)]).await;
    let mut seen = Vec::new();
    for name in NAMES {
        let numbers = TYPES.map(|(number, _)| number);
        let answers = query(
            &service,
            json!({ "resolver": "cloudflare", "name": name, "types": numbers }),
        )
        .await;
        for ((_, record_type), answer) in TYPES.iter().zip(&answers) {
            let (ours, kdig, dig) = (
                told(answer),
                lab.kdig(name, record_type),
                lab.dig(name, record_type),
            );
            assert_eq!(records(&ours), records(&kdig), "{name} {record_type}");
            assert_eq!(
                (&ours.status, ours.ad),
                (&kdig.status, kdig.ad),
                "{name} {record_type}"
            );
            assert_eq!(
                (&ours.status, ours.ad),
                (&dig.status, dig.ad),
                "{name} {record_type}"
            );
            let authorities = [&ours, &kdig, &dig].map(|told| told.authority.len());
            assert_eq!(
                (ours.answer.len(), [ours.authority.len(); 3]),
                (dig.answer.len(), authorities)
            );
            if ours
                .answer
                .iter()
                .any(|record| record.record_type == *record_type)
            {
                assert!(
                    ours.ad && ours.status == "NOERROR",
                    "{name} {record_type}: {ours:?}"
                );
                seen.push(*record_type);
            }
        }
    }
    for (_, record_type) in TYPES {
        assert!(seen.contains(&record_type), "no name has {record_type}");
    }
    // All of it over one connection of HTTP/2, which is all that unbound speaks.
    assert_eq!(dials(&service).await, 1.0);
}

#[tokio::test]
async fn what_a_resolver_says_of_a_name_is_an_answer_whatever_it_is() {
    let lab = lab::dns::start();
    let service = start(&[("cloudflare", &lab.endpoint)]).await;
    let said = [
        ("example.test", "NOERROR", true, 2),
        ("EXAMPLE.test.", "NOERROR", true, 2),
        ("plain.test", "NOERROR", false, 1),
        ("any.wild.example.test", "NOERROR", true, 1),
        ("xn--ng-pma4741a.example.test", "NOERROR", true, 1),
        ("c.empty.example.test", "NOERROR", true, 0),
        ("nothing.example.test", "NXDOMAIN", true, 0),
        ("dangling.example.test", "NXDOMAIN", true, 1),
        ("outside.example.test", "NOERROR", false, 3),
        ("loop.example.test", "SERVFAIL", false, 0),
        ("bogus.test", "SERVFAIL", false, 0),
        ("refused.test", "REFUSED", false, 0),
        (".", "NOERROR", false, 0),
    ];
    for (name, status, ad, answers) in said {
        let told = told(&one(&service, name, 1).await);
        assert_eq!(
            (told.status.as_str(), told.ad, told.answer.len()),
            (status, ad, answers),
            "{name}: {told:?}"
        );
    }
    let silent =
        json!({ "resolver": "cloudflare", "name": "silent.test", "types": [1], "timeout_ms": 200 });
    assert_eq!(query(&service, silent).await[0]["outcome"], "late");
    assert_eq!(
        one(&service, "dropped.test", 1).await["outcome"],
        "bad_response"
    );
    assert_eq!(
        told(&one(&service, "example.test", 1).await).status,
        "NOERROR"
    );
}

#[tokio::test]
async fn what_an_authoritative_server_says_passes_as_it_is() {
    let lab = lab::dns::start();
    let relay = Scripted::start(async |asked| Reply::dns(lab.authority(&asked.message))).await;
    let service = start(&[("cloudflare", &relay.endpoint)]).await;
    let looped = told(&one(&service, "loop.example.test", 1).await);
    let names: Vec<&str> = looped
        .answer
        .iter()
        .map(|record| record.name.as_str())
        .collect();
    assert_eq!(
        (looped.status.as_str(), names),
        ("NOERROR", vec!["loop.example.test.", "loop2.example.test."])
    );
    let delegated = told(&one(&service, "sub.example.test", 1).await);
    assert_eq!(
        (
            delegated.answer.len(),
            delegated.authority.len(),
            delegated.authority[0].ttl
        ),
        (0, 1, 3600)
    );
}

/// A resolver that answers nobody before so many have asked.
async fn patient(questions: usize) -> Scripted {
    let all = Arc::new(Barrier::new(questions));
    Scripted::start(move |asked| {
        let all = Arc::clone(&all);
        async move {
            all.wait().await;
            Reply::dns(asked.answer(0, &[]))
        }
    })
    .await
}

#[tokio::test]
async fn sixteen_questions_are_under_way_at_once_over_one_connection() {
    let resolver = patient(TYPES.len()).await;
    let service = start(&[("cloudflare", &resolver.endpoint)]).await;
    let numbers = TYPES.map(|(number, _)| number);
    for _ in 0..2 {
        let answers = query(
            &service,
            json!({ "resolver": "cloudflare", "name": "example.test", "types": numbers }),
        )
        .await;
        assert!(
            answers
                .iter()
                .all(|answer| told(answer).status == "NOERROR"),
            "{answers:?}"
        );
    }
    assert_eq!((resolver.asked().len(), resolver.connections()), (32, 1));
}

#[tokio::test]
async fn lookups_at_once_do_not_wait_for_one_another() {
    const LOOKUPS: usize = 8;
    let resolver = patient(LOOKUPS * TYPES.len()).await;
    let service = start(&[("cloudflare", &resolver.endpoint)]).await;
    let numbers = TYPES.map(|(number, _)| number);
    let lookup = || {
        query(
            &service,
            json!({ "resolver": "cloudflare", "name": "example.test", "types": numbers }),
        )
    };
    for answers in futures::future::join_all((0..LOOKUPS).map(|_| lookup())).await {
        assert!(
            answers
                .iter()
                .all(|answer| told(answer).status == "NOERROR"),
            "{answers:?}"
        );
    }
}

#[tokio::test]
async fn a_question_is_a_small_message_that_names_nobody() {
    let resolver = Scripted::start(async |asked| Reply::dns(asked.answer(3, &[]))).await;
    let service = start(&[("cloudflare", &resolver.endpoint)]).await;
    assert_eq!(
        told(&one(&service, "_Dmarc.Example.test.", 16).await).status,
        "NXDOMAIN"
    );
    let asked = resolver.asked().swap_remove(0);
    assert_eq!(asked.line, "HTTP/2.0 POST /dns-query");
    let headers: Vec<String> = asked
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let expected = [
        "content-type: application/dns-message",
        "accept: application/dns-message",
        "accept-encoding: gzip, br, zstd, deflate",
        "user-agent: switchbay/0.1.0",
        "content-length: 48",
    ];
    assert_eq!(headers, expected);
    // Id 0, RD and AD; one question; EDNS with 1,232 bytes, without DO and options.
    let head = b"\0\0\x01\x20\0\x01\0\0\0\0\0\x01";
    let message = [
        head,
        b"\x06_Dmarc\x07Example\x04test\0\0\x10\0\x01".as_slice(),
        b"\0\0\x29\x04\xd0\0\0\0\0\0\0",
    ];
    assert_eq!(asked.message, message.concat());
}

#[tokio::test]
async fn a_resolver_is_told_to_withhold_the_subnet_where_its_row_says_so() {
    let resolver = Scripted::start(async |asked| Reply::dns(asked.answer(0, &[]))).await;
    let config = lab::dns::configuration(&[("cloudflare", &resolver.endpoint)]);
    let row = format!(
        "google = {{ url = \"https://{}/dns-query\", ",
        resolver.endpoint.host
    );
    let service =
        super::start_with(format!("{config}{row}client_subnet = \"withheld\" }}\n")).await;
    for name in ["cloudflare", "google"] {
        let answers = query(
            &service,
            json!({ "resolver": name, "name": "example.test", "types": [1] }),
        )
        .await;
        assert_eq!(told(&answers[0]).status, "NOERROR");
    }
    let asked = resolver.asked();
    assert!(
        asked[0].message.ends_with(b"\0\0\x29\x04\xd0\0\0\0\0\0\0"),
        "{:?}",
        asked[0].message
    );
    assert!(
        asked[1]
            .message
            .ends_with(b"\0\0\x29\x04\xd0\0\0\0\0\0\x08\0\x08\0\x04\0\x01\0\0"),
        "{:?}",
        asked[1]
    );
    assert_eq!(resolver.connections(), 1);
}
