//! The results of a search: documents of web pages, each once, as many as were asked for, and no text too long.

use serde_json::json;

use super::{ALL, House, Kind, document, numbered};
use crate::lab::Reply;

#[tokio::test]
async fn what_a_provider_finds_becomes_documents_of_web_pages_each_once() {
    let results = [
        json!({ "url": "https://a.example/one#top", "title": "One &amp; <b>only</b>", "text": "It&#x27;s <strong>here</strong>.<br>Now" }),
        json!({ "url": "https://a.example/one#part", "title": "Again", "text": "the same page" }),
        json!({ "url": "HTTPS://A.example:443/one", "title": "Once more", "text": "" }),
        json!({ "url": "ftp://a.example/file", "title": "A file", "text": "s" }),
        json!({ "url": "javascript:alert(1)", "title": "A script", "text": "s" }),
        json!({ "url": "/relative", "title": "A path", "text": "s" }),
        json!({ "title": "Nowhere", "text": "s" }),
        json!({ "url": 5, "title": "A number", "text": "s" }),
        json!({ "url": "http://b.example", "title": "  ", "text": null }),
        json!({ "url": "https://c.example/?a=b&c=%20d" }),
        json!({ "url": "https://d.example/", "title": ["no text"], "text": { "no": "text" } }),
        json!({ "url": "https://e.example/", "title": "Vec<T>", "text": "if a < b && c > d <script>alert(1)</script>" }),
    ];
    let expected = [
        document(
            "https://a.example/one",
            json!("One & only"),
            json!("It's here. Now"),
        ),
        document("http://b.example/", json!(null), json!(null)),
        document("https://c.example/?a=b&c=%20d", json!(null), json!(null)),
        document("https://d.example/", json!(null), json!(null)),
        document(
            "https://e.example/",
            json!("Vec<T>"),
            json!("if a < b && c > d"),
        ),
    ];
    for kind in ALL {
        let house = House::of(kind);
        house.finds("manifold", &results);
        assert_eq!(
            house.found(json!({ "query": "manifold" })).await,
            expected,
            "{kind:?}"
        );
        house.finds("nothingness", &[]);
        assert_eq!(
            house.found(json!({ "query": "nothingness" })).await,
            [json!(null); 0],
            "{kind:?}"
        );
    }
    let brave = House::of(Kind::Brave);
    brave.lab.answer(
        "webless",
        Reply::json(
            200,
            &json!({ "type": "search", "query": { "original": "webless" } }),
        ),
    );
    assert_eq!(
        brave.found(json!({ "query": "webless" })).await,
        [json!(null); 0]
    );
}

#[tokio::test]
async fn the_limit_is_exact() {
    for kind in ALL {
        let house = House::of(kind);
        house.finds("plenty", &[numbered(3), numbered(30)].concat());
        for (input, expected) in [
            (json!({ "query": "plenty" }), 5),
            (json!({ "query": "plenty", "limit": null }), 5),
            (json!({ "query": "plenty", "limit": 1 }), 1),
            (json!({ "query": "plenty", "limit": 10 }), 10),
        ] {
            let found = house.found(input).await;
            let urls: Vec<&str> = found
                .iter()
                .filter_map(|result| result["url"].as_str())
                .collect();
            let numbers = (1..=expected).map(|number| format!("https://a.example/{number}"));
            assert_eq!(urls, numbers.collect::<Vec<_>>(), "{kind:?}");
        }
    }
}

#[tokio::test]
async fn a_second_page_is_asked_for_where_the_first_is_short() {
    let house = House::of(Kind::Searxng);
    let second = |word: &str| format!("q={word}&format=json&pageno=2");
    house.finds("doubled", &numbered(4));
    house.finds(&second("doubled"), &numbered(9));
    assert_eq!(
        house
            .found(json!({ "query": "doubled", "limit": 8 }))
            .await
            .len(),
        8
    );
    assert_eq!(house.lab.asked(&second("doubled")).len(), 2);
    assert_eq!(house.lab.asked("q=doubled&format=json&pageno=3").len(), 0);
    assert_eq!(
        house
            .found(json!({ "query": "doubled", "limit": 10 }))
            .await
            .len(),
        9
    );
    // What the first has is not lost with the second.
    house.finds("halved", &numbered(2));
    house.lab.answer(&second("halved"), Reply::said(500, ""));
    assert_eq!(house.found(json!({ "query": "halved" })).await.len(), 2);
    // A page that is full, or empty, is the last.
    house.finds("singled", &numbered(5));
    assert_eq!(house.found(json!({ "query": "singled" })).await.len(), 5);
    house.finds("voided", &[]);
    assert_eq!(house.found(json!({ "query": "voided" })).await.len(), 0);
    assert_eq!(
        (
            house.lab.asked(&second("singled")).len(),
            house.lab.asked(&second("voided")).len()
        ),
        (0, 0)
    );
}

#[tokio::test]
async fn texts_are_cut_at_their_length_and_large_or_packed_answers_are_read() {
    for kind in ALL {
        let house = House::of(kind);
        let long = json!({ "url": "https://a.example/", "title": "t".repeat(15_000), "text": "word ".repeat(200_000) });
        house.finds("megabyte", &[long]);
        let found = &house.found(json!({ "query": "megabyte" })).await[0];
        let length = |name: &str| found[name].as_str().expect("a text").chars().count();
        assert_eq!(length("title"), 10_000, "{kind:?}");
        assert!(
            (9_900..=10_000).contains(&length("description")),
            "{kind:?}: {}",
            length("description")
        );
        assert_eq!(found["contentTruncated"], true, "{kind:?}");

        let packed = packed(kind.body(&numbered(7)).to_string().as_bytes());
        house.lab.answer(
            "packed",
            Reply::said(200, packed).header("content-encoding", "gzip"),
        );
        assert_eq!(
            house.found(json!({ "query": "packed" })).await.len(),
            5,
            "{kind:?}"
        );
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::read::GzEncoder::new(bytes, flate2::Compression::fast());
    let mut packed = Vec::new();
    std::io::Read::read_to_end(&mut encoder, &mut packed).expect("it is in memory");
    packed
}
