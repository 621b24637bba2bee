//! Redirects: each hop is judged anew, and what goes along with it depends on where it leads.

use serde_json::json;

use super::{dials, fetch, start};

#[tokio::test]
async fn each_hop_of_a_redirect_is_judged_as_if_it_had_been_asked_for() {
    let service = start().await;
    let follow = async |url: &str| fetch(&service, json!({ "url": url, "redirects": 5 })).await;
    let unfollowed = fetch(&service, json!({ "url": "http://site.test/redirect?/x" })).await;
    assert_eq!(
        (&unfollowed["status"], &unfollowed["headers"]),
        (&json!(302), &json!("location: /x"))
    );

    let arrived = follow("http://site.test/redirect?http://other.test/redirect%3F/final").await;
    assert_eq!(
        (&arrived["outcome"], &arrived["text"]),
        (&json!("ok"), &json!("hello"))
    );
    assert_eq!(arrived["url"], "http://other.test/final");
    assert_eq!(follow("http://site.test/created?/x").await["status"], 201);

    let refused = [
        ("http://127.0.0.1/", "not_public"),
        ("//[::1]/", "not_public"),
        ("http://2130706433/", "not_public"),
        ("http://localhost:80/", "not_public"),
        ("http://loopback.rebound.test/", "not_public"),
        ("http://site.test:8080/", "not_acceptable"),
        ("http://me:word@other.test/", "not_acceptable"),
        ("file:///etc/passwd", "not_acceptable"),
        ("http://api.fetches.test:8080/other/", "not_granted"),
    ];
    for (location, expected) in refused {
        let before = dials(&service).await;
        for url in [
            format!("http://site.test/redirect?{location}"),
            format!("http://site.test/redirect?/redirect%3F{location}"),
        ] {
            let told = follow(&url).await;
            assert_eq!(told["outcome"], "redirect_denied", "{url}: {told}");
            assert!(
                told["told"]
                    .as_str()
                    .is_some_and(|told| told.starts_with(expected)),
                "{url}: {told}"
            );
        }
        assert_eq!(
            dials(&service).await,
            before + 3.0,
            "{location}: the hops before it, and not itself"
        );
    }
}

#[tokio::test]
async fn what_goes_along_with_a_redirect_depends_on_where_it_leads() {
    let service = start().await;
    let post = async |path: &str| {
        let headers =
            "Authorization: Bearer word\nCookie: a=b\nX-Own: yes\nContent-Type: text/plain";
        let url = format!("http://site.test{path}");
        let input = json!({ "url": url, "method": "POST", "headers": headers, "body": "some text", "redirects": 2 });
        fetch(&service, input).await["text"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    let same = post("/temporary?/echo").await;
    assert!(
        same.starts_with("POST /echo ")
            && same.contains("Bearer word")
            && same.ends_with("some text"),
        "{same}"
    );
    let other = post("/temporary?http://other.test/echo").await;
    assert!(
        other.starts_with("POST /echo ") && other.contains("x-own: yes"),
        "{other}"
    );
    assert!(
        !other.contains("Bearer") && !other.contains("cookie"),
        "{other}"
    );
    for path in ["/see-other?/echo", "/redirect?/echo"] {
        let seen = post(path).await;
        assert!(
            seen.starts_with("GET /echo ") && !seen.contains("some text"),
            "{seen}"
        );
        assert!(
            seen.contains("x-own: yes") && !seen.contains("content-type"),
            "{seen}"
        );
    }
}
