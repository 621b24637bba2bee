//! Claims of access tokens: whose, for whom, until when, what for; each is judged anew, however often it was verified.

use serde_json::{Value, json};

use super::{Installation, SCOPE, Verdict, with};
use crate::support::{Signer, now_s};

#[tokio::test]
async fn a_token_of_another_issuer_or_for_another_audience_is_invalid() {
    let installation = Installation::start().await;
    let [rsa, _] = Signer::shared();
    let base_url = &installation.service.base_url;
    let claims = installation.claims();
    let issuer = claims["iss"].as_str().expect("an issuer");
    let claiming = |name: &str, value: Value| rsa.token(&installation.claiming(name, value));
    let id_token = json!({
        "iss": issuer, "aud": "client-1", "sub": "subject-1", "nonce": "n", "iat": now_s(), "exp": now_s() + 300,
    });
    let mcp = format!("{base_url}/mcp");
    let cases = [
        ("no issuer", claiming("iss", json!(null))),
        (
            "another issuer",
            claiming("iss", json!("https://attacker.example")),
        ),
        (
            "the issuer with a slash",
            claiming("iss", json!(format!("{issuer}/"))),
        ),
        (
            "the issuer in capitals",
            claiming("iss", json!(issuer.to_uppercase())),
        ),
        ("a list of issuers", claiming("iss", json!([issuer]))),
        ("no audience", claiming("aud", json!(null))),
        (
            "another audience",
            claiming("aud", json!("https://a.example/mcp")),
        ),
        ("no audience in a list", claiming("aud", json!([]))),
        (
            "an audience that is a number",
            claiming("aud", json!([mcp, 1])),
        ),
        (
            "an audience that is an object",
            claiming("aud", json!({ mcp.as_str(): true })),
        ),
        (
            "our audience with a slash",
            claiming("aud", json!(format!("{mcp}/"))),
        ),
        (
            "the start of our audience",
            claiming("aud", json!(&mcp[..mcp.len() - 1])),
        ),
        (
            "the audience of an ID token",
            claiming("aud", json!("client-1")),
        ),
        (
            "an ID token with the type of an access token",
            rsa.token(&id_token),
        ),
    ];
    for (what, token) in &cases {
        installation.check(what, token, Verdict::Invalid).await;
    }
    // What was verified once is judged again.
    for (what, token) in &cases {
        installation.check(what, token, Verdict::Invalid).await;
    }
}

#[tokio::test]
async fn a_token_of_another_time_is_refused() {
    let installation = Installation::start().await;
    let [rsa, _] = Signer::shared();
    let claiming = |name: &str, value: Value| rsa.token(&installation.claiming(name, value));
    let expired = installation.claiming("exp", json!(now_s() - 31));
    let expired_elsewhere = with(expired.clone(), "aud", json!("https://a.example"));
    let invalid = Verdict::Invalid;
    let cases = [
        ("no expiry", claiming("exp", json!(null)), invalid),
        (
            "an expiry that is text",
            claiming("exp", json!((now_s() + 300).to_string())),
            invalid,
        ),
        ("an expiry before 1970", claiming("exp", json!(-1)), invalid),
        (
            "an expiry that is a fraction",
            claiming("exp", json!(1e10)),
            invalid,
        ),
        ("expired", rsa.token(&expired), Verdict::Expired),
        (
            "expired in 1970",
            claiming("exp", json!(0)),
            Verdict::Expired,
        ),
        (
            "expired, and for another audience",
            rsa.token(&expired_elsewhere),
            invalid,
        ),
        (
            "expired, without the scope",
            rsa.token(&with(expired, "scope", json!("a"))),
            Verdict::Expired,
        ),
        (
            "not yet valid",
            claiming("nbf", json!(now_s() + 3600)),
            invalid,
        ),
        ("valid from a text on", claiming("nbf", json!("0")), invalid),
        (
            "issued in the future",
            claiming("iat", json!(now_s() + 3600)),
            invalid,
        ),
        ("not issued", claiming("iat", json!(null)), invalid),
    ];
    installation.check_twice(&cases).await;
}

#[tokio::test]
async fn a_token_without_one_of_its_claims_or_with_one_twice_is_invalid() {
    let installation = Installation::start().await;
    let [rsa, _] = Signer::shared();
    let claims = installation.claims();
    let claiming = |name: &str, value: Value| rsa.token(&installation.claiming(name, value));
    let twice = |name: &str| {
        let text = claims.to_string();
        let end = format!(",\"{name}\":{}}}", claims[name]);
        rsa.sign(
            &rsa.header().to_string(),
            &(text[..text.len() - 1].to_owned() + &end),
        )
    };
    let invalid = Verdict::Invalid;
    let cases = [
        ("without a subject", claiming("sub", json!(null)), invalid),
        ("with an empty subject", claiming("sub", json!("")), invalid),
        (
            "without a client",
            claiming("client_id", json!(null)),
            invalid,
        ),
        (
            "with a client that is a number",
            claiming("client_id", json!(7)),
            invalid,
        ),
        ("without an id", claiming("jti", json!(null)), invalid),
        (
            "bound to a key of its client's",
            claiming("cnf", json!({ "jkt": "thumb" })),
            invalid,
        ),
        ("exp twice", twice("exp"), invalid),
        ("aud twice", twice("aud"), invalid),
        ("scope twice", twice("scope"), invalid),
        (
            "a member of a claim twice",
            rsa.sign(
                &rsa.header().to_string(),
                &claims
                    .to_string()
                    .replacen('{', r#"{"act":{"sub":1,"sub":2},"#, 1),
            ),
            invalid,
        ),
    ];
    installation.check_twice(&cases).await;
}

#[tokio::test]
async fn a_token_without_the_scope_is_refused() {
    let installation = Installation::start().await;
    let [rsa, _] = Signer::shared();
    let claiming = |name: &str, value: Value| rsa.token(&installation.claiming(name, value));
    let (invalid, scope) = (Verdict::Invalid, Verdict::Scope);
    let cases = [
        (
            "a list of scopes",
            claiming("scope", json!([SCOPE])),
            invalid,
        ),
        ("no scope", claiming("scope", json!(null)), scope),
        ("an empty scope", claiming("scope", json!("")), scope),
        (
            "another scope",
            claiming("scope", json!("bank-qr:generate")),
            scope,
        ),
        (
            "every scope, as a key would have it",
            claiming("scope", json!("*")),
            scope,
        ),
        (
            "the scope in capitals",
            claiming("scope", json!("BANK-QR:BANKS")),
            scope,
        ),
        (
            "scopes between commas",
            claiming("scope", json!("bank-qr:banks,bank-qr:generate")),
            scope,
        ),
        (
            "the start of the scope",
            claiming("scope", json!("bank-qr bank-qr:")),
            scope,
        ),
    ];
    installation.check_twice(&cases).await;
}
