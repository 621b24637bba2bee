//! What a search never gives away, and what its provider is never asked for: keys, and requests that callers choose.

use serde_json::{Value, json};

use super::provider::{BRAVE, SEARXNG, SearchRequest, TAVILY};
use super::{ALL, House, Kind, TAVILY_TOKEN, numbered};
use crate::lab::Reply;
use crate::support::LAB_TOKEN;

const SCRAPE: &str = "/api/v1/web/scrape";
const MAP: &str = "/api/v1/web/map";
const CRAWLS: &str = "/api/v1/web/crawls";

/// What would give a key away: each in a part of its own.
const PARTS: [&str; 3] = ["lab/token", "lab%2Ftoken", "tvly-lab"];

#[tokio::test]
async fn no_answer_and_no_line_of_the_log_holds_a_key() {
    for kind in [Kind::Brave, Kind::Tavily] {
        let house = House::start(kind, &kind.settings("")).await;
        let echo = format!("{LAB_TOKEN} and {TAVILY_TOKEN}");
        let url = format!("https://a.example/?key={LAB_TOKEN}");
        house.finds(
            "leaks0",
            &[json!({ "url": url, "title": echo, "text": echo })],
        );
        for (number, status) in [401, 403, 422, 429, 432, 500].into_iter().enumerate() {
            let said =
                json!({ "error": { "code": echo, "detail": echo }, "detail": { "error": echo } });
            let reply = Reply::said(status, said.to_string()).header("x-echo", &echo);
            house.lab.answer(&format!("leaks{}", number + 1), reply);
        }
        house.lab.answer("leaks7", Reply::said(200, echo.clone()));
        house.lab.answer(
            "leaks8",
            Reply::said(302, "").header("location", format!("https://{BRAVE}/?{echo}")),
        );
        for number in 0..9 {
            let input = json!({ "query": format!("leaks{number}") });
            for text in house.both(&input).await.map(|answer| format!("{answer:?}")) {
                for part in PARTS {
                    assert!(!text.contains(part), "{kind:?} {number}: {text}");
                }
            }
        }
        assert_eq!(house.lab.asked("leaks").len(), 18, "{kind:?}");
        for line in house.service.stop() {
            for part in PARTS.into_iter().chain(["leaks"]) {
                assert!(!line.contains(part), "{kind:?}: {line}");
            }
        }
    }
}

/// The hosts of which none answers but to a search.
fn answering(kind: Kind) -> Vec<&'static str> {
    let mut hosts = vec![BRAVE, TAVILY];
    hosts.extend((kind == Kind::Searxng).then_some(SEARXNG));
    hosts
}

#[tokio::test]
async fn no_page_is_read_where_the_provider_answers() {
    for kind in ALL {
        let house = House::of(kind);
        house.finds("scraped", &numbered(1));
        let hosts = answering(kind);
        for host in hosts {
            for start in [
                format!("https://{host}"),
                format!("HTTP://{host}"),
                format!("https://{host}."),
            ] {
                let url = format!("{start}/res/v1/web/search?q=scraped");
                let answer = house.service.post(SCRAPE, &json!({ "url": url })).await;
                assert_eq!(
                    answer.refusal(),
                    (400, "VALIDATION_ERROR".to_owned()),
                    "{kind:?} {url}"
                );
                assert_eq!(answer.json()["data"]["field"], "url", "{url}");
                let mapped = house.service.post(MAP, &json!({ "url": url })).await;
                assert_eq!(
                    mapped.refusal(),
                    (400, "VALIDATION_ERROR".to_owned()),
                    "{kind:?} {url}"
                );
            }
            // Nor by a way around: a page leads there, and what comes is nobody's.
            let away = format!("https://{host}/res/v1/web/search?q=around");
            house
                .lab
                .answer("/leads", Reply::said(302, "").header("location", &away));
            let around = json!({ "url": "http://pages.lab.test/leads" });
            let refusal = house.service.post(SCRAPE, &around).await.refusal();
            assert_eq!(
                refusal,
                (502, "UPSTREAM_BAD_RESPONSE".to_owned()),
                "{kind:?} {host}"
            );
            house.lab.answer("/refreshes", refreshing(host));
            let on = json!({ "url": "http://pages.lab.test/refreshes" });
            let refusal = house.service.post(SCRAPE, &on).await.refusal();
            assert_eq!(
                refusal,
                (502, "UPSTREAM_BAD_RESPONSE".to_owned()),
                "{kind:?} {host}"
            );
        }
        assert_eq!(house.lab.asked("scraped").len(), 0, "{kind:?}");
        for asked in house.lab.asked("around") {
            let headers = SearchRequest::of(&asked).headers;
            let has_key = headers
                .iter()
                .any(|line| line.contains("token") || line.contains("authorization"));
            assert!(!has_key, "{asked:?}");
        }
    }
}

#[tokio::test]
async fn no_crawl_begins_or_ends_where_the_provider_answers() {
    for kind in ALL {
        let house = House::of(kind);
        house.finds("crawled", &numbered(1));
        // A crawl may be started twice a minute.
        let host = *answering(kind).last().expect("a host");
        let there = format!("https://{host}/res/v1/web/search?q=crawled");
        let crawl = json!({ "url": there, "requestId": "0b6bd8f2-3f0e-4d0c-9a2e-0d8a5d2f7c11" });
        let refusal = house.service.post(CRAWLS, &crawl).await.refusal();
        assert_eq!(
            refusal,
            (400, "VALIDATION_ERROR".to_owned()),
            "{kind:?} {host}"
        );
        house
            .lab
            .answer("/away", Reply::said(302, "").header("location", &there));
        let crawl = json!({
            "url": "http://pages.lab.test/away", "requestId": "0b6bd8f2-3f0e-4d0c-9a2e-0d8a5d2f7c12",
        });
        let refusal = house.service.post(CRAWLS, &crawl).await.refusal();
        assert_eq!(
            refusal,
            (502, "UPSTREAM_BAD_RESPONSE".to_owned()),
            "{kind:?} {host}"
        );
        assert_eq!(house.lab.asked("crawled").len(), 0, "{kind:?}");
    }
}

/// A page that sends its reader on.
fn refreshing(host: &str) -> Reply {
    let page = format!(
        "<meta http-equiv=refresh content='0; url=https://{host}/res/v1/web/search?q=scraped'><p>Wait"
    );
    Reply::body(200, "text/html", page)
}

#[tokio::test]
async fn content_comes_where_the_operator_asks_for_it() {
    for content in ["markdown", "text"] {
        let house = House::start(
            Kind::Tavily,
            &Kind::Tavily.settings(&format!(", content = \"{content}\"")),
        )
        .await;
        let mut body = Kind::Tavily.body(&numbered(3));
        body["results"][0]["raw_content"] = json!("# A page\n\nwith *words* & <b>");
        body["results"][1]["raw_content"] = json!("word\n".repeat(60_000));
        house.lab.answer("contented", Reply::json(200, &body));
        let found = house.found(json!({ "query": "contented" })).await;
        let told = |number: usize| {
            (
                &found[number]["contentFormat"],
                &found[number]["contentTruncated"],
            )
        };
        assert_eq!(found[0]["content"], "# A page\n\nwith *words* & <b>");
        assert_eq!(told(0), (&json!(content), &json!(false)));
        assert_eq!(told(1), (&json!(content), &json!(true)));
        let length = found[1]["content"]
            .as_str()
            .expect("content")
            .chars()
            .count();
        assert!((190_000..=200_000).contains(&length), "{length}");
        assert_eq!(
            (&found[2]["content"], told(2)),
            (&json!(null), (&json!(null), &json!(false)))
        );
        let asked: Value = serde_json::from_str(&house.asked("contented").body).expect("JSON");
        assert_eq!(
            (&asked["include_raw_content"], &asked["max_results"]),
            (&json!(content), &json!(5)),
            "{asked}"
        );
        // All of it together has a bound too.
        let mut body = Kind::Tavily.body(&numbered(10));
        for result in body["results"].as_array_mut().expect("results") {
            result["raw_content"] = json!("word\n".repeat(38_000));
        }
        house.lab.answer("crammed", Reply::json(200, &body));
        let found = house
            .found(json!({ "query": "crammed", "limit": 10 }))
            .await;
        let lengths: Vec<usize> = found
            .iter()
            .map(|found| found["content"].as_str().map_or(0, str::len))
            .collect();
        assert_eq!(lengths[..5], [189_999; 5]);
        assert!(
            (90_000..=98_581).contains(&lengths[5]) && lengths[6..] == [0; 4],
            "{lengths:?}"
        );
        let cut: Vec<bool> = found
            .iter()
            .filter_map(|found| found["contentTruncated"].as_bool())
            .collect();
        assert_eq!(cut, [vec![false; 5], vec![true; 5]].concat());
    }
}
