//! The query of a search: what a provider takes of it, and what is refused.

use serde_json::{Value, json};

use super::{ALL, House, Kind, SearchRequest, numbered};

#[tokio::test]
async fn a_query_is_cut_to_what_its_provider_takes_and_told_as_it_was_given() {
    let words: Vec<String> = (0..100).map(|number| format!("word{number}")).collect();
    let query = words.join(" ");
    let sixty = |kind: Kind| {
        let house = House::of(kind);
        house.finds("word0", &numbered(5));
        house
    };
    sixty(Kind::Searxng).found(json!({ "query": query })).await;
    let whole = format!("q={}&format=json&pageno=1", words.join("+"));
    assert_eq!(House::of(Kind::Searxng).asked("word0").body, whole);
    sixty(Kind::Brave).found(json!({ "query": query })).await;
    let line = House::of(Kind::Brave).asked("word0").line;
    assert!(
        line.starts_with(&format!(
            "GET /res/v1/web/search?q={}&count=10&",
            words[..50].join("+")
        )),
        "{line}"
    );
    sixty(Kind::Tavily).found(json!({ "query": query })).await;
    let sent: Value =
        serde_json::from_str(&House::of(Kind::Tavily).asked("word0").body).expect("JSON");
    let sent = sent["query"].as_str().expect("a query");
    assert!(
        query.starts_with(sent) && (390..=400).contains(&sent.len()) && !sent.ends_with(' '),
        "{sent}"
    );
}

#[tokio::test]
async fn a_long_query_beyond_ascii_is_asked_of_every_provider() {
    const WORD: &str = "港口燈火滅了哉";
    // Percent-encoded it has nine times as many bytes: more than an address may have.
    let query = format!("{}又", format!("{WORD} ").repeat(113));
    assert_eq!(query.chars().count(), 905);
    let encoded: String = form_urlencoded::byte_serialize(WORD.as_bytes()).collect();
    for kind in ALL {
        let house = House::of(kind);
        let holds = if kind == Kind::Tavily { WORD } else { &encoded };
        house.finds(holds, &numbered(5));
        // What is told is the query as it was sent.
        assert_eq!(
            house.found(json!({ "query": query })).await.len(),
            5,
            "{kind:?}"
        );
        let SearchRequest { line, body, .. } = house.asked(holds);
        // Cut between two words, where one ends within 400 characters and 50 words.
        let (sent, expected) = match kind {
            Kind::Searxng => (parameter(&body), query.clone()),
            Kind::Brave => (
                parameter(line.split_once('?').expect("a query").1),
                vec![WORD; 50].join(" "),
            ),
            Kind::Tavily => {
                let said: Value = serde_json::from_str(&body).expect("JSON");
                (
                    said["query"].as_str().expect("a text").to_owned(),
                    vec![WORD; 50].join(" "),
                )
            }
        };
        assert_eq!(sent, expected, "{kind:?}");
    }
}

/// The parameter `q` of a form or query.
fn parameter(form: &str) -> String {
    let mut pairs = form_urlencoded::parse(form.as_bytes());
    pairs
        .find(|(name, _)| name == "q")
        .expect("a query")
        .1
        .into_owned()
}

#[tokio::test]
async fn a_request_that_breaks_a_rule_is_told_its_field() {
    let house = House::of(Kind::Searxng);
    let cases = [
        (json!({}), "query", json!(null), json!(null)),
        (json!({ "query": " \n " }), "query", json!(null), json!(1)),
        (
            json!({ "query": "é".repeat(1001) }),
            "query",
            json!(1000),
            json!(null),
        ),
        (json!({ "query": 5 }), "query", json!(null), json!(null)),
        (
            json!({ "query": "a", "limit": 0 }),
            "limit",
            json!(null),
            json!(1),
        ),
        (
            json!({ "query": "a", "limit": 11 }),
            "limit",
            json!(10),
            json!(null),
        ),
        (
            json!({ "query": "a", "limit": "5" }),
            "limit",
            json!(null),
            json!(null),
        ),
        (
            json!({ "query": "a", "provider": "brave" }),
            "provider",
            json!(null),
            json!(null),
        ),
    ];
    for (input, field, max, min) in cases {
        let [answer, _] = house.both(&input).await;
        assert_eq!(
            answer.refusal(),
            (400, "VALIDATION_ERROR".to_owned()),
            "{input}"
        );
        let data = &answer.json()["data"];
        assert_eq!(
            (&data["field"], &data["max"], &data["min"]),
            (&json!(field), &max, &min),
            "{input}: {data}"
        );
    }
    // Space around it is not measured.
    let longest = "é".repeat(1000);
    house.finds("%C3%A9%C3%A9", &numbered(5));
    assert_eq!(
        house
            .found(json!({ "query": format!("  {longest}  ") }))
            .await
            .len(),
        5
    );
}
