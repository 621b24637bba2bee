//! Registrars: what they add to what the registry tells, and what of that is of a person.

use serde_json::{Value, json};

use super::registries::Does;
use super::{RDAP, laboratory, start, told};

#[tokio::test]
async fn a_registrar_completes_what_the_registry_tells() {
    let lab = laboratory(
        &["rdap.registrar.test"],
        &["whois.verisign-grs.com", "whois.registrar.test"],
        &[],
    );
    let service = start(&lab).await;
    let thin = "   Domain Name: THIN.COM\n   Registrar WHOIS Server: whois.registrar.test\n\
                \x20  Registrar: Registrar Inc.\n   Creation Date: 2001-02-03T04:05:06Z\n";
    lab.when(
        "whois.verisign-grs.com",
        "domain thin.com",
        Does::says(thin),
    );
    let thick = "Domain Name: thin.com\nRegistrant Organization: Example Holdings Ltd\n\
                 Creation Date: 1999-01-01T00:00:00Z\nRegistrar: Another Name\n\
                 Registrant Name: Jane Roe\nRegistrant Email: jane@example.com\n";
    lab.when("whois.registrar.test", "thin.com", Does::says(thick));
    let data = told(&service, json!({ "domain": "thin.com" })).await;
    assert_eq!(
        (&data["organization"], &data["registrar"]),
        (&json!("Example Holdings Ltd"), &json!("Registrar Inc."))
    );
    assert_eq!(
        data["creation_date"], "2001-02-03T04:05:06Z",
        "the registry's word stands"
    );
    assert!(!data.to_string().to_lowercase().contains("jane"), "{data}");

    let href = "https://rdap.registrar.test/domain/THIN.LAB";
    let related = json!({ "rel": "related", "type": "application/rdap+json", "href": href });
    let body = json!({ "objectClassName": "domain", "ldhName": "thin.lab", "status": ["active"], "links": [related] });
    lab.when(RDAP, "/domain/thin.lab", Does::rdap(200, &body.to_string()));
    let thick = |organization: &str| {
        let card = json!([
            ["fn", {}, "text", "Jane Roe"],
            ["org", {}, "text", organization]
        ]);
        let holder = json!({ "roles": ["registrant"], "vcardArray": ["vcard", card] });
        let body =
            json!({ "objectClassName": "domain", "ldhName": "thin.lab", "entities": [holder] });
        lab.when(
            "rdap.registrar.test",
            "/domain/THIN.LAB",
            Does::rdap(200, &body.to_string()),
        );
    };
    thick("Example Holdings Ltd");
    let data = told(&service, json!({ "domain": "thin.lab" })).await;
    assert_eq!(
        (&data["organization"], &data["status"]),
        (&json!("Example Holdings Ltd"), &json!(["ok"]))
    );
    assert!(!data.to_string().to_lowercase().contains("jane"), "{data}");

    // A registrar that puts a person where the organisation stands.
    thick("Roe");
    let said =
        "Domain Name: thin.com\nRegistrant Organization: Jane Roe\nRegistrant Name: Jane Roe\n";
    lab.when("whois.registrar.test", "thin.com", Does::says(said));
    for domain in ["thin.com", "thin.lab"] {
        let data = told(&service, json!({ "domain": domain, "forceRefresh": true })).await;
        assert_eq!(
            (&data["organization"], &data["meta"]["stale"]),
            (&Value::Null, &json!(false)),
            "{domain}"
        );
        assert!(!data.to_string().to_lowercase().contains("roe"), "{data}");
    }
}
