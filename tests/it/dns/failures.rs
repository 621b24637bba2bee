//! Each way in which a question comes to no answer, by resolvers that do what no real one does.

use serde_json::json;

use super::{dials, one, query, start};
use crate::lab::Reply;
use crate::lab::dns::{Asked, Scripted, Speaks};

/// What the name that is asked for says.
async fn misbehave(asked: Asked) -> Reply {
    let answer = |change: fn(&mut Vec<u8>)| {
        let mut message = asked.answer(0, &[(1, &[192, 0, 2, 1])]);
        change(&mut message);
        Reply::dns(message)
    };
    match asked.name.split('.').next().unwrap_or_default() {
        "good" => answer(|_| {}),
        "padded" => answer(|message| message.resize(65_535, 0)),
        "huge" => answer(|message| message.resize(65_536, 0)),
        "garbage" => Reply::dns(b"what was the question".to_vec()),
        "empty" => Reply::dns(Vec::new()),
        "cut" => answer(|message| message.truncate(20)),
        "query" => answer(|message| message[2] &= 0x7f),
        "numbered" => answer(|message| message[1] = 1),
        "renamed" => answer(|message| message[13] = b'x'),
        "shouted" => answer(|message| message[13] = b'S'),
        // The name begins at 12 and has 22 bytes; its type's number is the second one of two.
        "retyped" => answer(|message| message[35] = 28),
        "mistyped" => Reply::body(200, "text/html", asked.answer(0, &[])),
        "typed" => Reply::body(
            200,
            "Application/DNS-Message; charset=none",
            asked.answer(0, &[]),
        ),
        "moved" => Reply::redirect(302, "/elsewhere"),
        "limited" => Reply::bare(429, "not now"),
        "absent" => Reply::bare(404, "not now"),
        "broken" => Reply::bare(500, "not now"),
        "other" => Reply::bare(204, "not now"),
        "reset" => Reply::Reset,
        "closed" => Reply::Close,
        "frozen" => Reply::Freeze,
        "late" => std::future::pending().await,
        other => panic!("a question for {other}"),
    }
}

#[tokio::test]
async fn what_is_no_answer_is_told_by_what_is_wrong_with_it() {
    let resolver = Scripted::start(misbehave).await;
    let service = start(&[("cloudflare", &resolver.endpoint)]).await;
    let expected = [
        ("good", "ok", ""),
        ("typed", "ok", ""),
        ("shouted", "ok", ""),
        ("padded", "ok", ""),
        (
            "huge",
            "bad_response",
            "the answer has more than 65535 bytes",
        ),
        ("garbage", "bad_response", "it is not a response"),
        ("empty", "bad_response", "it is not a DNS message"),
        ("cut", "bad_response", "it is not a DNS message"),
        ("query", "bad_response", "it is not a response"),
        ("numbered", "bad_response", "its id is not 0"),
        ("renamed", "bad_response", "it answers another question"),
        ("retyped", "bad_response", "it answers another question"),
        (
            "mistyped",
            "bad_response",
            "the answer's media type is not application/dns-message",
        ),
        ("moved", "bad_response", "the answer has the status 302"),
        ("limited", "bad_response", "the answer has the status 429"),
        ("absent", "bad_response", "the answer has the status 404"),
        ("broken", "bad_response", "the answer has the status 500"),
        ("other", "bad_response", "the answer has the status 204"),
        (
            "reset",
            "bad_response",
            "the connection broke during the exchange",
        ),
        (
            "closed",
            "bad_response",
            "the connection broke during the exchange",
        ),
        ("good", "ok", ""),
    ];
    for (name, outcome, because) in expected {
        let answer = one(&service, &format!("{name}.example.test"), 1).await;
        assert_eq!(
            (&answer["outcome"], &answer["told"]),
            (&json!(outcome), &json!(because)),
            "{name}"
        );
    }
    assert_eq!(
        resolver.asked().len(),
        expected.len(),
        "no redirect is followed, and nothing is asked twice"
    );
}

#[tokio::test]
async fn a_late_answer_keeps_no_other_one_waiting() {
    let resolver = Scripted::start(async |asked| match asked.record_type {
        15 => std::future::pending().await,
        _ => Reply::dns(asked.answer(0, &[])),
    })
    .await;
    let service = start(&[("cloudflare", &resolver.endpoint)]).await;
    let input = json!({ "resolver": "cloudflare", "name": "example.test", "types": [1, 15, 16], "timeout_ms": 500 });
    let answers = query(&service, input).await;
    let outcomes: Vec<&str> = answers
        .iter()
        .map(|answer| answer["outcome"].as_str().expect("an outcome"))
        .collect();
    assert_eq!(outcomes, ["ok", "late", "ok"]);
}

#[tokio::test]
async fn a_connection_that_died_is_noticed_before_the_next_question() {
    let resolver = Scripted::start(misbehave).await;
    let service = start(&[("cloudflare", &resolver.endpoint)]).await;
    for (name, outcome) in [("good", "ok"), ("frozen", "late"), ("good", "ok")] {
        assert_eq!(
            one(&service, &format!("{name}.example.test"), 1).await["outcome"],
            outcome
        );
    }
    assert_eq!(resolver.connections(), 2);
}

#[tokio::test]
async fn a_resolver_that_is_not_there_or_not_trusted_is_unreachable() {
    let answered = async |asked: Asked| Reply::dns(asked.answer(0, &[]));
    let (mut gone, mut stranger) = (
        Scripted::start(answered).await,
        Scripted::start(answered).await,
    );
    let old = Scripted::speaking(Speaks::Http1, answered).await;
    gone.endpoint.address = "127.0.0.1:1".parse().expect("an address");
    stranger.endpoint.host = "stranger.resolver.test".to_owned();
    for resolver in [&gone, &stranger, &old] {
        let service = start(&[("cloudflare", &resolver.endpoint)]).await;
        let input =
            json!({ "resolver": "cloudflare", "name": "example.test", "types": [1, 2, 3, 4] });
        let answers = query(&service, input).await;
        assert!(
            answers
                .iter()
                .all(|answer| answer["outcome"] == "unreachable"),
            "{answers:?}"
        );
        assert!(dials(&service).await >= 1.0);
        assert_eq!(resolver.asked().len(), 0);
    }
}

#[tokio::test]
async fn a_call_has_so_many_questions_under_way_and_is_told_of_the_next() {
    let resolver = Scripted::start(misbehave).await;
    let service = start(&[("cloudflare", &resolver.endpoint)]).await;
    let types = vec![1; 40];
    let input = json!({ "resolver": "cloudflare", "name": "late.example.test", "types": types, "timeout_ms": 1000 });
    let answers = query(&service, input).await;
    let count = |outcome: &str| {
        answers
            .iter()
            .filter(|answer| answer["outcome"] == outcome)
            .count()
    };
    assert_eq!((count("late"), count("busy")), (32, 8), "{answers:?}");
    // The places are free again.
    assert_eq!(one(&service, "good.example.test", 1).await["outcome"], "ok");
}
