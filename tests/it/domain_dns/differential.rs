//! The plugin before a real validating resolver: what it publishes is what kdig and dig read in the same answers.

use serde_json::{Value, json};

use super::{LOOKUP, TYPES, items, query};
use crate::lab;
use crate::lab::dns::{Lab, Record, Told, configuration};
use crate::support::{Options, Service};

/// Names of the lab's zones: each type, and what is awkward about it.
const NAMES: [&str; 24] = [
    "example.test",
    "alias.example.test",
    "chain.example.test",
    "outside.example.test",
    "dangling.example.test",
    "c.empty.example.test",
    "any.wild.example.test",
    "nothing.example.test",
    "nullmx.example.test",
    "quoted.example.test",
    "utf8.example.test",
    "binary.example.test",
    "empty.example.test",
    "many.example.test",
    "big.example.test",
    "_sip._tcp.example.test",
    "_443._tcp.example.test",
    "_8443._https.example.test",
    "svc.example.test",
    "naptr.example.test",
    "sub.example.test",
    "keys.example.test",
    "10.2.0.192.in-addr.arpa",
    "plain.test",
];

async fn start(lab: &Lab) -> Service {
    let config = configuration(&[("cloudflare", &lab.endpoint)]);
    Service::start(Options {
        config,
        ..Options::default()
    })
    .await
}

async fn lookup(service: &Service, domain: &str) -> Value {
    let answer = service.post(LOOKUP, &json!({ "domain": domain })).await;
    assert_eq!(answer.status, 200, "{domain}: {answer:?}");
    answer.json()["data"].clone()
}

/// Owner, type and data of a section's records, in an order of their own: a resolver turns records round.
fn ours(query: &Value, section: &str) -> Vec<[String; 3]> {
    let text = |record: &Value, name: &str| record[name].as_str().expect("text").to_owned();
    let records = items(&query["records"])
        .iter()
        .filter(|record| record["section"] == section);
    let form = |record: &Value| {
        let type_name = text(record, "typeName");
        let data = one_form(&type_name, &text(record, "data"));
        [text(record, "name") + ".", type_name, data]
    };
    let mut records: Vec<[String; 3]> = records.map(form).collect();
    records.sort();
    records
}

fn theirs(records: &[Record]) -> Vec<[String; 3]> {
    let form = |Record {
                    name,
                    record_type,
                    data,
                    ..
                }: &Record| {
        [
            name.clone(),
            record_type.clone(),
            one_form(record_type, data),
        ]
    };
    let mut records: Vec<[String; 3]> = records.iter().map(form).collect();
    records.sort();
    records
}

/// What the tools write each in its way: spaces in long digits, the case of hexadecimal ones, and quotes around parameters.
fn one_form(type_name: &str, data: &str) -> String {
    let words = || {
        data.splitn(4, ' ')
            .map(|word| word.replace(' ', ""))
            .collect::<Vec<_>>()
            .join(" ")
    };
    match type_name {
        "DS" | "TLSA" => words().to_ascii_lowercase(),
        "DNSKEY" => words(),
        "HTTPS" | "SVCB" => data.trim_end().replace('"', ""),
        // kdig ends some with a space.
        _ => data.trim_end().to_owned(),
    }
}

#[tokio::test]
async fn what_is_published_is_what_kdig_and_dig_read() {
    let lab = lab::dns::start();
    let service = start(lab).await;
    let mut seen = Vec::new();
    for name in NAMES {
        let data = lookup(&service, name).await;
        for (type_name, _) in TYPES {
            let published = query(&data, type_name);
            for (tool, told) in [
                ("kdig", lab.kdig(name, type_name)),
                ("dig", lab.dig(name, type_name)),
            ] {
                let Told {
                    status,
                    ad,
                    answer,
                    authority,
                } = told;
                let about = format!("{name} {type_name} by {tool}");
                assert_eq!(published["status"]["name"], status.as_str(), "{about}");
                assert_eq!(published["flags"]["ad"], ad, "{about}");
                assert_eq!(ours(published, "answer"), theirs(&answer), "{about}");
                assert_eq!(ours(published, "authority"), theirs(&authority), "{about}");
                assert_eq!(published["counts"]["answer"], answer.len(), "{about}");
                assert_eq!(published["counts"]["authority"], authority.len(), "{about}");
            }
            seen.extend(
                ours(published, "answer")
                    .into_iter()
                    .map(|[_, type_name, _]| type_name),
            );
        }
    }
    for (type_name, _) in TYPES {
        assert!(
            seen.iter().any(|seen| seen == type_name),
            "no name has {type_name}"
        );
    }
}

#[tokio::test]
async fn what_a_real_resolver_says_of_a_name_is_summed_up() {
    let service = start(lab::dns::start()).await;
    let expected = [
        ("example.test", "NOERROR", "ok", true),
        ("c.empty.example.test", "NOERROR", "no_records", true),
        ("nothing.example.test", "NXDOMAIN", "nxdomain", false),
        ("dangling.example.test", "NOERROR", "ok", true),
        ("loop.example.test", "NOERROR", "partial", true),
        // Whether it is signed stands in the zone above, which is believed.
        ("bogus.test", "NOERROR", "partial", true),
        ("www.refused.test", "REFUSED", "refused", true),
        ("đặng.example.test", "NOERROR", "ok", true),
    ];
    for (name, status, message, exists) in expected {
        let message = format!("dns.summary.{message}");
        let summary = json!({ "status": status, "message": message, "domainExists": exists });
        assert_eq!(
            lookup(&service, name).await["statusSummary"],
            summary,
            "{name}"
        );
    }
    let failures = [
        ("www.silent.test", (504, "UPSTREAM_TIMEOUT")),
        ("www.dropped.test", (502, "UPSTREAM_BAD_RESPONSE")),
    ];
    for (name, (status, code)) in failures {
        let answer = service.post(LOOKUP, &json!({ "domain": name })).await;
        assert_eq!(answer.refusal(), (status, code.to_owned()), "{name}");
    }
}
