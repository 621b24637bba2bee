//! Headers of access tokens: an algorithm, a key or a member that a good one has not.

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{RSA_PKCS1_SHA512, RSA_PSS_SHA256};
use serde_json::{Value, json};

use super::{Installation, with};
use crate::support::{Signer, encode};

fn hs256(secret: &[u8], kid: &str, claims: &Value) -> String {
    let header = json!({ "typ": "at+jwt", "alg": "HS256", "kid": kid });
    let message = format!(
        "{}.{}",
        encode(header.to_string()),
        encode(claims.to_string())
    );
    let tag = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret),
        message.as_bytes(),
    );
    format!("{message}.{}", encode(tag))
}

/// A token whose header is the signer's but for one member.
fn headed(signer: &Signer, claims: &Value, name: &str, value: Value) -> String {
    let header = with(signer.header(), name, value);
    signer.sign(&header.to_string(), &claims.to_string())
}

#[tokio::test]
async fn a_bad_algorithm_is_an_invalid_token() {
    let installation = Installation::start().await;
    let [rsa, p256] = Signer::shared();
    let claims = installation.claims();
    let alg = |value: Value| headed(rsa, &claims, "alg", value);
    let unsigned = |alg: &str| {
        let header = with(rsa.header(), "alg", json!(alg)).to_string();
        format!("{}.{}.", encode(header), encode(claims.to_string()))
    };
    let modulus = rsa.jwk()["n"].as_str().expect("a modulus").to_owned();
    let ps256 = with(rsa.header(), "alg", json!("PS256"));
    let rs512 = with(rsa.header(), "alg", json!("RS512"));
    let twice = r#"{"typ":"at+jwt","alg":"none","alg":"RS256","kid":"rsa-1"}"#;
    let cases = [
        ("alg none", unsigned("none")),
        ("alg None", unsigned("None")),
        ("alg NONE with a signature", alg(json!("NONE"))),
        ("alg none with a signature", alg(json!("none"))),
        ("no alg", alg(json!(null))),
        ("an alg that is a list", alg(json!(["RS256"]))),
        (
            "HS256 with the RSA key in DER",
            hs256(rsa.public(), &rsa.kid, &claims),
        ),
        (
            "HS256 with the RSA modulus",
            hs256(modulus.as_bytes(), &rsa.kid, &claims),
        ),
        (
            "HS256 with the EC point",
            hs256(p256.public(), &p256.kid, &claims),
        ),
        ("HS256 with no secret", hs256(b"", &rsa.kid, &claims)),
        (
            "PS256 of the RSA key",
            rsa.sign_by(&RSA_PSS_SHA256, &ps256, &claims),
        ),
        (
            "a PSS signature as RS256",
            rsa.sign_by(&RSA_PSS_SHA256, &rsa.header(), &claims),
        ),
        (
            "RS512 of the RSA key",
            rsa.sign_by(&RSA_PKCS1_SHA512, &rs512, &claims),
        ),
        ("ES256 of the RSA key", alg(json!("ES256"))),
        ("rs256 in small letters", alg(json!("rs256"))),
        ("alg twice", rsa.sign(twice, &claims.to_string())),
    ];
    installation
        .check_invalid(&cases, &rsa.token(&claims))
        .await;
}

#[tokio::test]
async fn a_bad_key_id_type_or_other_header_member_is_an_invalid_token() {
    let installation = Installation::start().await;
    let [rsa, p256] = Signer::shared();
    let (foreign, claims) = (Signer::p256("p256-1"), installation.claims());
    let text = claims.to_string();
    let member = |name: &str, value: Value| headed(rsa, &claims, name, value);
    let jku = json!("https://attacker.example/keys");
    let x5u = json!("https://attacker.example/certificate");
    let twice = r#"{"typ":"at+jwt","alg":"RS256","kid":"p256-1","kid":"rsa-1"}"#;
    let cases = [
        (
            "RS256 and the id of the EC key",
            member("kid", json!(p256.kid)),
        ),
        (
            "ES256 and the id of the RSA key",
            headed(p256, &claims, "kid", json!(rsa.kid)),
        ),
        ("no type", member("typ", json!(null))),
        ("the type of an ID token", member("typ", json!("JWT"))),
        ("another type", member("typ", json!("application/jwt"))),
        ("a type that is a number", member("typ", json!(1))),
        ("a logout token's type", member("typ", json!("logout+jwt"))),
        ("no key id", member("kid", json!(null))),
        ("a key id that is a number", member("kid", json!(1))),
        ("an unknown key id", member("kid", json!("nobody"))),
        ("a long key id", member("kid", json!("k".repeat(300)))),
        ("crit", member("crit", json!(["exp"]))),
        ("an empty crit", member("crit", json!([]))),
        ("b64", member("b64", json!(false))),
        ("zip", member("zip", json!("DEF"))),
        ("enc", member("enc", json!("A256GCM"))),
        ("a nested token", member("cty", json!("JWT"))),
        ("jku", member("jku", jku.clone())),
        (
            "jku of a foreign key",
            headed(&foreign, &claims, "jku", jku),
        ),
        (
            "jwk of a foreign key",
            headed(&foreign, &claims, "jwk", foreign.jwk()),
        ),
        ("x5u", member("x5u", x5u)),
        ("x5c", member("x5c", json!(["MIIB"]))),
        ("a foreign key with a known id", foreign.token(&claims)),
        ("kid twice", rsa.sign(twice, &text)),
        ("a list as the header", rsa.sign(r#"["RS256"]"#, &text)),
        ("no JSON as the header", rsa.sign("RS256", &text)),
        ("an empty header", rsa.sign("", &text)),
    ];
    installation
        .check_invalid(&cases, &rsa.token(&claims))
        .await;
}
