//! What calls about crawls are refused with, over REST and as tools.

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::SEED;
use super::house::{CRAWLS, House, missing, page, tree_site};
use crate::lab::Reply;
use crate::support::{Answer, Options, Post, Service, failure, in_one_minute, outcome, workspace};

/// The same call on both faces, by a key of its own each; gives back the status and the code of the refusal.
async fn refused(
    house: &House,
    (method, path): (Method, &str),
    tool: &str,
    input: &Value,
) -> (u16, String, Value) {
    let rest = house
        .service
        .bare(method.clone(), path)
        .bearer_auth(house.key());
    let rest = Service::send(if method == Method::POST {
        rest.json(input)
    } else {
        rest
    })
    .await;
    let called = Post::call(tool, input)
        .bearer(&house.key())
        .send(&house.service)
        .await;
    let (status, code) = rest.refusal();
    assert_eq!(
        outcome(&called),
        format!("200 isError {code} #7"),
        "{input}"
    );
    let [details, told] = [rest.json(), failure(&called.json()["result"]).1].map(|mut body| {
        body["data"]
            .as_object_mut()
            .and_then(|data| data.shift_remove("requestId"))
            .expect("a request id");
        body["data"].clone()
    });
    assert_eq!(told, details, "{input}");
    (status, code, details)
}

#[tokio::test]
async fn a_submission_that_does_not_fit_is_refused_by_its_field() {
    let house = House::start(tree_site).await;
    let fresh = || Uuid::now_v7().to_string();
    let mut cases = vec![
        (json!({ "requestId": fresh() }), json!({ "field": "url" })),
        (json!({ "url": SEED }), json!({ "field": "requestId" })),
        (
            json!({ "url": SEED, "requestId": "no-uuid" }),
            json!({ "field": "requestId" }),
        ),
        (
            json!({ "url": SEED, "requestId": fresh().replace('-', "") }),
            json!({ "field": "requestId" }),
        ),
        (
            json!({ "url": SEED, "requestId": fresh(), "limit": 0 }),
            json!({ "field": "limit", "min": 1 }),
        ),
        (
            json!({ "url": SEED, "requestId": fresh(), "limit": 21 }),
            json!({ "field": "limit", "max": 20 }),
        ),
        (
            json!({ "url": SEED, "requestId": fresh(), "limit": 1.5 }),
            json!({ "field": "limit" }),
        ),
        (
            json!({ "url": SEED, "requestId": fresh(), "maxDepth": 0 }),
            json!({ "field": "maxDepth", "min": 1 }),
        ),
        (
            json!({ "url": SEED, "requestId": fresh(), "maxDepth": 4 }),
            json!({ "field": "maxDepth", "max": 3 }),
        ),
        (
            json!({ "url": SEED, "requestId": fresh(), "webhook": "x" }),
            json!({ "field": "webhook" }),
        ),
        (
            json!({ "url": "", "requestId": fresh() }),
            json!({ "field": "url", "min": 1 }),
        ),
        (
            json!({ "url": format!("{SEED}{}", "a".repeat(2048)), "requestId": fresh() }),
            json!({ "field": "url", "max": 2048 }),
        ),
    ];
    for url in [
        "ftp://lab.test/",
        "lab.test",
        "http://me:word@lab.test/",
        "http://lab.test:8080/",
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://169.254.169.254/latest/",
    ] {
        cases.push((
            json!({ "url": url, "requestId": fresh() }),
            json!({ "field": "url" }),
        ));
    }
    for (input, details) in cases {
        // Each face is a caller of its own, so neither request id is taken.
        let found = refused(&house, (Method::POST, CRAWLS), "start_web_crawl", &input).await;
        assert_eq!(
            found,
            (400, "VALIDATION_ERROR".to_owned(), details),
            "{input}"
        );
    }
    assert_eq!(house.pages.visits().len(), 0);
}

#[tokio::test]
async fn a_request_id_starts_one_crawl_however_it_is_written_and_whatever_becomes_of_it() {
    let house = House::start(tree_site).await;
    let (key, id) = (house.key(), Uuid::now_v7().to_string());
    let answer = house
        .submit(&key, json!({ "url": SEED, "requestId": id, "limit": 1 }))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let again = json!({ "url": "http://lab.test/1", "requestId": id.to_uppercase() });
    assert_eq!(
        house.submit(&key, again.clone()).await.refusal(),
        (409, "DUPLICATE_REQUEST".to_owned())
    );
    assert_eq!(
        house.submit(&house.key(), again).await.status,
        200,
        "another credential has its own"
    );
    assert_eq!(house.pages.asked("/robots.txt").len(), 2);
    // Also that of a crawl which came to nothing.
    let key = house.key();
    let unresolved = json!({ "url": "http://nowhere.test/", "requestId": id });
    assert_eq!(
        house.submit(&key, unresolved).await.refusal(),
        (502, "UPSTREAM_BAD_RESPONSE".to_owned())
    );
    let again = house
        .submit(&key, json!({ "url": SEED, "requestId": id }))
        .await;
    assert_eq!(again.refusal(), (409, "DUPLICATE_REQUEST".to_owned()));
}

#[tokio::test]
async fn a_crawl_is_there_for_its_owner_alone_and_by_its_id_alone() {
    let house = House::start(tree_site).await;
    house.pages.hold("/");
    let key = house.key();
    let id = house
        .begin(
            &key,
            json!({ "url": SEED, "requestId": Uuid::now_v7().to_string() }),
        )
        .await;
    let never = Uuid::now_v7().to_string();
    for id in [&id, &never] {
        let path = format!("{CRAWLS}/{id}");
        let nobody = (404, "NOT_FOUND".to_owned(), json!({}));
        let input = json!({ "id": id });
        assert_eq!(
            refused(&house, (Method::GET, &path), "get_web_crawl", &input).await,
            nobody
        );
        assert_eq!(
            refused(&house, (Method::DELETE, &path), "cancel_web_crawl", &input).await,
            nobody
        );
    }
    let field = |name: &str| (400, "VALIDATION_ERROR".to_owned(), json!({ "field": name }));
    let path = format!("{CRAWLS}/1234");
    let input = json!({ "id": "1234" });
    assert_eq!(
        refused(&house, (Method::GET, &path), "get_web_crawl", &input).await,
        field("id")
    );
    assert_eq!(
        refused(&house, (Method::DELETE, &path), "cancel_web_crawl", &input).await,
        field("id")
    );
    for (query, offset, details) in [
        (
            "offset=-1",
            json!(-1),
            json!({ "field": "offset", "min": 0 }),
        ),
        ("offset=1.0", json!(1.0), json!({ "field": "offset" })),
        ("offset=x", json!("x"), json!({ "field": "offset" })),
    ] {
        let (path, input) = (
            format!("{CRAWLS}/{id}?{query}"),
            json!({ "id": id, "offset": offset }),
        );
        let found = refused(&house, (Method::GET, &path), "get_web_crawl", &input).await;
        assert_eq!(
            found,
            (400, "VALIDATION_ERROR".to_owned(), details),
            "{query}"
        );
    }
    let path = format!("{CRAWLS}/{id}?offset=0");
    let input = json!({ "id": id, "offset": 0 });
    assert_eq!(
        refused(&house, (Method::DELETE, &path), "cancel_web_crawl", &input).await,
        field("offset")
    );
    // One UUID may be written in two ways.
    assert_eq!(
        house.read(&key, &id.to_uppercase(), 0).await["id"],
        json!(id)
    );
}

#[tokio::test]
async fn an_id_that_is_none_is_told_in_words() {
    let house = House::start(tree_site).await;
    let message = |answer: &Answer| {
        answer.json()["error"]["message"]
            .as_str()
            .expect("a message")
            .to_owned()
    };
    let answer = house
        .submit(&house.key(), json!({ "url": SEED, "requestId": "no-uuid" }))
        .await;
    assert_eq!(
        message(&answer),
        "`requestId` must be a UUID, not the string \"no-uuid\""
    );
    for method in [Method::GET, Method::DELETE] {
        let call = house
            .service
            .bare(method.clone(), &format!("{CRAWLS}/1234"))
            .bearer_auth(house.key());
        let answer = Service::send(call).await;
        assert_eq!(
            message(&answer),
            "`id` must be a UUID, not the string \"1234\"",
            "{method}"
        );
    }
}

#[tokio::test]
async fn a_crawl_that_has_completed_cannot_be_cancelled() {
    let house = House::start(tree_site).await;
    let key = house.key();
    house.pages.hold("/");
    let id = house.begin(&key, json!({ "url": SEED, "limit": 1 })).await;
    house.pages.release("/");
    house.until_idle().await;
    for _ in 0..2 {
        assert_eq!(
            house.cancel(&key, &id).await.refusal(),
            (409, "CONFLICT".to_owned())
        );
    }
    assert_eq!(house.read(&key, &id, 0).await["status"], "completed");
}

#[tokio::test]
async fn a_credential_has_two_crawls_sixty_reads_and_twenty_cancellations_a_minute() {
    let house = House::start(|visit| match &*visit.path {
        "/" => page("home", &["/"]),
        _ => missing(),
    })
    .await;
    let path = format!("{CRAWLS}/{}", Uuid::now_v7());
    let (_, statuses) = in_one_minute(async || {
        let key = house.key();
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(house.submit(&key, json!({ "url": SEED })).await.status / 100);
        }
        for (method, times) in [(Method::GET, 61), (Method::DELETE, 21)] {
            for _ in 0..times {
                let call = house.service.bare(method.clone(), &path).bearer_auth(&key);
                statuses.push(Service::send(call).await.status);
            }
        }
        statuses
    })
    .await;
    assert_eq!(
        statuses,
        [
            vec![2, 2, 4],
            vec![404; 60],
            vec![429],
            vec![404; 20],
            vec![429]
        ]
        .concat()
    );
}

#[tokio::test]
async fn without_its_scope_or_its_right_nothing_of_a_crawl_can_be_had() {
    let house = House::start(|_| Reply::Close).await;
    let path = format!("{CRAWLS}/{}", Uuid::now_v7());
    let body = json!({ "url": SEED, "requestId": Uuid::now_v7().to_string() });
    let scrapes = house.service.issue(&["--scope", "web:scrape"]);
    for (key, wanted) in [
        (Some(&scrapes), (403, "FORBIDDEN")),
        (None, (401, "UNAUTHORIZED")),
    ] {
        for (method, path) in [
            (Method::POST, CRAWLS),
            (Method::GET, &path),
            (Method::DELETE, &path),
        ] {
            let mut call = house.service.bare(method.clone(), path);
            if method == Method::POST {
                call = call.json(&body);
            }
            if let Some(key) = key {
                call = call.bearer_auth(key);
            }
            assert_eq!(
                Service::send(call).await.refusal(),
                (wanted.0, wanted.1.to_owned()),
                "{method}"
            );
        }
    }
    let folder = TempDir::new().expect("a folder");
    let wasm = workspace().join("target/components/wasm32-wasip2/plugin/web_data.wasm");
    let entry = format!(
        "[[plugin]]\nname = \"web-data\"\nsource = {wasm:?}\ngrants = [\"http:GET public\", \"logging\"]\n"
    );
    let manifest = folder.path().join("plugin-manifest.toml");
    std::fs::write(&manifest, entry).expect("the manifest is written");
    let config = house.pages.configuration();
    let service = Service::start(Options {
        config,
        manifest: Some(manifest),
        ..Options::default()
    })
    .await;
    let house = House {
        service,
        pages: house.pages,
    };
    let none = (503, "SERVICE_UNAVAILABLE".to_owned(), json!({}));
    let input = json!({ "id": Uuid::now_v7().to_string() });
    assert_eq!(
        refused(&house, (Method::POST, CRAWLS), "start_web_crawl", &body).await,
        none
    );
    assert_eq!(
        refused(&house, (Method::GET, &path), "get_web_crawl", &input).await,
        none
    );
    assert_eq!(
        refused(&house, (Method::DELETE, &path), "cancel_web_crawl", &input).await,
        none
    );
}
