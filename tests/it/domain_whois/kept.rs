//! What is kept: an answer for its whole domain, and the list of the services that are asked.

use serde_json::json;

use super::registries::{Does, Registries};
use super::{IANA, LIST, RDAP, laboratory, registered, source, start, told};
use crate::support::{Options, Service, build, built};

#[tokio::test]
async fn an_answer_is_kept_for_the_whole_domain_and_asked_anew_on_demand() {
    let lab = laboratory(&[], &[], &[]);
    let service = start(&lab).await;
    lab.when(RDAP, "/domain/kept.lab", registered("kept.lab"));
    lab.when(RDAP, "/domain/nobodys.lab", Does::rdap(404, "{}"));
    for domain in ["kept.lab", "nobodys.lab"] {
        let question = format!("/domain/{domain}");
        assert_eq!(
            source(&service, json!({ "domain": domain })).await,
            (false, false),
            "{domain}"
        );
        assert_eq!(
            source(&service, json!({ "domain": domain })).await,
            (true, false),
            "{domain}"
        );
        let below = told(
            &service,
            json!({ "domain": format!("https://a.b.{domain}/"), "forceRefresh": false }),
        )
        .await;
        assert_eq!(
            (&below["meta"]["cached"], &below["domain"]),
            (&json!(true), &json!(domain))
        );
        assert_eq!(below["query_domain"], format!("a.b.{domain}"));
        assert_eq!(lab.asked(RDAP, &question), 1, "{domain}");
        assert_eq!(
            source(&service, json!({ "domain": domain, "forceRefresh": true })).await,
            (false, false),
            "{domain}"
        );
        assert_eq!(lab.asked(RDAP, &question), 2, "{domain}");
    }
    // What is asked anew is what is kept from then on.
    lab.when(RDAP, "/domain/nobodys.lab", registered("nobodys.lab"));
    assert_eq!(
        told(&service, json!({ "domain": "nobodys.lab" })).await["registered"],
        false
    );
    assert_eq!(
        told(
            &service,
            json!({ "domain": "nobodys.lab", "forceRefresh": true })
        )
        .await["registered"],
        true
    );
    assert_eq!(
        told(&service, json!({ "domain": "nobodys.lab" })).await["registered"],
        true
    );
    assert_eq!(lab.asked(IANA, LIST), 1, "the list of services is kept too");
}

#[tokio::test]
async fn the_list_of_services_is_fetched_or_else_the_one_that_was_built_in() {
    for list in [
        Does::Stalls,
        Does::rdap(500, ""),
        Does::rdap(200, "{\"services\":[[7]]}"),
        Does::rdap(200, "<html>"),
        Does::Floods,
        Does::Breaks,
    ] {
        let lab = Registries::start(&[IANA, "rdap.publicinterestregistry.org"], &[], &[]);
        let service = start(&lab).await;
        lab.when(IANA, LIST, list.clone());
        lab.when(
            "rdap.publicinterestregistry.org",
            "/rdap/domain/example.org",
            registered("example.org"),
        );
        assert_eq!(
            told(&service, json!({ "domain": "example.org" })).await["registered"],
            true,
            "{list:?}"
        );
        assert_eq!(
            told(
                &service,
                json!({ "domain": "example.org", "forceRefresh": true })
            )
            .await["registered"],
            true
        );
        assert_eq!(
            lab.asked(IANA, LIST),
            1,
            "what failed is not tried at once again: {list:?}"
        );
    }
}

#[tokio::test]
async fn the_list_of_services_is_not_fetched_where_it_cannot_be_kept() {
    for cache in ["", ", \"cache:16KiB\""] {
        let lab = Registries::start(&[IANA, "rdap.publicinterestregistry.org"], &[], &[]);
        lab.when(
            "rdap.publicinterestregistry.org",
            "/rdap/domain/example.org",
            registered("example.org"),
        );
        build();
        std::fs::write(lab.folder().join("whois.wasm"), built("domain_whois"))
            .expect("it is written");
        let manifest = lab.folder().join("plugin-manifest.toml");
        let grants =
            format!("grants = [\"config\", \"http:GET public\", \"line-query:*:43\"{cache}]");
        let entry =
            format!("[[plugin]]\nname = \"domain-whois\"\nsource = \"whois.wasm\"\n{grants}\n");
        std::fs::write(&manifest, entry).expect("it is written");
        let options = Options {
            config: lab.configuration(),
            manifest: Some(manifest),
            ..Options::default()
        };
        let service = Service::start(options).await;
        for _ in 0..2 {
            let input = json!({ "domain": "example.org", "forceRefresh": true });
            assert_eq!(told(&service, input).await["registered"], true, "{cache}");
        }
        assert_eq!(
            lab.asked(IANA, LIST),
            0,
            "the one that the plugin was built with has to do: {cache}"
        );
        assert_eq!(
            lab.asked(
                "rdap.publicinterestregistry.org",
                "/rdap/domain/example.org"
            ),
            2,
            "{cache}"
        );
    }
}
