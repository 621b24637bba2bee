//! Domain WHOIS before registries of a lab: what is told, what is kept, and what becomes of every failure.

mod corpus;
mod failures;
mod kept;
mod persons;
mod registrars;
mod registries;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Answer, Options, Post, Service, failure, outcome, workspace};
use corpus::cases;
use registries::{Does, Registries};

const WHOIS: &str = "/api/v1/domain/whois";
const TOOL: &str = "lookup_domain_whois";

/// Where IANA says which RDAP services there are.
const IANA: &str = "data.iana.org";
const LIST: &str = "/rdap/dns.json";

/// An RDAP service of the lab, for domains below `lab`, which no port-43 server answers for.
const RDAP: &str = "rdap.lab.test";
const DENIC: &str = "whois.denic.de";

/// A service before a lab.
async fn start(lab: &Registries) -> Service {
    let (config, manifest) = (
        lab.configuration(),
        Some(workspace().join("plugin-manifest.toml")),
    );
    Service::start(Options {
        config,
        manifest,
        ..Options::default()
    })
    .await
}

/// A lab in which IANA lists the services of the lab alone, so that other domains are asked for on port 43.
fn laboratory(rdap: &[&str], lines: &[&str], closed: &[&str]) -> Registries {
    let lab = Registries::start(&[&[IANA, RDAP], rdap].concat(), lines, closed);
    let services = json!([
        [["lab"], [format!("https://{RDAP}/")]],
        [["shut"], ["https://rdap.shut.test/"]],
        [["inside"], ["https://127.0.0.1/"]],
    ]);
    lab.when(
        IANA,
        LIST,
        Does::rdap(
            200,
            &json!({ "version": "1.0", "services": services }).to_string(),
        ),
    );
    lab
}

/// The configuration in which the examples of the operation's documents are answered.
pub(crate) fn examples() -> String {
    let lab = laboratory(&[], &[DENIC], &[]);
    lab.when(
        DENIC,
        "-T dn,ace example.de",
        Does::says("Domain: example.de\nNserver: ns.example.net\nStatus: connect\n"),
    );
    let configuration = lab.configuration();
    // Its folder must outlive the services.
    std::mem::forget(lab);
    configuration
}

/// An RDAP answer for a domain.
fn registered(domain: &str) -> Does {
    let body = json!({
        "objectClassName": "domain", "ldhName": domain, "status": ["active"],
        "events": [{ "eventAction": "registration", "eventDate": "2001-02-03T04:05:06Z" }],
    });
    Does::rdap(200, &body.to_string())
}

async fn ask(service: &Service, input: &Value) -> Answer {
    service.post(WHOIS, input).await
}

/// The `data` of a success.
async fn told(service: &Service, input: Value) -> Value {
    let answer = ask(service, &input).await;
    assert_eq!(
        answer.status,
        200,
        "{input}: {}",
        String::from_utf8_lossy(&answer.bytes)
    );
    answer.json()["data"].clone()
}

/// Where the data of a success comes from: cached, stale.
async fn source(service: &Service, input: Value) -> (bool, bool) {
    let meta = told(service, input).await["meta"].clone();
    (meta["cached"] == true, meta["stale"] == true)
}

/// Both faces refuse with this status, code and these members of `data` beside the request's id.
async fn refused(service: &Service, input: Value, expected: (u16, &str, Value)) {
    let (status, code, details) = expected;
    let rest = ask(service, &input).await;
    assert_eq!(
        rest.status,
        status,
        "{input}: {}",
        String::from_utf8_lossy(&rest.bytes)
    );
    let retry_after = rest
        .headers
        .get("retry-after")
        .and_then(|seconds| seconds.to_str().ok())
        .map(str::to_owned);
    assert_eq!(
        retry_after,
        details.get("retryAfter").map(Value::to_string),
        "{input}"
    );
    let called = Post::call(TOOL, &input)
        .bearer(service.key())
        .send(service)
        .await;
    assert_eq!(
        outcome(&called),
        format!("200 isError {code} #7"),
        "{input}"
    );
    for mut body in [rest.json(), failure(&called.json()["result"]).1] {
        body["data"]
            .as_object_mut()
            .expect("an object")
            .remove("requestId")
            .expect("an id");
        assert_eq!(
            (&body["error"]["code"], &body["data"]),
            (&json!(code), &details),
            "{input}: {body}"
        );
    }
}

/// What a case of a corpus expects, in the whole answer.
fn whole(case: &corpus::Case) -> Value {
    let mut data = json!({ "domain": case.domain, "query_domain": case.domain, "meta": { "cached": false, "stale": false } });
    let expected = case.expected.clone().expect("it is told");
    data.as_object_mut()
        .expect("an object")
        .extend(expected.as_object().expect("an object").clone());
    data
}

#[tokio::test]
async fn what_port_43_servers_answer_is_told() {
    let cases = cases("port43");
    let hosts: BTreeSet<&str> = cases.iter().map(|case| case.server.as_str()).collect();
    let lab = laboratory(
        &[],
        &hosts.into_iter().collect::<Vec<_>>(),
        &["rdap.eins.example:443"],
    );
    let service = start(&lab).await;
    for case in cases.iter().filter(|case| case.kind != "throttled") {
        lab.when(&case.server, &case.question(), case.does());
        assert_eq!(
            told(&service, json!({ "domain": case.domain })).await,
            whole(case),
            "{}",
            case.server
        );
        assert_eq!(
            lab.asked(&case.server, &case.question()),
            1,
            "{}",
            case.domain
        );
    }
    for case in cases.iter().filter(|case| case.kind == "throttled") {
        lab.when(&case.server, &case.question(), case.does());
        still_told(&service, case).await;
    }
}

/// What is known of a registered domain is told as stale while its registry refuses.
async fn still_told(service: &Service, case: &corpus::Case) {
    let anew = told(
        service,
        json!({ "domain": case.domain, "forceRefresh": true }),
    )
    .await;
    assert_eq!(
        anew["meta"],
        json!({ "cached": true, "stale": true }),
        "{}",
        case.domain
    );
    assert_eq!(anew["registered"], true, "{}", case.domain);
}

#[tokio::test]
async fn what_rdap_services_answer_is_told() {
    let cases = cases("rdap");
    let place = |url: &str| -> (String, String) {
        let (host, path) = url
            .strip_prefix("https://")
            .and_then(|rest| rest.split_once('/'))
            .expect("a URL");
        (host.to_owned(), format!("/{path}domain/"))
    };
    let hosts: BTreeSet<String> = cases.iter().map(|case| place(&case.server).0).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    // IANA cannot be reached, so the list that the plugin was built with is used.
    let closed = ["data.iana.org", "rdap.eins.example"].map(|host| format!("{host}:443"));
    let lines: BTreeSet<String> = corpus::cases("port43")
        .into_iter()
        .map(|case| format!("{}:43", case.server))
        .collect();
    let closed: Vec<&str> = closed.iter().chain(&lines).map(String::as_str).collect();
    let lab = Registries::start(&hosts, &[], &closed);
    let service = start(&lab).await;
    let question = |case: &corpus::Case| {
        let (host, path) = place(&case.server);
        // One registry may have a service for each of its domains.
        let path = if case.domain.ends_with(".net") {
            "/net/v1/domain/"
        } else {
            &path
        };
        (host, format!("{path}{}", case.domain))
    };
    for case in cases.iter().filter(|case| case.kind != "throttled") {
        let (host, question) = question(case);
        lab.when(&host, &question, case.does());
        assert_eq!(
            told(&service, json!({ "domain": case.domain })).await,
            whole(case),
            "{}",
            case.server
        );
        assert_eq!(lab.asked(&host, &question), 1, "{}", case.domain);
    }
    for case in cases.iter().filter(|case| case.kind == "throttled") {
        let (host, question) = question(case);
        lab.when(&host, &question, case.does());
        still_told(&service, case).await;
        assert_eq!(lab.asked(&host, &question), 2, "{}", case.domain);
    }
}

#[tokio::test]
async fn both_faces_tell_the_same_in_one_form() {
    let lab = laboratory(&[], &[DENIC], &[]);
    let service = start(&lab).await;
    lab.when(
        RDAP,
        "/domain/xn--bcher-kva.lab",
        registered("XN--BCHER-KVA.LAB"),
    );
    let input = json!({ "domain": " https://WWW.Bücher.lab:8443/shop?q#top " });
    let data = told(&service, input.clone()).await;
    let expected = json!({
        "domain": "xn--bcher-kva.lab",
        "query_domain": "www.xn--bcher-kva.lab",
        "registered": true,
        "creation_date": "2001-02-03T04:05:06Z",
        "status": ["ok"],
        "meta": { "cached": false, "stale": false },
    });
    assert_eq!(data, expected);
    let called = service.tool(TOOL, &input).await;
    let mut kept = expected;
    kept["meta"]["cached"] = json!(true);
    assert_eq!(
        called["structuredContent"],
        json!({ "success": true, "data": kept })
    );
    let answer = ask(&service, &json!({ "domain": "bücher.lab" })).await;
    assert_eq!(answer.header("cache-control"), "private, no-store");
}

#[tokio::test]
async fn what_is_no_domain_is_told_as_the_field_domain() {
    let lab = laboratory(&[], &[], &[]);
    let service = start(&lab).await;
    let field = || (400, "VALIDATION_ERROR", json!({ "field": "domain" }));
    let wrong = [
        "1.2.3.4",
        "http://1.2.3.4/",
        "[::1]",
        "http://[2001:db8::1]:80/",
        "http://0x7f000001/",
        "１.２.３.４",
        "https://1。2。3。4/",
        "2130706433",
        "localhost",
        "com",
        "co.uk",
        "https://co.uk/",
        "公司.cn",
        "a..lab",
        "-a.lab",
        "a_b.lab",
        "a b.lab",
        "me@example.lab",
        "ftp://example.lab/",
        "example.lab/path",
        "  ",
        "https://",
        "mailto:me@example.lab",
    ];
    for domain in wrong {
        refused(&service, json!({ "domain": domain }), field()).await;
    }
    for input in [json!({}), json!({ "domain": null }), json!({ "domain": 5 })] {
        refused(&service, input, field()).await;
    }
    let long = json!({ "field": "domain", "max": 2048 });
    refused(
        &service,
        json!({ "domain": "a".repeat(2049) }),
        (400, "VALIDATION_ERROR", long),
    )
    .await;
    let short = json!({ "field": "domain", "min": 1 });
    refused(
        &service,
        json!({ "domain": "" }),
        (400, "VALIDATION_ERROR", short),
    )
    .await;
    let unknown = json!({ "domain": "example.lab", "force": true });
    refused(
        &service,
        unknown,
        (400, "VALIDATION_ERROR", json!({ "field": "force" })),
    )
    .await;
    let word = json!({ "domain": "example.lab", "forceRefresh": "yes" });
    refused(
        &service,
        word,
        (400, "VALIDATION_ERROR", json!({ "field": "forceRefresh" })),
    )
    .await;
    assert_eq!(
        lab.asked(IANA, LIST),
        0,
        "nobody is asked for what is no domain"
    );
}
