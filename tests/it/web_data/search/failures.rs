//! What keeps a search from being answered, and what its caller is told: by status, by answer, by time, by settings.

use serde_json::{Value, json};

use super::{ALL, House, Kind, numbered};
use crate::lab::Reply;
use crate::support::LAB_TOKEN;

const BAD: (u16, &str) = (502, "UPSTREAM_BAD_RESPONSE");
const UNAVAILABLE: (u16, &str) = (503, "SERVICE_UNAVAILABLE");
const LATE: (u16, &str) = (504, "UPSTREAM_TIMEOUT");

const REFUSES: &str = "The search provider rejected this service's credentials";
const WAITS: &str = "The search provider's rate limit is reached; try again later";
const FAILED: &str = "The search provider failed";
const UNREADABLE: &str = "The search provider's response could not be read";

/// Searches for a word to which the provider does this.
async fn check(
    house: &House,
    word: &str,
    reply: Reply,
    expected: (u16, &str),
    message: &str,
    wait_s: Option<u64>,
) {
    house.lab.answer(word, reply.clone());
    let (status, code, told, waits_s) = house.refused(json!({ "query": word })).await;
    let kind = house.kind;
    assert_eq!(
        ((status, code.as_str()), told.as_str(), waits_s),
        (expected, message, wait_s),
        "{kind:?} {reply:?}"
    );
}

#[tokio::test]
async fn a_status_of_failure_is_told_as_what_it_means_for_a_caller() {
    for kind in ALL {
        let house = House::of(kind);
        let page = |status: u16| Reply::said(status, format!("<h1>{status}</h1> {LAB_TOKEN}"));
        for status in [401, 403] {
            check(
                house,
                &format!("status{status}"),
                page(status),
                UNAVAILABLE,
                REFUSES,
                None,
            )
            .await;
        }
        for status in [500, 502, 503, 504] {
            check(
                house,
                &format!("status{status}"),
                page(status),
                BAD,
                FAILED,
                None,
            )
            .await;
        }
        for status in [204, 301, 302, 400, 404, 418, 422] {
            let away = page(status).header("location", "http://pages.lab.test/away");
            check(
                house,
                &format!("status{status}"),
                away,
                BAD,
                UNREADABLE,
                None,
            )
            .await;
        }
        for (word, (name, value), wait_s) in [
            ("waits0", ("x-nothing", "1"), 10),
            ("waits1", ("retry-after", "70"), 70),
            ("waits2", ("retry-after", "0"), 1),
            ("waits3", ("retry-after", "99999999"), 3600),
            (
                "waits4",
                ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),
                10,
            ),
        ] {
            check(
                house,
                word,
                page(429).header(name, value),
                UNAVAILABLE,
                WAITS,
                Some(wait_s),
            )
            .await;
        }
        assert_eq!(house.lab.asked("/away").len(), 0, "{kind:?}");
    }
}

#[tokio::test]
async fn a_plan_that_is_used_up_is_told_as_that() {
    let tavily = House::of(Kind::Tavily);
    let used_up = "This service's plan with the search provider is used up";
    for status in [432, 433] {
        let reply = Reply::said(
            status,
            r#"{"detail":{"error":"This request exceeds your plan's set usage limit."}}"#,
        );
        check(
            tavily,
            &format!("plan{status}"),
            reply,
            UNAVAILABLE,
            used_up,
            None,
        )
        .await;
    }
}

/// Brave says by windows when it takes the next: one second and one month, of which those count that are used up.
#[tokio::test]
async fn brave_is_waited_for_by_the_windows_that_are_used_up() {
    let brave = House::of(Kind::Brave);
    for (word, remaining, wait_s) in [
        ("second", "0, 14523", 1),
        ("month", "0, 0", 3600),
        ("neither", "1, 1", 10),
    ] {
        let limited =
            json!({ "type": "ErrorResponse", "error": { "status": 429, "code": "RATE_LIMITED" } });
        let reply = Reply::said(429, limited.to_string());
        let reply = reply
            .header("x-ratelimit-remaining", remaining)
            .header("x-ratelimit-reset", "1, 1419704");
        check(brave, word, reply, UNAVAILABLE, WAITS, Some(wait_s)).await;
    }
}

#[tokio::test]
async fn a_token_that_brave_does_not_know_is_told_as_credentials_that_are_refused() {
    let brave = House::of(Kind::Brave);
    let token = json!({ "type": "ErrorResponse", "error": { "status": 422, "code": "SUBSCRIPTION_TOKEN_INVALID" } });
    check(
        brave,
        "token422",
        Reply::said(422, token.to_string()),
        UNAVAILABLE,
        REFUSES,
        None,
    )
    .await;
}

#[tokio::test]
async fn an_answer_that_is_none_is_told_as_one() {
    for kind in ALL {
        let house = House::of(kind);
        let whole = kind.body(&numbered(9)).to_string();
        let deep = "[".repeat(100_000);
        let bodies = [
            "",
            "<html>",
            "null",
            "[]",
            "{}",
            "{\"results\": null}",
            &whole[..whole.len() / 2],
            &deep,
        ];
        for (number, body) in bodies.iter().enumerate() {
            let reply = Reply::said(200, *body);
            check(
                house,
                &format!("unreadable{number}"),
                reply,
                BAD,
                UNREADABLE,
                None,
            )
            .await;
        }
        let huge = Reply::said(200, format!("{}{whole}", " ".repeat(4 << 20)));
        check(
            house,
            "huge",
            huge,
            BAD,
            "The search provider's response is too large",
            None,
        )
        .await;
        // Many small members take more memory than they have bytes where each is kept, and deep ones more stack.
        for (word, more) in [
            ("crowded", format!("{}1", "{},".repeat(900_000))),
            ("nested", format!("{deep}{}", "]".repeat(100_000))),
        ] {
            let more = whole.replacen('{', &format!("{{\"more\":[{more}],"), 1);
            house.lab.answer(word, Reply::said(200, more));
            assert_eq!(
                house.found(json!({ "query": word })).await.len(),
                5,
                "{kind:?} {word}"
            );
        }
        let broke = "The search provider could not be reached or closed the connection early";
        check(house, "closes", Reply::Close, BAD, broke, None).await;
        let coded = Reply::said(200, whole.clone()).header("content-encoding", "gzip");
        check(house, "miscoded", coded, BAD, broke, None).await;
    }
}

#[tokio::test]
async fn an_outage_that_is_dressed_as_an_empty_result_is_none() {
    let house = House::of(Kind::Searxng);
    let outage = "The search provider found nothing because its engines did not respond";
    let answer = |results: &[Value]| {
        let mut body = Kind::Searxng.body(results);
        body["unresponsive_engines"] = json!([["google", "timeout"], ["duckduckgo", "CAPTCHA"]]);
        Reply::json(200, &body)
    };
    check(house, "blackout", answer(&[]), BAD, outage, None).await;
    assert_eq!(
        house.lab.asked("blackout").len(),
        2,
        "one request for each call"
    );
    // What is no web page is nothing either.
    let file = json!({ "url": "ftp://a.example/", "title": "t" });
    check(house, "brownout", answer(&[file]), BAD, outage, None).await;
    // Some engines are always down.
    house.lab.answer("dimmed", answer(&numbered(5)));
    assert_eq!(house.found(json!({ "query": "dimmed" })).await.len(), 5);
    let mut body = Kind::Searxng.body(&[]);
    body["unresponsive_engines"] = json!(null);
    house.lab.answer("nullified", Reply::json(200, &body));
    assert_eq!(house.found(json!({ "query": "nullified" })).await.len(), 0);
}

#[tokio::test]
async fn a_provider_that_is_late_is_given_up_at_its_time() {
    let late = "The search provider did not answer in time";
    for kind in ALL {
        let patient = House::of(kind);
        patient.lab.answer("dripping", Reply::drip());
        let house = House::start(kind, &kind.settings(", timeout_ms = 700")).await;
        let given_up = async {
            check(&house, "drips", Reply::drip(), LATE, late, None).await;
            check(&house, "silent", Reply::Hang, LATE, late, None).await;
        };
        // The longest time is thirty of these, and goes on.
        tokio::select! {
            biased;
            told = patient.refused(json!({ "query": "dripping" })) => panic!("{kind:?}: {told:?} came first"),
            () = given_up => {}
        }
    }
    // A second page has what is left of the first one's time, and takes nothing from what that has.
    let house = House::start(
        Kind::Searxng,
        &Kind::Searxng.settings(", timeout_ms = 3000"),
    )
    .await;
    house.finds("halfway", &numbered(2));
    house
        .lab
        .answer("q=halfway&format=json&pageno=2", Reply::drip());
    assert_eq!(house.found(json!({ "query": "halfway" })).await.len(), 2);
}

#[tokio::test]
async fn what_the_operator_has_not_set_up_is_named() {
    let unset = "No search provider is configured; the operator must set `search.provider`";
    let setting = |name: &str| format!("The setting `{name}` of this service is invalid");
    let cases = [
        (String::new(), unset.to_owned(), None),
        (
            "config = { search = {} }\n".to_owned(),
            unset.to_owned(),
            Some("`search.provider` is missing"),
        ),
        (
            "config = { search = { provider = \"searxng\" } }\n".to_owned(),
            setting("search.base_url"),
            Some("`search.base_url` is missing; SearXNG requires it"),
        ),
        (
            Kind::Brave.settings(", timeout_ms = 0"),
            setting("search.timeout_ms"),
            Some("`search.timeout_ms` must be from"),
        ),
        (
            Kind::Brave.settings(", api_key = \"x\""),
            setting("search"),
            Some("unknown field `api_key`"),
        ),
    ];
    for (settings, expected, logged) in cases {
        let house = House::start(Kind::Brave, &settings).await;
        let (status, code, message, wait_s) = house.refused(json!({ "query": "unset" })).await;
        assert_eq!(
            ((status, code.as_str()), wait_s),
            (UNAVAILABLE, None),
            "{settings}"
        );
        assert_eq!(message, expected, "{settings}");
        assert_eq!(house.lab.asked("unset").len(), 0, "{settings}");
        if let Some(logged) = logged {
            house
                .service
                .log_until(|lines| lines.iter().any(|line| said(line, logged)));
        }
    }
}

fn said(line: &Value, text: &str) -> bool {
    line["level"] == "ERROR"
        && line["message"]
            .as_str()
            .is_some_and(|message| message.contains(text))
}

#[tokio::test]
async fn a_provider_that_may_not_be_asked_is_told_to_the_operator() {
    let denied = (
        UNAVAILABLE,
        "This service's settings or grants do not allow requests to the search provider",
    );
    let ungranted = House::start_granted(Kind::Tavily, &Kind::Tavily.settings(""), "").await;
    // No name that leads there, a name that is never public, a port of its own, an address that is not public.
    let bases = [
        "https://localhost/",
        "https://searx.lab.test:8080/",
        "http://10.0.0.1/",
    ];
    let mut houses = vec![(
        ungranted,
        "POST to api.tavily.com on port 443 is not granted",
    )];
    for (base, logged) in
        bases
            .into_iter()
            .zip(["is never public", "has the port 8080", "10.0.0.1"])
    {
        let settings = format!(
            "config = {{ search = {{ provider = \"searxng\", base_url = \"{base}\" }} }}\n"
        );
        houses.push((House::start(Kind::Searxng, &settings).await, logged));
    }
    for (house, logged) in houses {
        let (status, code, message, _) = house.refused(json!({ "query": "denied" })).await;
        assert_eq!(
            ((status, code.as_str()), message.as_str()),
            denied,
            "{logged}"
        );
        house
            .service
            .log_until(|lines| lines.iter().any(|line| said(line, logged)));
        assert_eq!(house.lab.asked("denied").len(), 0, "{logged}");
    }
}
