//! Twenty submissions of one credential at once: what takes a request id, and what begins a crawl.

use futures::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use super::SEED;
use super::house::{House, tree_site};
use crate::lab::Pages;
use crate::support::Answer;

const AT_ONCE: usize = 20;

/// A key that may submit them all within a minute.
fn key(house: &House) -> String {
    house.service.issue(&[
        "--scope",
        "web:crawl",
        "--window",
        "web-data.start_crawl=1000",
    ])
}

fn count(answers: &[Answer], status: u16) -> usize {
    answers
        .iter()
        .filter(|answer| answer.status == status)
        .count()
}

async fn all_at_once(house: &House, key: &str, bodies: Vec<Value>) -> Vec<Answer> {
    join_all(bodies.into_iter().map(|body| house.submit(key, body))).await
}

#[tokio::test]
async fn one_request_id_begins_one_crawl() {
    let house = House::start(tree_site).await;
    let (key, id) = (key(&house), Uuid::now_v7().to_string());
    let paths = (0..AT_ONCE).map(|number| format!("{SEED}{}", number % 4 + 1));
    let bodies = paths
        .map(|url| json!({ "url": url, "requestId": id, "limit": 1 }))
        .collect();
    let answers = all_at_once(&house, &key, bodies).await;
    assert_eq!(
        (count(&answers, 200), count(&answers, 409)),
        (1, AT_ONCE - 1),
        "{answers:?}"
    );
    house.until_idle().await;
    // One robots.txt and one page.
    assert_eq!(house.pages.visits().len(), 2);
}

#[tokio::test]
async fn each_request_id_begins_a_crawl_and_is_free_where_there_was_no_room() {
    const LIMITS: &str = "[jobs]\nrunning = 4\nopen = 8\nowner_running = 2\nowner_open = 6\n";
    let house = House::start_on(Pages::serve(&["lab.test"], tree_site), LIMITS, None).await;
    let key = key(&house);
    house.pages.hold("/");
    let ids: Vec<String> = (0..AT_ONCE).map(|_| Uuid::now_v7().to_string()).collect();
    let body = |id: &String| json!({ "url": SEED, "requestId": id, "limit": 1 });
    let answers = all_at_once(&house, &key, ids.iter().map(body).collect()).await;
    let (taken, refused) = (count(&answers, 202), count(&answers, 503));
    assert!(
        taken > 0 && refused > 0 && taken + refused == AT_ONCE,
        "{answers:?}"
    );
    let (waiting, running) = house.counts().await;
    assert_eq!(
        waiting + running,
        f64::from(u32::try_from(taken).expect("a few"))
    );
    house.pages.release("/");
    house.until_idle().await;
    for (id, answer) in ids.iter().zip(&answers) {
        let again = house.submit(&key, body(id)).await;
        assert_eq!(
            again.status,
            if answer.status == 202 { 409 } else { 200 },
            "{answer:?}: {again:?}"
        );
    }
    assert_eq!(house.pages.asked("/robots.txt").len(), AT_ONCE);
}

#[tokio::test]
async fn a_request_id_is_taken_by_what_ran_and_by_nothing_else() {
    let house = House::start(tree_site).await;
    let (key, id) = (key(&house), Uuid::now_v7().to_string());
    let bodies = |urls: [&str; 2]| {
        (0..AT_ONCE)
            .map(|number| json!({ "url": urls[number % 2], "requestId": id, "limit": 1 }))
            .collect::<Vec<_>>()
    };
    let answers = all_at_once(
        &house,
        &key,
        bodies(["http://127.0.0.1/", "http://lab.test:8080/"]),
    )
    .await;
    assert_eq!(count(&answers, 400), AT_ONCE, "{answers:?}");
    // One that cannot be reached has run.
    let answers = all_at_once(
        &house,
        &key,
        bodies(["http://127.0.0.1/", "http://nowhere.test/"]),
    )
    .await;
    let of = [400, 502, 409].map(|status| count(&answers, status));
    assert_eq!(of, [AT_ONCE / 2, 1, AT_ONCE / 2 - 1], "{answers:?}");
    let again = house
        .submit(&key, json!({ "url": SEED, "requestId": id }))
        .await;
    assert_eq!(again.refusal(), (409, "DUPLICATE_REQUEST".to_owned()));
    assert_eq!(
        (house.counts().await, house.pages.visits().len()),
        ((0.0, 0.0), 0)
    );
}
