//! The server's own public name: no plugin calls it, so that no call makes calls of its own.

use serde_json::json;

use super::{configuration, dials, fetch, sites, start_as};
use crate::lab::public_row;
use crate::support::Options;

#[tokio::test]
async fn no_plugin_reaches_the_server_by_its_own_public_name() {
    let arguments = || vec!["--base-url".to_owned(), "http://own.lab.test".to_owned()];
    let service = start_as(Options {
        config: configuration(),
        arguments: arguments(),
        ..Options::default()
    })
    .await;
    for url in [
        "http://own.lab.test/v1/test/fetches",
        "http://OWN.lab.test:80/",
        "https://own.lab.test:80/",
    ] {
        let told = fetch(&service, json!({ "url": url })).await;
        let rule = "the host `own.lab.test` is this server itself";
        assert_eq!(
            (&told["outcome"], &told["told"]),
            (&json!("not_public"), &json!(rule)),
            "{url}"
        );
        let there = fetch(
            &service,
            json!({ "url": format!("http://site.test/redirect?{url}"), "redirects": 1 }),
        )
        .await;
        assert_eq!(there["outcome"], "redirect_denied", "{url}: {there}");
    }
    assert_eq!(dials(&service).await, 3.0);
    // Another port is another server, of which nobody knows here.
    assert_eq!(
        fetch(&service, json!({ "url": "https://own.lab.test/" })).await["outcome"],
        "unresolved"
    );

    // The operator may lead there all the same.
    let row = public_row("own.lab.test:80", sites());
    let config = configuration().replace("connect_to = {", &format!("connect_to = {{ {row},"));
    let service = start_as(Options {
        config,
        arguments: arguments(),
        ..Options::default()
    })
    .await;
    assert_eq!(
        fetch(&service, json!({ "url": "http://own.lab.test/" })).await["outcome"],
        "ok"
    );
}
