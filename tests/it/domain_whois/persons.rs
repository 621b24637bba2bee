//! Whoever could be a person is not told as an organisation, whichever place a registry has for it.

use serde_json::{Value, json};

use super::registries::Does;
use super::{DENIC, RDAP, laboratory, start, told};

const PERSONS: [&str; 8] = [
    "Ueda",
    "UEDA",
    "NGUYENVANA",
    "Smith, John & Mary",
    "John and Mary Smith",
    "Smith & Smith",
    "The John Smith Family Trust",
    "jsmith24",
];

/// Companies of one person or of a family, which their legal form tells from them.
const COMPANIES: [&str; 4] = [
    "Ueda Ltd.",
    "NGUYENVANA COMPANY LIMITED",
    "Smith, John & Mary LLC",
    "Smith Holdings",
];

/// A domain object with this holder, who is said to be an organisation.
fn registered(domain: &str, card: &Value) -> Does {
    let holder = json!({ "roles": ["registrant"], "vcardArray": ["vcard", card] });
    let body = json!({ "objectClassName": "domain", "ldhName": domain, "status": ["active"], "entities": [holder] });
    Does::rdap(200, &body.to_string())
}

/// What is answered about a domain.
type About = Box<dyn Fn(&str) -> Does>;

/// Answers about a domain of this holder, by each of the places that a name has: RDAP and port 43.
fn answers(name: &str) -> Vec<(&'static str, About)> {
    let name = name.to_owned();
    let card = |rows: Value| move |domain: &str| registered(domain, &rows);
    let lines = |holder: String| {
        move |domain: &str| {
            Does::says(&format!(
                "Domain: {domain}\nNserver: ns.example.net\nStatus: connect\n\n{holder}\n"
            ))
        }
    };
    let kind = json!(["kind", {}, "text", "org"]);
    vec![
        ("lab", Box::new(card(json!([["org", {}, "text", name]])))),
        (
            "lab",
            Box::new(card(json!([kind, ["fn", {}, "text", name]]))),
        ),
        (
            "de",
            Box::new(lines(format!("Registrant Organization: {name}"))),
        ),
        (
            "de",
            Box::new(lines(format!("Holder:\nType: ORG\nOrganization: {name}"))),
        ),
        (
            "de",
            Box::new(lines(format!(
                "Organization:\n    {name}\n    1 Example Street"
            ))),
        ),
        (
            "de",
            Box::new(lines(format!("Company Name:\n{name}\n1 Example Street"))),
        ),
        ("de", Box::new(lines(format!("[Organization]   {name}")))),
    ]
}

#[tokio::test]
async fn who_could_be_a_person_is_not_told_as_an_organization() {
    let lab = laboratory(&[], &[DENIC], &[]);
    let service = start(&lab).await;
    let mut number = 0;
    for (names, is_told) in [(&PERSONS[..], false), (&COMPANIES[..], true)] {
        for name in names {
            for (place, (top, does)) in answers(name).into_iter().enumerate() {
                number += 1;
                let domain = format!("number{number}.{top}");
                lab.when(RDAP, &format!("/domain/{domain}"), does(&domain));
                lab.when(DENIC, &format!("-T dn,ace {domain}"), does(&domain));
                let data = told(&service, json!({ "domain": domain })).await;
                assert_eq!(data["registered"], true, "{name} {place}");
                let expected = if is_told { json!(name) } else { Value::Null };
                assert_eq!(data["organization"], expected, "{name} at place {place}");
            }
        }
    }
}
