//! A bound secret that a server says again in another form, or in part, is kept from the plugin all the same.

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{configuration, dials, fetch, start};
use crate::support::{LAB_TOKEN, Options, Service, build, built};

const FORMS: [&str; 8] = [
    "plain", "word", "base64", "hex", "percent", "html", "markup", "json",
];

async fn said(service: &Service, url: &str, form: &str) -> String {
    let told = fetch(service, json!({ "url": format!("{url}?{form}") })).await;
    assert_eq!(told["outcome"], "ok", "{form}: {told}");
    told["text"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn a_secret_is_taken_out_in_every_form_that_programs_write() {
    let service = start().await;
    for form in FORMS {
        let text = said(
            &service,
            "http://api.fetches.test:8080/granted/encoded",
            form,
        )
        .await;
        assert!(text.contains("[secret]"), "{form}: {text}");
        // Of base64 what stands beside it is left, which is the rest of the head.
        assert!(form == "base64" || text == "[secret]", "{form}: {text}");
        assert!(!text.contains(LAB_TOKEN), "{form}: {text}");
    }
}

#[tokio::test]
async fn what_stands_behind_the_scheme_of_a_secret_is_one_too() {
    build();
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("it is written");
    };
    write("fetches.wasm", &built("fetches"));
    let secret =
        "{ env = \"LAB_BEARER\", header = \"authorization\", for = \"http://site.test/bound/\" }";
    let grants = [
        "http:GET,POST public",
        "http:GET http://api.fetches.test:8080/granted/",
    ];
    let entry = format!(
        "[[plugin]]\nname = \"fetches\"\nsource = \"fetches.wasm\"\ngrants = {grants:?}\n\
         secrets = [{secret}]\n"
    );
    write("manifest.toml", entry.as_bytes());
    let options = Options {
        config: configuration(),
        manifest: Some(folder.path().join("manifest.toml")),
        data: Some(Arc::clone(&folder)),
        environment: vec![("LAB_BEARER", "Bearer lab-bearer&0123456789".to_owned())],
        ..Options::default()
    };
    let service = Service::start(options).await;
    for form in FORMS {
        let text = said(&service, "http://site.test/bound/encoded", form).await;
        assert!(
            text.contains("[secret]") && !text.contains("lab-bearer"),
            "{form}: {text}"
        );
        assert!(form == "base64" || text == "[secret]", "{form}: {text}");
    }
}

#[tokio::test]
async fn no_part_of_an_answer_is_asked_for_beside_a_bound_secret() {
    let service = start().await;
    let range = |url: &str, redirects: u32| json!({ "url": url, "headers": "Range: bytes=5-9", "redirects": redirects });
    let told = async |input: Value| {
        let told = fetch(&service, input).await;
        (
            told["outcome"].as_str().unwrap_or("").to_owned(),
            told["told"].as_str().unwrap_or("").to_owned(),
        )
    };
    let refused = "the request sets `range`, which is refused where the operator binds a secret";
    for url in [
        "http://site.test/bound/echo",
        "http://api.fetches.test:8080/granted/echo",
    ] {
        assert_eq!(
            told(range(url, 0)).await,
            ("invalid_request".to_owned(), refused.to_owned()),
            "{url}"
        );
    }
    assert_eq!(dials(&service).await, 0.0);
    let (outcome, later) = told(range("http://site.test/redirect?/bound/echo", 1)).await;
    assert_eq!(outcome, "redirect_denied");
    assert!(
        later.ends_with("has a secret bound to it, so it cannot be requested with `range`"),
        "{later}"
    );
    // Where no secret goes along a part is as good as the whole.
    assert_eq!(told(range("http://site.test/echo", 0)).await.0, "ok");
    assert_eq!(
        told(range(
            "http://site.test/bound/redirect?http://other.test/echo",
            0
        ))
        .await
        .0,
        "invalid_request"
    );
}
