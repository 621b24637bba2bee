//! What becomes of a crawl when its process is killed, its plugin replaced, or it is cancelled, and of many at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::house::{House, expected, line, tree_site};
use super::{CRAWLS, SEED, good};
use crate::lab::Pages;
use crate::support::{Answer, Service, built};

fn whole() -> Value {
    json!({ "url": SEED, "limit": 20, "maxDepth": 3 })
}

/// How often each page was asked for, but for robots.txt.
fn asked(pages: &Pages) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for path in pages
        .asked("/")
        .into_iter()
        .filter(|path| path != "/robots.txt")
    {
        *asked.entry(path).or_default() += 1;
    }
    asked
}

#[tokio::test]
async fn a_crawl_that_is_killed_halfway_goes_on_and_asks_for_no_page_again_that_it_had_shown() {
    let mut house = House::start(tree_site).await;
    let key = house.key();
    // One page is held with the one behind it, then one whose follower has come already.
    house.pages.hold("/2/2");
    let id = house.begin(&key, whole()).await;
    let mut deaths = Vec::new();
    for held in ["/2/2", "/1/2/1"] {
        house.pages.until_asked(held).await;
        let path = held.to_owned();
        let before = house.read(&key, &id, 0).await["completed"]
            .as_u64()
            .expect("a number");
        deaths.push((usize::try_from(before).expect("few"), asked(&house.pages)));
        house.service.kill();
        let (pages, data) = (house.pages.clone(), Arc::clone(&house.service.data));
        house.pages.hold("/1/2/1");
        house.pages.release(&path);
        drop(house);
        house = House::start_on(pages, "", Some(data)).await;
        assert!(house.read(&key, &id, 0).await["completed"].as_u64() >= Some(before));
    }
    house.pages.release("/1/2/1");
    house.until_idle().await;
    let shown: Vec<String> = house.documents(&key, &id).await.iter().map(line).collect();
    assert_eq!(shown, good(&expected(20, 3, &[])));
    let asked = asked(&house.pages);
    for (completed, before) in deaths {
        for shown in &expected(20, 3, &[])[..completed] {
            assert_eq!(
                asked.get(shown),
                before.get(shown),
                "{shown} was shown before a death: {asked:?}"
            );
        }
    }
    // Two are under way at a death, the one that was waited for among them.
    let again: Vec<(String, usize)> = asked.into_iter().filter(|(_, often)| *often > 1).collect();
    assert!(
        again.len() <= 4 && again.iter().all(|(_, often)| *often == 2),
        "{again:?}"
    );
    for held in ["/2/2", "/1/2/1"] {
        assert!(again.iter().any(|(path, _)| path == held), "{again:?}");
    }
}

#[tokio::test]
async fn a_crawl_outlives_the_revision_that_began_it() {
    let house = House::start(tree_site).await;
    let key = house.key();
    // The same by other bytes: a custom section of one byte, without content. It is compiled before a page is held,
    // because the crawl gives a page up after ten seconds.
    let other = [&built("web_data")[..], b"\0\x02\x01v"].concat();
    let staged = house.service.stage("web-data", other, "").await;
    assert_eq!(
        (&staged["revision"], &staged["state"]),
        (&json!(2), &json!("staged")),
        "{staged}"
    );
    house.pages.hold("/2/2");
    let id = house.begin(&key, whole()).await;
    house.pages.until_asked("/2/2").await;
    let path = "/admin/v1/plugins/web-data/revisions/2/activate";
    let answer = house
        .service
        .admin(Method::POST, path, Some(&json!({})))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        house.service.told("/admin/v1/plugins/web-data").await["revision"],
        2
    );
    // Another crawl is the new one's.
    let other = house
        .crawl(json!({ "url": "http://lab.test/4", "limit": 1 }))
        .await;
    assert_eq!(
        other.iter().map(line).collect::<Vec<_>>(),
        ["lab.test/4 200"]
    );
    house.pages.release("/2/2");
    house.until_idle().await;
    let shown: Vec<String> = house.documents(&key, &id).await.iter().map(line).collect();
    assert_eq!(shown, good(&expected(20, 3, &[])));
}

#[tokio::test]
async fn a_cancelled_crawl_ends_with_its_requests_and_what_it_showed_can_be_read() {
    let house = House::start(tree_site).await;
    let key = house.key();
    for held in ["/2", "/3"] {
        house.pages.hold(held);
    }
    let id = house.begin(&key, whole()).await;
    for held in ["/2", "/3"] {
        house.pages.until_asked(held).await;
    }
    assert_eq!(house.pages.most_at_once("lab.test"), 2);
    for _ in 0..2 {
        let answer = house.cancel(&key, &id).await;
        assert_eq!(
            (answer.status, &answer.json()["data"]),
            (200, &json!({ "id": id, "status": "cancelled" }))
        );
    }
    for held in ["/2", "/3"] {
        house.pages.until_gone(held).await;
        house.pages.release(held);
    }
    house.until_idle().await;
    let shown = house.read(&key, &id, 0).await;
    let lines: Vec<String> = shown["documents"]
        .as_array()
        .expect("documents")
        .iter()
        .map(line)
        .collect();
    assert_eq!(
        (&shown["status"], lines),
        (
            &json!("cancelled"),
            good(&["/".to_owned(), "/1".to_owned()])
        )
    );
    assert_eq!(
        house.pages.asked("/").len(),
        5,
        "two pages, two that were under way, and a robots.txt"
    );
    let done = house.crawl(json!({ "url": SEED, "limit": 1 })).await;
    assert_eq!(done.len(), 1);
}

/// For these two a crawl is not there: one can neither read nor cancel it, the other cannot read it.
async fn check_nobodys(house: &House, id: &str, one: &str, other: &str) {
    let path = format!("{CRAWLS}/{id}");
    for (method, key) in [
        (Method::GET, one),
        (Method::DELETE, one),
        (Method::GET, other),
    ] {
        let answer = Service::send(house.service.bare(method, &path).bearer_auth(key)).await;
        assert_eq!(answer.refusal(), (404, "NOT_FOUND".to_owned()));
    }
}

#[tokio::test]
async fn a_hundred_crawls_at_once_keep_within_their_shares_and_are_their_owners() {
    const LIMITS: &str = "[jobs]\nrunning = 6\nopen = 60\nowner_running = 2\nowner_open = 40\n";
    let house = House::start_on(Pages::serve(&["lab.test"], tree_site), LIMITS, None).await;
    house.pages.hold("/");
    let windows =
        ["start_crawl", "read_crawl", "cancel_crawl"].map(|name| format!("web-data.{name}=1000"));
    let raised: Vec<&str> = windows
        .iter()
        .flat_map(|window| ["--window", window])
        .collect();
    let mine = house
        .service
        .issue(&[&["--scope", "web:crawl"], &raised[..]].concat());
    let others: Vec<String> = (0..50).map(|_| house.key()).collect();
    let body = || json!({ "url": SEED, "limit": 3 });
    let id_of = |answer: &Answer| answer.json()["data"]["id"].as_str().map(str::to_owned);

    let answers = join_all((0..50).map(|_| house.submit(&mine, body()))).await;
    let taken: Vec<String> = answers.iter().filter_map(id_of).collect();
    assert_eq!(taken.len(), 40, "an owner has forty open crawls");
    for refused in answers.iter().filter(|answer| answer.status != 202) {
        assert_eq!(refused.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
        assert_eq!(refused.header("retry-after"), "10");
    }
    assert_eq!(house.counts().await, (38.0, 2.0), "and two places");
    let answers = join_all(others.iter().map(|key| house.submit(key, body()))).await;
    let theirs: Vec<(&String, String)> = others
        .iter()
        .zip(&answers)
        .filter_map(|(key, answer)| Some((key, id_of(answer)?)))
        .collect();
    assert_eq!(theirs.len(), 20, "sixty are open altogether");
    assert_eq!(house.counts().await, (54.0, 6.0), "and six run");
    house.pages.until_asked_often("/robots.txt", 6).await;
    assert_eq!(house.pages.visits().len(), 6);

    let mut running = Vec::new();
    for (at, (key, id)) in theirs.iter().enumerate() {
        let another = theirs[(at + 1) % theirs.len()].0;
        check_nobodys(&house, id, &mine, another).await;
        let shown = house.read(key, id, 0).await;
        assert_eq!(shown["documents"], json!([]));
        if shown["status"] == "running" {
            running.push((key, id));
        } else {
            assert_eq!(house.cancel(key, id).await.status, 200);
        }
    }
    // Those that wait are gone; the others go with their requests.
    assert_eq!((running.len(), house.counts().await), (4, (38.0, 6.0)));
    for (key, id) in running {
        assert_eq!(house.cancel(key, id).await.status, 200);
    }
    house.pages.until_gone_often("/robots.txt", 4).await;
    house.pages.release("/");
    house.until_idle().await;
    for id in &taken {
        let shown = house.read(&mine, id, 0).await;
        assert_eq!(
            (&shown["status"], &shown["completed"]),
            (&json!("completed"), &json!(3))
        );
    }
    for (key, id) in &theirs {
        assert_eq!(house.read(key, id, 0).await["status"], "cancelled");
    }
    assert_eq!(
        house.pages.asked("/robots.txt").len(),
        44,
        "what was cancelled while it waited asked for nothing"
    );
}
