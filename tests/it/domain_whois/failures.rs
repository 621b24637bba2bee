//! Every failure of a registry, over REST and MCP: what is told, and what is still told of what is kept.

use serde_json::{Value, json};

use super::registries::{Does, Registries};
use super::{DENIC, RDAP, laboratory, refused, registered, source, start, told};
use crate::support::Service;

const BAD: (u16, &str) = (502, "UPSTREAM_BAD_RESPONSE");
const LATE: (u16, &str) = (504, "UPSTREAM_TIMEOUT");

/// A domain that is not known fails so on both faces; one that is kept is told as stale.
async fn check(service: &Service, domain: &str, kept: &str, expected: (u16, &str), details: Value) {
    let unknown = json!({ "domain": domain });
    let known = json!({ "domain": kept, "forceRefresh": true });
    let tool = async {
        let result = service.tool(super::TOOL, &known).await;
        assert_eq!(
            result["structuredContent"]["data"]["meta"],
            json!({ "cached": true, "stale": true }),
            "{kept}"
        );
    };
    let ((), stale, ()) = tokio::join!(
        refused(service, unknown, (expected.0, expected.1, details)),
        source(service, known.clone()),
        tool
    );
    assert_eq!(stale, (true, true), "{kept}");
    // What is stale for one call is fresh for the next one that asks for nothing else.
    assert_eq!(
        source(service, json!({ "domain": kept })).await,
        (true, false),
        "{kept}"
    );
}

/// What an RDAP service can do wrong, and the details that are told.
fn rdap_failures() -> Vec<(Does, (u16, &'static str), Value)> {
    let throttled = Does::Answers("429 Slow Down\r\nretry-after: 77".to_owned(), Vec::new());
    let html = Does::Answers(
        "200 OK\r\ncontent-type: text/html".to_owned(),
        b"<html>registered</html>".to_vec(),
    );
    let absent =
        |head: &str, body: &str| Does::Answers(format!("404 Not Found{head}"), body.into());
    let bad = |does: Does| (does, BAD, json!({}));
    vec![
        bad(Does::Breaks),
        bad(Does::Floods),
        bad(absent(
            "\r\ncontent-type: text/html",
            "<html>no such page</html>",
        )),
        bad(absent(
            "\r\ncontent-type: application/json",
            r#"{"error":"no such route"}"#,
        )),
        bad(absent(
            "\r\ncontent-type: application/rdap+json",
            "<html>no such page</html>",
        )),
        bad(absent("", "")),
        bad(Does::rdap(200, "")),
        bad(html),
        bad(Does::rdap(200, "[]")),
        bad(Does::rdap(200, r#"{"objectClassName":"entity"}"#)),
        bad(Does::rdap(
            200,
            r#"{"objectClassName":"domain","ldhName":"another.lab"}"#,
        )),
        bad(Does::rdap(400, "{}")),
        bad(Does::rdap(403, "{}")),
        bad(Does::rdap(500, "{}")),
        (throttled, BAD, json!({ "retryAfter": 77 })),
        (Does::rdap(429, "{}"), BAD, json!({ "retryAfter": 30 })),
        bad(Does::redirects("https://rdap.lab.test/around")),
        bad(Does::redirects("https://127.0.0.1/domain/x")),
        bad(Does::redirects("https://localhost/domain/x")),
        bad(Does::redirects("https://169.254.169.254/latest/meta-data/")),
    ]
}

#[tokio::test]
async fn what_rdap_services_do_wrong_is_told_and_what_is_kept_stays() {
    let lab = laboratory(&[], &[], &["rdap.shut.test:443"]);
    let service = start(&lab).await;
    lab.when(RDAP, "/around", Does::redirects("/around"));
    for (number, (does, expected, details)) in rdap_failures().into_iter().enumerate() {
        let (domain, kept) = (format!("unknown{number}.lab"), format!("kept{number}.lab"));
        lab.when(RDAP, &format!("/domain/{kept}"), registered(&kept));
        assert_eq!(
            source(&service, json!({ "domain": kept })).await,
            (false, false)
        );
        for domain in [&domain, &kept] {
            lab.when(RDAP, &format!("/domain/{domain}"), does.clone());
        }
        check(&service, &domain, &kept, expected, details).await;
    }
    // Nobody listens, the service is not of the public network, and nobody answers for the top-level domain.
    for domain in [
        "example.shut",
        "example.inside",
        "example.nowhere",
        "example.vn",
    ] {
        refused(
            &service,
            json!({ "domain": domain }),
            (BAD.0, BAD.1, json!({})),
        )
        .await;
    }
}

/// What a port-43 server can do wrong.
fn line_failures() -> Vec<(Does, Value)> {
    vec![
        (Does::Breaks, json!({})),
        (Does::Floods, json!({})),
        (Does::says(""), json!({})),
        (Does::says("\n\n  \n"), json!({})),
        (
            Does::Says(vec![0, 159, 146, 150, 255, 254, 1, 2, 3]),
            json!({}),
        ),
        (
            Does::says("HTTP/1.1 400 Bad Request\n\n<html></html>\n"),
            json!({}),
        ),
        (
            Does::says("Domain: another.de\nStatus: connect\n"),
            json!({}),
        ),
        (
            Does::says("% Error: 55000000002 Connection refused; access control limit exceeded.\n"),
            json!({ "retryAfter": 30 }),
        ),
    ]
}

#[tokio::test]
async fn what_port_43_servers_do_wrong_is_told_and_what_is_kept_stays() {
    let lab = laboratory(&[], &[DENIC], &["whois.nic.at:43"]);
    let service = start(&lab).await;
    for (number, (does, details)) in line_failures().into_iter().enumerate() {
        let (domain, kept) = (format!("unknown{number}.de"), format!("kept{number}.de"));
        let good = format!("Domain: {kept}\nNserver: ns.example.net\nStatus: connect\n");
        lab.when(DENIC, &format!("-T dn,ace {kept}"), Does::says(&good));
        assert_eq!(
            source(&service, json!({ "domain": kept })).await,
            (false, false)
        );
        for domain in [&domain, &kept] {
            lab.when(DENIC, &format!("-T dn,ace {domain}"), does.clone());
        }
        check(&service, &domain, &kept, BAD, details).await;
    }
    refused(
        &service,
        json!({ "domain": "example.at" }),
        (BAD.0, BAD.1, json!({})),
    )
    .await;
}

#[tokio::test]
async fn a_registry_that_is_too_slow_is_a_missed_deadline() {
    let lab = laboratory(&[], &[DENIC], &[]);
    let service = start(&lab).await;
    lab.when(RDAP, "/domain/kept.lab", registered("kept.lab"));
    lab.when(
        DENIC,
        "-T dn,ace kept.de",
        Does::says("Domain: kept.de\nStatus: connect\n"),
    );
    for kept in ["kept.lab", "kept.de"] {
        assert_eq!(
            source(&service, json!({ "domain": kept })).await,
            (false, false)
        );
    }
    for domain in ["kept.lab", "unknown.lab"] {
        lab.when(RDAP, &format!("/domain/{domain}"), Does::Stalls);
    }
    for domain in ["kept.de", "unknown.de"] {
        lab.when(DENIC, &format!("-T dn,ace {domain}"), Does::Stalls);
    }
    let later = || json!({ "retryAfter": 5 });
    tokio::join!(
        check(&service, "unknown.lab", "kept.lab", LATE, later()),
        check(&service, "unknown.de", "kept.de", LATE, later()),
    );
}

#[tokio::test]
async fn port_43_answers_where_rdap_fails() {
    let lab = Registries::start(&[super::IANA, RDAP], &[DENIC], &[]);
    let services = json!({ "services": [[["de"], [format!("https://{RDAP}/")]]] });
    lab.when(
        super::IANA,
        super::LIST,
        Does::rdap(200, &services.to_string()),
    );
    let service = start(&lab).await;
    let page = Does::Answers(
        "404 Not Found\r\ncontent-type: text/html".to_owned(),
        b"<html></html>".to_vec(),
    );
    for (domain, does) in [
        ("example.de", Does::rdap(503, "")),
        ("slow.de", Does::Stalls),
        ("page.de", page),
    ] {
        lab.when(RDAP, &format!("/domain/{domain}"), does);
        let answer = format!("Domain: {domain}\nStatus: connect\n");
        lab.when(DENIC, &format!("-T dn,ace {domain}"), Does::says(&answer));
        assert_eq!(
            told(&service, json!({ "domain": domain })).await["registered"],
            true,
            "{domain}"
        );
    }
    // What RDAP says is not asked for twice: by its media type, or by its error object of any type.
    let object = Does::Answers(
        "404 Nothing".to_owned(),
        br#"{"errorCode":404,"title":"Not Found"}"#.to_vec(),
    );
    for (domain, does) in [("nobodys.de", Does::rdap(404, "")), ("plain.de", object)] {
        lab.when(RDAP, &format!("/domain/{domain}"), does);
        assert_eq!(
            told(&service, json!({ "domain": domain })).await["registered"],
            false,
            "{domain}"
        );
        assert_eq!(
            lab.asked(DENIC, &format!("-T dn,ace {domain}")),
            0,
            "{domain}"
        );
    }
}

#[tokio::test]
async fn a_referral_is_followed_once_and_never_inside() {
    let verisign = "whois.verisign-grs.com";
    let lab = laboratory(&[], &[verisign, "whois.loop.test"], &["whois.shut.test:43"]);
    let service = start(&lab).await;
    let referrals = [
        "whois.verisign-grs.com",
        "whois.loop.test",
        "whois.shut.test",
        "127.0.0.1",
        "localhost",
        "10.0.0.1",
        "[::1]",
        "169.254.169.254",
        "http://127.0.0.1/",
        "no host",
        "whois",
        "",
    ];
    for (number, referral) in referrals.into_iter().enumerate() {
        let domain = format!("thin{number}.com");
        let answer = format!(
            "Domain Name: {domain}\nRegistrar: Registrar Inc.\nRegistrar WHOIS Server: {referral}\n"
        );
        lab.when(verisign, &format!("domain {domain}"), Does::says(&answer));
        // The loop: each leads to the other.
        lab.when(
            "whois.loop.test",
            &domain,
            Does::says(&answer.replace(referral, verisign)),
        );
        let data = told(&service, json!({ "domain": domain })).await;
        assert_eq!(
            (&data["registrar"], &data["registered"]),
            (&json!("Registrar Inc."), &json!(true)),
            "{referral}"
        );
        assert_eq!(
            lab.asked(verisign, &format!("domain {domain}")),
            1,
            "{referral}"
        );
    }
    assert_eq!(lab.asked("whois.loop.test", "thin1.com"), 1);
    // Those that lead inside are asked for, and refused at the gate.
    let refused = |lines: &[Value]| -> Vec<String> {
        let queries = lines
            .iter()
            .filter(|line| line["target"] == "egress" && line["message"] == "line query");
        let refused = queries.filter(|line| line["verdict"] == "not_public");
        refused
            .filter_map(|line| line["host"].as_str().map(str::to_owned))
            .collect()
    };
    let lines = service.log_until(|lines| refused(lines).len() == 4);
    assert_eq!(
        refused(&lines),
        ["127.0.0.1", "10.0.0.1", "169.254.169.254", "127.0.0.1"]
    );
}
