//! Which databases are asked, and what is credited of them.

use reqwest::Method;
use serde_json::{Value, json};

use super::databases::{self, BUILT, Databases};
use super::{ask, city, serve, told};
use crate::support::{Options, Service, build, built};

#[tokio::test]
async fn a_file_that_is_several_databases_is_credited_once() {
    let all = databases::country();
    let databases = Databases::new().with("city", "CC0", &[("all.mmdb", &all)]);
    let databases = databases.with("asn", "CC0", &[("all.mmdb", &all)]).with(
        "country",
        "CC0",
        &[("all.mmdb", &all)],
    );
    let service = serve(databases.config()).await;
    let credited = json!([{ "name": "country ipvAll", "license": "CC0", "builtAt": BUILT }]);
    for ip in ["1.1.1.1", "203.1.1.1"] {
        assert_eq!(told(&service, ip).await["sources"], credited, "{ip}");
    }
}

#[tokio::test]
async fn a_database_that_is_not_granted_any_more_is_not_asked() {
    let databases = Databases::new()
        .with("city", "own", &[("city.mmdb", &city("First"))])
        .with("asn", "own", &[("asn.mmdb", &databases::asn())]);
    build();
    let manifest = databases.put("plugin-manifest.toml", b"");
    databases.put("ip.wasm", &built("ip_info"));
    let grant = |names: &[&str]| {
        let atoms: Vec<String> = names
            .iter()
            .map(|name| format!("\"ip-database:{name}\""))
            .collect();
        let entry = format!(
            "[[plugin]]\nname = \"ip-info\"\nsource = \"ip.wasm\"\ngrants = [{}]\n",
            atoms.join(", ")
        );
        std::fs::write(&manifest, entry).expect("it is written");
    };
    grant(&["anonymous", "asn", "city", "country"]);
    let options = Options {
        config: databases.config(),
        manifest: Some(manifest.clone()),
        ..Options::default()
    };
    let service = Service::start(options).await;
    let follow = async || {
        let answer = service
            .admin(Method::POST, "/admin/v1/manifest/follow", None)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    assert_eq!(told(&service, "8.8.8.8").await["location"]["city"], "First");
    grant(&["anonymous", "asn", "country"]);
    follow().await;
    let data = told(&service, "8.8.8.8").await;
    assert_eq!(
        (&data["location"]["city"], &data["network"]["asn"]),
        (&Value::Null, &json!(15169))
    );
    assert_eq!(data["sources"].as_array().map(Vec::len), Some(1));
    grant(&[]);
    follow().await;
    let answer = ask(&service, "8.8.8.8").await;
    assert_eq!(answer.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    assert!(
        answer.json()["error"]["message"]
            .as_str()
            .is_some_and(|told| told.contains("is not allowed to read"))
    );
}
