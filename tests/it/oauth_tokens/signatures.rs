//! Access tokens whose signature is not that of their claims, and texts that are no token.

use serde_json::json;

use super::{Installation, with};
use crate::support::{Signer, encode};

#[tokio::test]
async fn a_bad_signature_is_an_invalid_token() {
    let installation = Installation::start().await;
    let [rsa, p256] = Signer::shared();
    let claims = installation.claims();
    let token = rsa.token(&claims);
    let [header, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else {
        panic!("three parts")
    };
    let other = |part: &str| {
        let (start, last) = part.split_at(part.len() - 2);
        format!("{start}{}", if last.starts_with('A') { "BA" } else { "AA" })
    };
    let raised = encode(with(claims.clone(), "scope", json!("bank-qr:banks all")).to_string());
    let small = encode(with(rsa.header(), "x", json!(1)).to_string());
    let of_p256 = p256.token(&claims);
    let (message, _) = of_p256.rsplit_once('.').expect("dots");
    let cases = [
        ("no signature", format!("{header}.{payload}.")),
        (
            "a signature that is another",
            format!("{header}.{payload}.{}", other(signature)),
        ),
        (
            "half of a signature",
            format!("{header}.{payload}.{}", &signature[..signature.len() / 2]),
        ),
        (
            "a padded signature",
            format!("{header}.{payload}.{signature}=="),
        ),
        (
            "a signature that is no base64",
            format!("{header}.{payload}.{}!", &signature[..signature.len() - 1]),
        ),
        (
            "a longer signature",
            format!("{header}.{payload}.{signature}AAAA"),
        ),
        (
            "claims that were changed",
            format!("{header}.{raised}.{signature}"),
        ),
        (
            "a header that was changed",
            format!("{small}.{payload}.{signature}"),
        ),
        (
            "a signature of zeros by ES256",
            format!("{message}.{}", encode([0; 64])),
        ),
        (
            "a signature in DER by ES256",
            format!("{message}.{}", encode([0x30, 6, 2, 1, 1, 2, 1, 1])),
        ),
    ];
    installation.check_invalid(&cases, &token).await;
}

#[tokio::test]
async fn a_bad_form_is_an_invalid_token() {
    let installation = Installation::start().await;
    let rsa = &Signer::shared()[0];
    let claims = installation.claims();
    let token = rsa.token(&claims);
    let [header, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else {
        panic!("three parts")
    };
    let spoilt = encode("{".to_owned() + &claims.to_string());
    let big = installation.claiming("filler", json!("x".repeat(8192)));
    let deep = rsa.sign(
        &rsa.header().to_string(),
        &format!("{}{}", "[".repeat(300), "]".repeat(300)),
    );
    let cases = [
        (
            "claims that are no JSON",
            format!("{header}.{spoilt}.{signature}"),
        ),
        (
            "signed claims that are no JSON",
            rsa.sign(&rsa.header().to_string(), "claims"),
        ),
        (
            "signed claims that are a list",
            rsa.sign(&rsa.header().to_string(), "[]"),
        ),
        ("signed claims that are deep", deep),
        ("one dot", format!("{header}.{payload}")),
        ("three dots", format!("{token}.{signature}")),
        (
            "five parts",
            format!("{header}.{payload}.{signature}.{payload}.{signature}"),
        ),
        ("two dots", "..".to_owned()),
        ("a dot before", format!(".{token}")),
        ("too many bytes", rsa.token(&big)),
        ("a space within", format!("{header}. {payload}.{signature}")),
    ];
    installation.check_invalid(&cases, &token).await;
}
