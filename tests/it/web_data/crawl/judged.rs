//! First pages that no crawl is submitted for: a refusal by 400 takes no request id and begins nothing.

use serde_json::json;
use uuid::Uuid;

use super::SEED;
use super::house::{House, tree_site};
use crate::egress::private_names;
use crate::lab::Pages;

#[tokio::test]
async fn a_refusal_by_400_takes_no_request_id_and_begins_nothing() {
    let names = format!("dns_servers = [\"{}\"]\n", private_names());
    let house = House::start_on(Pages::serve(&["lab.test"], tree_site), &names, None).await;
    let key = house.service.issue(&[
        "--scope",
        "web:crawl",
        "--window",
        "web-data.start_crawl=1000",
    ]);
    let long = format!("{SEED}{}", "語".repeat(2048 - SEED.len() + 1));
    let urls = [
        "ftp://lab.test/",
        "lab.test",
        "http://me:word@lab.test/",
        "http://lab.test:8080/",
        "http://lab..test/",
        "http://lab.test../",
        "http://10.0.0.1/",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
        "http://１２７.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fd00::1]/",
        "http://169.254.169.254/latest/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://printer.local/",
        "http://intranet/",
        "http://loopback.rebound.test/",
        "http://private.rebound.test/",
        "http://mixed.rebound.test/",
        "http://six.rebound.test/",
        "https://mapped.rebound.test/",
        "https://api.search.brave.com/",
        &long,
    ];
    for url in urls {
        let id = Uuid::now_v7().to_string();
        let refused = house
            .submit(&key, json!({ "url": url, "requestId": id }))
            .await;
        assert_eq!(
            refused.refusal(),
            (400, "VALIDATION_ERROR".to_owned()),
            "{url}"
        );
        assert_eq!(refused.json()["data"]["field"], "url", "{url}");
        let said = refused.json()["error"]["message"]
            .as_str()
            .expect("a message")
            .to_owned();
        assert!(
            !said.contains("word") && !said.contains("10.1.2.3") && !said.contains("192.168."),
            "{url}: {said}"
        );
        let taken = house
            .submit(&key, json!({ "url": SEED, "requestId": id, "limit": 1 }))
            .await;
        assert_eq!(taken.status, 200, "{url}: {taken:?}");
    }
    // Nothing was asked for but by the crawls that were taken.
    assert_eq!(house.pages.visits().len(), 2 * urls.len());
}
