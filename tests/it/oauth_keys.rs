//! The issuer's keys: how they are found, when they are fetched, and what happens while they are not to be had.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Answer, Document, Issuer, KEYS, METADATA, Options, Post, Service, Signer, encode, outcome,
};

const BANKS: &str = "/api/v1/tools/bank-qr/banks";
const OPENID: &str = "/.well-known/openid-configuration";

async fn serve(issuer: &Issuer, lines: &str) -> Service {
    let config = issuer.config(&format!("per_minute = 1000000\n{lines}"));
    Service::start(Options {
        config,
        ..Options::default()
    })
    .await
}

async fn get(service: &Service, token: &str) -> Answer {
    Service::send(service.bare(Method::GET, BANKS).bearer_auth(token)).await
}

async fn status(service: &Service, token: &str) -> u16 {
    get(service, token).await.status
}

/// Checks that keys are not to be had, which is no fault of the credential.
async fn check_unavailable(service: &Service, token: &str, what: &str) {
    let answer = get(service, token).await;
    assert_eq!(answer.status, 503, "{what}");
    assert_eq!(
        answer.refusal(),
        (503, "SERVICE_UNAVAILABLE".to_owned()),
        "{what}"
    );
    assert!(
        answer
            .header("retry-after")
            .parse::<u64>()
            .is_ok_and(|seconds| (1..=60).contains(&seconds)),
        "{what}"
    );
    assert!(
        answer.headers.get("www-authenticate").is_none(),
        "{what}: {answer:?}"
    );
}

#[tokio::test]
async fn keys_are_fetched_once_and_when_a_token_comes() {
    let [rsa, p256] = Signer::shared();
    let issuer = Issuer::start(&[rsa, p256]).await;
    let service = serve(&issuer, "").await;
    let claims = issuer.claims(&service.base_url);
    assert_eq!(service.get(BANKS).await.status, 200);
    assert_eq!(
        issuer.heads().len(),
        0,
        "an API key needs no keys of the issuer's"
    );
    let tokens = [rsa.token(&claims), p256.token(&claims), rsa.token(&claims)];
    let calls = join_all((0..30).map(|call| status(&service, &tokens[call % 3]))).await;
    assert_eq!(calls, [200; 30]);
    assert_eq!(
        (
            issuer.asked(METADATA),
            issuer.asked(KEYS),
            issuer.heads().len()
        ),
        (1, 1, 2)
    );
    for head in issuer.heads() {
        let head = head.to_ascii_lowercase();
        assert!(head.contains("\r\naccept: application/json\r\n"), "{head}");
        for name in [
            "authorization",
            "cookie",
            "referer",
            "accept-encoding",
            "x-request-id",
            "traceparent",
        ] {
            assert!(!head.contains(&format!("\r\n{name}:")), "{name} in {head}");
        }
    }
    let lines = service.log_until(|lines| {
        lines
            .iter()
            .any(|line| line["message"] == "the issuer's keys were fetched")
    });
    let audited: Vec<&Value> = lines
        .iter()
        .filter(|line| line["message"] == "a document was fetched")
        .collect();
    let told: Vec<(&Value, &Value, &Value)> = audited
        .iter()
        .map(|line| (&line["purpose"], &line["origin"], &line["path"]))
        .collect();
    let (purpose, origin) = (json!("identity-provider"), json!(issuer.url));
    assert_eq!(
        told,
        [
            (&purpose, &origin, &json!(METADATA)),
            (&purpose, &origin, &json!(KEYS))
        ]
    );
}

#[tokio::test]
async fn a_new_key_is_fetched_once_and_one_that_is_gone_verifies_no_more() {
    let [old, new] = Signer::shared();
    let issuer = Issuer::start(&[old]).await;
    let service = serve(&issuer, "").await;
    let claims = issuer.claims(&service.base_url);
    let (before, after) = (old.token(&claims), new.token(&claims));
    assert_eq!(
        (status(&service, &before).await, issuer.asked(KEYS)),
        (200, 1)
    );
    issuer.publish(&[new]);
    assert_eq!(
        (status(&service, &before).await, issuer.asked(KEYS)),
        (200, 1),
        "known keys are not asked for again"
    );
    let calls = join_all((0..40).map(|_| status(&service, &after))).await;
    assert_eq!((calls, issuer.asked(KEYS)), (vec![200; 40], 2));
    assert_eq!(issuer.asked(METADATA), 1);
    // It was verified before, with a key that the issuer has since withdrawn.
    assert_eq!(status(&service, &before).await, 401);
    let post = Post::call("list_bank_qr_banks", &json!({})).bearer(&after);
    assert_eq!(outcome(&post.send(&service).await), "200 result #7");
}

#[tokio::test]
async fn keys_that_have_grown_old_serve_while_they_are_fetched_anew() {
    let [old, new] = Signer::shared();
    let issuer = Issuer::start(&[old]).await;
    let service = serve(&issuer, "renew_ms = 10").await;
    let claims = issuer.claims(&service.base_url);
    let token = old.token(&claims);
    assert_eq!(status(&service, &token).await, 200);
    issuer.publish(&[new]);
    // Sooner or later the withdrawn key is noticed, without any token of another.
    let noticed = async { while status(&service, &token).await != 401 {} };
    tokio::time::timeout(Duration::from_secs(60), noticed)
        .await
        .expect("the key is noticed to be gone");
    let most = issuer.asked(KEYS);
    assert!((2..=8).contains(&most), "{most} fetches");
}

#[tokio::test]
async fn an_unknown_key_is_fetched_for_once() {
    let [rsa, _] = Signer::shared();
    let issuer = Issuer::start(&[rsa]).await;
    let service = serve(&issuer, "").await;
    let claims = issuer.claims(&service.base_url);
    assert_eq!(status(&service, &rsa.token(&claims)).await, 200);
    let unknown = Signer::p256("nobody").token(&claims);
    let calls = join_all((0..20).map(|_| status(&service, &unknown))).await;
    assert_eq!(calls, [401; 20]);
    for _ in 0..10 {
        assert_eq!(status(&service, &unknown).await, 401);
    }
    assert_eq!(issuer.asked(KEYS), 2);
}

#[tokio::test]
async fn a_flood_of_unknown_keys_fetches_a_few_times() {
    let [rsa, p256] = Signer::shared();
    let issuer = Issuer::start(&[rsa]).await;
    let service = serve(&issuer, "").await;
    let claims = issuer.claims(&service.base_url);
    let good = rsa.token(&claims);
    let started = Instant::now();
    assert_eq!(status(&service, &good).await, 200);
    let unknown = |number: u32| {
        p256.sign(
            &json!({ "typ": "at+jwt", "alg": "ES256", "kid": format!("k{number}") }).to_string(),
            &claims.to_string(),
        )
    };
    for round in 0..10 {
        let calls = (0..50)
            .map(|call| unknown(round * 50 + call))
            .map(async |token| status(&service, &token).await);
        assert_eq!(join_all(calls).await, [401; 50]);
        assert_eq!(status(&service, &good).await, 200);
    }
    let refilled = usize::try_from(started.elapsed().as_secs() / 15).expect("a short test") + 1;
    let fetches = issuer.asked(KEYS);
    assert!(
        (2..=4 + refilled).contains(&fetches),
        "{fetches} fetches for 500 unknown keys"
    );
}

#[tokio::test]
async fn while_the_issuer_is_down_known_keys_serve() {
    let [rsa, p256] = Signer::shared();
    let issuer = Issuer::down().await;
    issuer.publish(&[rsa]);
    let service = serve(&issuer, "").await;
    let claims = issuer.claims(&service.base_url);
    let (known, unknown) = (rsa.token(&claims), p256.token(&claims));
    check_unavailable(&service, &known, "down from the start").await;
    let post = Post::call("list_bank_qr_banks", &json!({})).bearer(&known);
    let answer = post.send(&service).await;
    assert_eq!(outcome(&answer), "200 isError SERVICE_UNAVAILABLE #7");
    assert_eq!(
        service.get(BANKS).await.status,
        200,
        "API keys do not need it"
    );

    issuer.up().await;
    assert_eq!(status(&service, &known).await, 200);
    issuer.stop().await;
    assert_eq!(status(&service, &known).await, 200);
    assert_eq!(
        status(&service, &rsa.token(&claims)).await,
        200,
        "another token by a known key"
    );
    check_unavailable(&service, &unknown, "down later").await;
    assert_eq!(status(&service, &known).await, 200);
    let told = service.log_until(|lines| {
        lines.iter().any(|line| {
            line["message"] == "the issuer's keys could not be fetched" && line["serving"] == true
        })
    });
    assert!(told.iter().all(|line| line["level"] != "ERROR"), "{told:?}");
}

/// Of 300 tokens by unknown keys 256 wait for the issuer, and what one peer may have of the lobby is a few places more
/// than that.
#[tokio::test]
async fn a_silent_issuer_and_made_up_tokens_do_not_take_every_place() {
    let [rsa, _] = Signer::shared();
    let issuer = Issuer::start(&[rsa]).await;
    issuer.set(METADATA, Document::Silence);
    let service =
        serve(&issuer, "fetch_ms = 600000\n[limits]\nin_flight = 1480\n[peers]\nin_flight = 1480\nconnections = 1480")
            .await;
    let token = rsa.token(&issuer.claims(&service.base_url));
    let mut calls: FuturesUnordered<_> = (0..300).map(|_| get(&service, &token)).collect();
    for _ in 0..44 {
        let answer = calls.next().await.expect("an answer");
        assert_eq!(answer.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    }
    assert_eq!(service.get(BANKS).await.status, 200);
}

/// Where the documents are bad, nobody is let in, and the issuer is asked again once they are good.
async fn check_documents(what: &str, spoil: impl FnOnce(&Issuer)) {
    let [rsa, _] = Signer::shared();
    let issuer = Issuer::start(&[rsa]).await;
    let metadata = json!({ "issuer": issuer.url, "jwks_uri": format!("{}{KEYS}", issuer.url) });
    spoil(&issuer);
    let service = serve(&issuer, "fetch_ms = 1000").await;
    let token = rsa.token(&issuer.claims(&service.base_url));
    check_unavailable(&service, &token, what).await;
    issuer.set(METADATA, Document::Text(metadata.to_string()));
    issuer.publish(&[rsa]);
    assert_eq!(status(&service, &token).await, 200, "{what}");
}

fn metadata_of(issuer: &str, keys: &str) -> Document {
    Document::Text(json!({ "issuer": issuer, "jwks_uri": keys }).to_string())
}

#[tokio::test]
async fn bad_metadata_is_no_issuers() {
    let keys = |issuer: &Issuer| format!("{}{KEYS}", issuer.url);
    check_documents("no metadata", |issuer| {
        issuer.set(METADATA, Document::Failure);
    })
    .await;
    check_documents("no JSON", |issuer| {
        issuer.set(METADATA, Document::Text("<html>".to_owned()));
    })
    .await;
    check_documents("no key set", |issuer| {
        issuer.set(
            METADATA,
            Document::Text(json!({ "issuer": issuer.url }).to_string()),
        );
    })
    .await;
    check_documents("another issuer's", |issuer| {
        issuer.set(METADATA, metadata_of("https://id.example", &keys(issuer)));
    })
    .await;
    check_documents("the issuer with a slash", |issuer| {
        issuer.set(
            METADATA,
            metadata_of(&format!("{}/", issuer.url), &keys(issuer)),
        );
    })
    .await;
    let elsewhere = Issuer::start(&[&Signer::shared()[0]]).await;
    check_documents("keys over http elsewhere", |issuer| {
        issuer.set(METADATA, metadata_of(&issuer.url, &keys(&elsewhere)));
    })
    .await;
    assert_eq!(
        elsewhere.heads(),
        Vec::<String>::new(),
        "nobody but the issuer is asked without TLS"
    );
    check_documents("keys behind a password", |issuer| {
        issuer.set(
            METADATA,
            metadata_of(&issuer.url, &keys(issuer).replace("http://", "http://a:b@")),
        );
    })
    .await;
    check_documents("keys in a file", |issuer| {
        issuer.set(METADATA, metadata_of(&issuer.url, "file:///keys"));
    })
    .await;
    check_documents("too large", |issuer| {
        let padded =
            json!({ "issuer": issuer.url, "jwks_uri": keys(issuer), "x": "x".repeat(70_000) });
        issuer.set(METADATA, Document::Text(padded.to_string()));
    })
    .await;
    check_documents("silent", |issuer| issuer.set(METADATA, Document::Silence)).await;
}

#[tokio::test]
async fn bad_key_sets_are_not_taken() {
    let [rsa, _] = Signer::shared();
    let many = |count: usize| vec![rsa.jwk(); count];
    check_documents("no key set", |issuer| issuer.set(KEYS, Document::Failure)).await;
    check_documents("no JSON", |issuer| {
        issuer.set(KEYS, Document::Text("keys".to_owned()));
    })
    .await;
    check_documents("no list", |issuer| {
        issuer.set(KEYS, Document::Text(rsa.jwk().to_string()));
    })
    .await;
    check_documents("no keys", |issuer| issuer.publish_raw(Vec::new())).await;
    check_documents("too many keys", |issuer| issuer.publish_raw(many(65))).await;
    check_documents("too many bytes", |issuer| {
        let mut key = rsa.jwk();
        key["x5c"] = json!(["x".repeat(300_000)]);
        issuer.publish_raw(vec![key]);
    })
    .await;
    check_documents("silent", |issuer| issuer.set(KEYS, Document::Silence)).await;
    let elsewhere = Issuer::start(&[rsa]).await;
    check_documents("a redirect", |issuer| {
        issuer.set(KEYS, Document::Redirect(format!("{}{KEYS}", elsewhere.url)));
    })
    .await;
    assert_eq!(
        elsewhere.heads(),
        Vec::<String>::new(),
        "no redirect is followed"
    );
}

#[tokio::test]
async fn only_keys_for_our_signatures_verify() {
    let [rsa, p256] = Signer::shared();
    let key = |kid: &str, change: &dyn Fn(&mut Value)| {
        let mut key = rsa.jwk();
        key["kid"] = json!(kid);
        change(&mut key);
        key
    };
    let bad = [
        key("encrypts", &|key| key["use"] = json!("enc")),
        key("wraps", &|key| key["key_ops"] = json!(["wrapKey"])),
        key("of another algorithm", &|key| key["alg"] = json!("RS512")),
        key("of PSS", &|key| key["alg"] = json!("PS256")),
        key("of ES256", &|key| key["alg"] = json!("ES256")),
        key("without a modulus", &|key| key["n"] = json!("")),
        key("short", &|key| key["n"] = json!(encode([0xc5; 128]))),
        key("no base64", &|key| key["n"] = json!("?")),
        key("a secret", &|key| {
            *key =
                json!({ "kty": "oct", "kid": "a secret", "k": encode("secret"), "alg": "HS256" });
        }),
        key(
            "of another curve",
            &|key| *key = json!({ "kty": "EC", "crv": "P-384", "kid": "of another curve", "x": encode([1; 48]), "y": encode([1; 48]) }),
        ),
        key(
            "not on its curve",
            &|key| *key = json!({ "kty": "EC", "crv": "P-256", "kid": "not on its curve", "x": encode([1; 32]), "y": encode([1; 32]) }),
        ),
        json!({ "kty": "RSA" }),
        json!("key"),
    ];
    let good = [key("without use and algorithm", &|key| {
        let members = key.as_object_mut().expect("an object");
        members.remove("use");
        members.remove("alg");
    })];
    let issuer = Issuer::start(&[]).await;
    issuer.publish_raw(
        bad.iter()
            .chain(&good)
            .cloned()
            .chain([p256.jwk()])
            .collect(),
    );
    let service = serve(&issuer, "").await;
    let claims = issuer.claims(&service.base_url).to_string();
    for (keys, expected) in [(&bad[..11], 401), (&good[..], 200)] {
        for kid in keys.iter().map(|key| &key["kid"]) {
            for alg in ["RS256", "ES256"] {
                let header = json!({ "typ": "at+jwt", "alg": alg, "kid": kid }).to_string();
                let token = if alg == "RS256" {
                    rsa.sign(&header, &claims)
                } else {
                    p256.sign(&header, &claims)
                };
                let expected = if alg == "RS256" { expected } else { 401 };
                assert_eq!(status(&service, &token).await, expected, "{kid} {alg}");
            }
        }
    }
    assert_eq!(
        status(&service, &p256.sign(&p256.header().to_string(), &claims)).await,
        200
    );
}

#[tokio::test]
async fn the_metadata_of_openid_connect_is_found_too() {
    let [rsa, _] = Signer::shared();
    let issuer = Issuer::start(&[rsa]).await;
    let text = metadata_of(&issuer.url, &format!("{}{KEYS}", issuer.url));
    issuer.set(METADATA, Document::Failure);
    issuer.set(OPENID, text);
    let service = serve(&issuer, "").await;
    assert_eq!(
        status(&service, &rsa.token(&issuer.claims(&service.base_url))).await,
        200
    );
    assert_eq!(
        (
            issuer.asked(METADATA),
            issuer.asked(OPENID),
            issuer.asked(KEYS)
        ),
        (1, 1, 1)
    );
}

#[tokio::test]
async fn an_issuer_with_a_path_has_its_metadata_by_either_rule() {
    let [rsa, _] = Signer::shared();
    for place in [
        "/.well-known/oauth-authorization-server/a/b",
        "/a/b/.well-known/openid-configuration",
    ] {
        let mut issuer = Issuer::start(&[rsa]).await;
        let keys = format!("{}{KEYS}", issuer.url);
        issuer.url.push_str("/a/b");
        issuer.set(place, metadata_of(&issuer.url, &keys));
        let service = serve(&issuer, "").await;
        assert_eq!(
            status(&service, &rsa.token(&issuer.claims(&service.base_url))).await,
            200,
            "{place}"
        );
        assert_eq!(
            issuer.asked(METADATA),
            0,
            "the metadata of the origin is another issuer's"
        );
    }
}
