//! Which access tokens are taken: a list of bad ones, each of which is what a good one is but for one thing.

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{RSA_PKCS1_SHA512, RSA_PSS_SHA256};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Issuer, Options, Post, Service, Signer, encode, now_s, outcome};

const BANKS: &str = "/api/v1/tools/bank-qr/banks";
const SCOPE: &str = "bank-qr:banks";

/// What a token comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    /// 401 on both faces.
    Invalid,
    /// 403 on REST, and 401 for a tool.
    Expired,
    /// 403 on both faces.
    Scope,
    /// Good on REST, and 401 for a tool.
    RestAlone,
}

struct Installation {
    issuer: Issuer,
    service: Service,
}

impl Installation {
    async fn start() -> Self {
        let [rsa, p256] = Signer::shared();
        let issuer = Issuer::start(&[rsa, p256]).await;
        let config = issuer.config("per_minute = 1000000\naudiences = [\"https://other.example/api\"]");
        Self { service: Service::start(Options { config, ..Options::default() }).await, issuer }
    }

    fn claims(&self) -> Value {
        self.issuer.claims(&self.service.base_url)
    }

    /// The claims with one that is another, or is not there.
    fn claiming(&self, name: &str, value: Value) -> Value {
        with(self.claims(), name, value)
    }

    async fn check(&self, what: &str, token: &str, verdict: Verdict) {
        let request = self.service.bare(Method::GET, BANKS).bearer_auth(token);
        check_rest(&Service::send(request).await, what, verdict);
        let post = Post::call("list_bank_qr_banks", &json!({})).bearer(token);
        self.check_tool(&post.send(&self.service).await, what, verdict);
    }

    fn check_tool(&self, answer: &Answer, what: &str, verdict: Verdict) {
        let (status, challenge) = match verdict {
            Verdict::Good => return assert_eq!(outcome(answer), "200 result #7", "{what}: {answer:?}"),
            Verdict::Invalid | Verdict::RestAlone => (401, INVALID),
            Verdict::Expired => (401, EXPIRED),
            Verdict::Scope => (403, INSUFFICIENT),
        };
        assert_eq!(outcome(answer), format!("{status} {status} #7"), "{what}");
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.service.base_url);
        let expected = format!("{challenge}, resource_metadata=\"{metadata}\"");
        assert_eq!(answer.header("www-authenticate"), expected, "{what}");
    }
}

const INVALID: &str =
    r#"Bearer error="invalid_token", error_description="The credential is not valid", scope="bank-qr:banks""#;
const EXPIRED: &str =
    r#"Bearer error="invalid_token", error_description="The access token has expired", scope="bank-qr:banks""#;
const INSUFFICIENT: &str = r#"Bearer error="insufficient_scope", error_description="The credential does not carry the scope bank-qr:banks", scope="bank-qr:banks""#;

fn check_rest(answer: &Answer, what: &str, verdict: Verdict) {
    let (status, code, challenge) = match verdict {
        Verdict::Good | Verdict::RestAlone => {
            assert_eq!(answer.status, 200, "{what}: {answer:?}");
            assert!(answer.headers.get("www-authenticate").is_none(), "{what}: {answer:?}");
            return;
        }
        Verdict::Invalid => (401, "UNAUTHORIZED", INVALID),
        Verdict::Expired => (403, "FORBIDDEN", EXPIRED),
        Verdict::Scope => (403, "FORBIDDEN", INSUFFICIENT),
    };
    assert_eq!(answer.status, status, "{what}");
    assert_eq!(answer.refusal(), (status, code.to_owned()), "{what}");
    assert_eq!(answer.header("www-authenticate"), challenge, "{what}");
}

/// An object with one member that is another; `null` takes it away.
fn with(mut object: Value, name: &str, value: Value) -> Value {
    let members = object.as_object_mut().expect("an object");
    match value {
        Value::Null => drop(members.remove(name)),
        value => drop(members.insert(name.to_owned(), value)),
    }
    object
}

fn hs256(secret: &[u8], kid: &str, claims: &Value) -> String {
    let header = json!({ "typ": "at+jwt", "alg": "HS256", "kid": kid });
    let message = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
    format!("{message}.{}", encode(tag))
}

#[tokio::test]
async fn good_tokens_are_taken() {
    let installation = Installation::start().await;
    let [rsa, p256] = Signer::shared();
    let base_url = &installation.service.base_url;
    let (claims, good) = (installation.claims(), Verdict::Good);
    let typed = |kind: &str| rsa.sign(&with(rsa.header(), "typ", json!(kind)).to_string(), &claims.to_string());
    let claiming = |name: &str, value: Value| rsa.token(&installation.claiming(name, value));
    let mcp = format!("{base_url}/mcp");
    let cases = [
        ("RS256", rsa.token(&claims), good),
        ("ES256", p256.token(&claims), good),
        ("the long type", typed("application/at+jwt"), good),
        ("a type in capitals", typed("AT+JWT"), good),
        (
            "a header member that nobody knows",
            rsa.sign(&with(rsa.header(), "x", json!(1)).to_string(), &claims.to_string()),
            good,
        ),
        ("a claim that nobody knows", claiming("roles", json!([{ "a": [1, null] }])), good),
        ("our audience among others", claiming("aud", json!(["https://a.example", mcp])), good),
        ("a configured audience", claiming("aud", json!("https://other.example/api")), good),
        ("the base URL as the audience", claiming("aud", json!(base_url)), Verdict::RestAlone),
        ("the scope alone", claiming("scope", json!(SCOPE)), good),
        ("the scope twice, with spaces", claiming("scope", json!("  bank-qr:banks   bank-qr:banks ")), good),
        ("expired within the skew", claiming("exp", json!(now_s() - 1)), good),
        ("valid within the skew", claiming("nbf", json!(now_s() + 25)), good),
        ("issued within the skew", claiming("iat", json!(now_s() + 25)), good),
        ("valid since long ago", claiming("nbf", json!(0)), good),
    ];
    for (what, token, verdict) in &cases {
        installation.check(what, token, *verdict).await;
    }
    // Verified before, and judged anew each time.
    for (what, token, verdict) in &cases {
        installation.check(what, token, *verdict).await;
    }
    assert_eq!(installation.issuer.asked(crate::support::KEYS), 1);
}

#[tokio::test]
async fn a_bad_header_is_an_invalid_token() {
    let installation = Installation::start().await;
    let [rsa, p256] = Signer::shared();
    let (foreign, claims) = (Signer::p256("p256-1"), installation.claims());
    let text = claims.to_string();
    let headed = |name: &str, value: Value| rsa.sign(&with(rsa.header(), name, value).to_string(), &text);
    let unsigned =
        |alg: &str| format!("{}.{}.", encode(with(rsa.header(), "alg", json!(alg)).to_string()), encode(&text));
    let modulus = rsa.jwk()["n"].as_str().expect("a modulus").to_owned();
    let jku = json!("https://attacker.example/keys");
    let as_own =
        |signer: &Signer, name: &str, value: Value| signer.sign(&with(signer.header(), name, value).to_string(), &text);
    let cases = [
        ("alg none", unsigned("none")),
        ("alg None", unsigned("None")),
        ("alg NONE with a signature", headed("alg", json!("NONE"))),
        ("alg none with a signature", headed("alg", json!("none"))),
        ("no alg", headed("alg", json!(null))),
        ("an alg that is a list", headed("alg", json!(["RS256"]))),
        ("HS256 with the RSA key in DER", hs256(rsa.public(), &rsa.kid, &claims)),
        ("HS256 with the RSA modulus", hs256(modulus.as_bytes(), &rsa.kid, &claims)),
        ("HS256 with the EC point", hs256(p256.public(), &p256.kid, &claims)),
        ("HS256 with no secret", hs256(b"", &rsa.kid, &claims)),
        ("PS256 of the RSA key", rsa.sign_by(&RSA_PSS_SHA256, &with(rsa.header(), "alg", json!("PS256")), &claims)),
        ("a PSS signature as RS256", rsa.sign_by(&RSA_PSS_SHA256, &rsa.header(), &claims)),
        ("RS512 of the RSA key", rsa.sign_by(&RSA_PKCS1_SHA512, &with(rsa.header(), "alg", json!("RS512")), &claims)),
        ("RS256 and the id of the EC key", headed("kid", json!(p256.kid))),
        ("ES256 and the id of the RSA key", as_own(p256, "kid", json!(rsa.kid))),
        ("ES256 of the RSA key", headed("alg", json!("ES256"))),
        ("rs256 in small letters", headed("alg", json!("rs256"))),
        ("no type", headed("typ", json!(null))),
        ("the type of an ID token", headed("typ", json!("JWT"))),
        ("another type", headed("typ", json!("application/jwt"))),
        ("a type that is a number", headed("typ", json!(1))),
        ("a logout token's type", headed("typ", json!("logout+jwt"))),
        ("no key id", headed("kid", json!(null))),
        ("a key id that is a number", headed("kid", json!(1))),
        ("an unknown key id", headed("kid", json!("nobody"))),
        ("a long key id", headed("kid", json!("k".repeat(300)))),
        ("crit", headed("crit", json!(["exp"]))),
        ("an empty crit", headed("crit", json!([]))),
        ("b64", headed("b64", json!(false))),
        ("zip", headed("zip", json!("DEF"))),
        ("enc", headed("enc", json!("A256GCM"))),
        ("a nested token", headed("cty", json!("JWT"))),
        ("jku", headed("jku", jku.clone())),
        ("jku of a foreign key", as_own(&foreign, "jku", jku)),
        ("jwk of a foreign key", as_own(&foreign, "jwk", foreign.jwk())),
        ("x5u", headed("x5u", json!("https://attacker.example/certificate"))),
        ("x5c", headed("x5c", json!(["MIIB"]))),
        ("a foreign key with a known id", foreign.token(&claims)),
        ("alg twice", rsa.sign(r#"{"typ":"at+jwt","alg":"none","alg":"RS256","kid":"rsa-1"}"#, &text)),
        ("kid twice", rsa.sign(r#"{"typ":"at+jwt","alg":"RS256","kid":"p256-1","kid":"rsa-1"}"#, &text)),
        ("a list as the header", rsa.sign(r#"["RS256"]"#, &text)),
        ("no JSON as the header", rsa.sign("RS256", &text)),
        ("an empty header", rsa.sign("", &text)),
    ];
    for (what, token) in &cases {
        installation.check(what, token, Verdict::Invalid).await;
    }
    installation.check("a good one after all", &rsa.token(&claims), Verdict::Good).await;
}

#[tokio::test]
async fn a_bad_form_or_signature_is_an_invalid_token() {
    let installation = Installation::start().await;
    let [rsa, p256] = Signer::shared();
    let claims = installation.claims();
    let token = rsa.token(&claims);
    let [header, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else { panic!("three parts") };
    let other = |part: &str| {
        let (start, last) = part.split_at(part.len() - 2);
        format!("{start}{}", if last.starts_with('A') { "BA" } else { "AA" })
    };
    let raised = encode(with(claims.clone(), "scope", json!("bank-qr:banks all")).to_string());
    let small = encode(with(rsa.header(), "x", json!(1)).to_string());
    let spoilt = encode("{".to_owned() + &claims.to_string());
    let of_p256 = p256.token(&claims);
    let (message, _) = of_p256.rsplit_once('.').expect("dots");
    let big = installation.claiming("filler", json!("x".repeat(8192)));
    let deep = rsa.sign(&rsa.header().to_string(), &format!("{}{}", "[".repeat(300), "]".repeat(300)));
    let cases = [
        ("no signature", format!("{header}.{payload}.")),
        ("a signature that is another", format!("{header}.{payload}.{}", other(signature))),
        ("half of a signature", format!("{header}.{payload}.{}", &signature[..signature.len() / 2])),
        ("a padded signature", format!("{header}.{payload}.{signature}==")),
        ("a signature that is no base64", format!("{header}.{payload}.{}!", &signature[..signature.len() - 1])),
        ("a longer signature", format!("{header}.{payload}.{signature}AAAA")),
        ("claims that were changed", format!("{header}.{raised}.{signature}")),
        ("a header that was changed", format!("{small}.{payload}.{signature}")),
        ("claims that are no JSON", format!("{header}.{spoilt}.{signature}")),
        ("signed claims that are no JSON", rsa.sign(&rsa.header().to_string(), "claims")),
        ("signed claims that are a list", rsa.sign(&rsa.header().to_string(), "[]")),
        ("signed claims that are deep", deep),
        ("a signature of zeros by ES256", format!("{message}.{}", encode([0; 64]))),
        ("a signature in DER by ES256", format!("{message}.{}", encode([0x30, 6, 2, 1, 1, 2, 1, 1]))),
        ("one dot", format!("{header}.{payload}")),
        ("three dots", format!("{token}.{signature}")),
        ("five parts", format!("{header}.{payload}.{signature}.{payload}.{signature}")),
        ("two dots", "..".to_owned()),
        ("a dot before", format!(".{token}")),
        ("too many bytes", rsa.token(&big)),
        ("a space within", format!("{header}. {payload}.{signature}")),
    ];
    for (what, token) in &cases {
        installation.check(what, token, Verdict::Invalid).await;
    }
    installation.check("a good one after all", &token, Verdict::Good).await;
}

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
        ("another issuer", claiming("iss", json!("https://attacker.example"))),
        ("the issuer with a slash", claiming("iss", json!(format!("{issuer}/")))),
        ("the issuer in capitals", claiming("iss", json!(issuer.to_uppercase()))),
        ("a list of issuers", claiming("iss", json!([issuer]))),
        ("no audience", claiming("aud", json!(null))),
        ("another audience", claiming("aud", json!("https://a.example/mcp"))),
        ("no audience in a list", claiming("aud", json!([]))),
        ("an audience that is a number", claiming("aud", json!([mcp, 1]))),
        ("an audience that is an object", claiming("aud", json!({ mcp.as_str(): true }))),
        ("our audience with a slash", claiming("aud", json!(format!("{mcp}/")))),
        ("the start of our audience", claiming("aud", json!(&mcp[..mcp.len() - 1]))),
        ("the audience of an ID token", claiming("aud", json!("client-1"))),
        ("an ID token with the type of an access token", rsa.token(&id_token)),
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
async fn a_token_of_another_time_or_without_its_claims_or_scope_is_refused() {
    let installation = Installation::start().await;
    let [rsa, _] = Signer::shared();
    let claims = installation.claims();
    let claiming = |name: &str, value: Value| rsa.token(&installation.claiming(name, value));
    let twice = |name: &str| {
        let text = claims.to_string();
        let end = format!(",\"{name}\":{}}}", claims[name]);
        rsa.sign(&rsa.header().to_string(), &(text[..text.len() - 1].to_owned() + &end))
    };
    let expired = installation.claiming("exp", json!(now_s() - 31));
    let expired_elsewhere = with(expired.clone(), "aud", json!("https://a.example"));
    let (invalid, scope) = (Verdict::Invalid, Verdict::Scope);
    let cases = [
        ("no expiry", claiming("exp", json!(null)), invalid),
        ("an expiry that is text", claiming("exp", json!((now_s() + 300).to_string())), invalid),
        ("an expiry before 1970", claiming("exp", json!(-1)), invalid),
        ("an expiry that is a fraction", claiming("exp", json!(1e10)), invalid),
        ("expired", rsa.token(&expired), Verdict::Expired),
        ("expired in 1970", claiming("exp", json!(0)), Verdict::Expired),
        ("expired, and for another audience", rsa.token(&expired_elsewhere), invalid),
        ("expired, without the scope", rsa.token(&with(expired, "scope", json!("a"))), Verdict::Expired),
        ("not yet valid", claiming("nbf", json!(now_s() + 3600)), invalid),
        ("valid from a text on", claiming("nbf", json!("0")), invalid),
        ("issued in the future", claiming("iat", json!(now_s() + 3600)), invalid),
        ("not issued", claiming("iat", json!(null)), invalid),
        ("without a subject", claiming("sub", json!(null)), invalid),
        ("with an empty subject", claiming("sub", json!("")), invalid),
        ("without a client", claiming("client_id", json!(null)), invalid),
        ("with a client that is a number", claiming("client_id", json!(7)), invalid),
        ("without an id", claiming("jti", json!(null)), invalid),
        ("bound to a key of its client's", claiming("cnf", json!({ "jkt": "thumb" })), invalid),
        ("a list of scopes", claiming("scope", json!([SCOPE])), invalid),
        ("exp twice", twice("exp"), invalid),
        ("aud twice", twice("aud"), invalid),
        ("scope twice", twice("scope"), invalid),
        (
            "a member of a claim twice",
            rsa.sign(&rsa.header().to_string(), &claims.to_string().replacen('{', r#"{"act":{"sub":1,"sub":2},"#, 1)),
            invalid,
        ),
        ("no scope", claiming("scope", json!(null)), scope),
        ("an empty scope", claiming("scope", json!("")), scope),
        ("another scope", claiming("scope", json!("bank-qr:generate")), scope),
        ("every scope, as a key would have it", claiming("scope", json!("*")), scope),
        ("the scope in capitals", claiming("scope", json!("BANK-QR:BANKS")), scope),
        ("scopes between commas", claiming("scope", json!("bank-qr:banks,bank-qr:generate")), scope),
        ("the start of the scope", claiming("scope", json!("bank-qr bank-qr:")), scope),
    ];
    for (what, token, verdict) in &cases {
        installation.check(what, token, *verdict).await;
    }
    // What was verified once is judged again.
    for (what, token, verdict) in &cases {
        installation.check(what, token, *verdict).await;
    }
}

#[tokio::test]
async fn a_token_is_a_bearer_and_nothing_else() {
    let installation = Installation::start().await;
    let service = &installation.service;
    let token = &Signer::shared()[0].token(&installation.claims());
    let key = service.key();
    let bearer = &format!("Bearer {token}");
    let key_bearer = &format!("Bearer {key}");
    let cases: [(&[(&str, &str)], Verdict); 9] = [
        (&[("authorization", bearer)], Verdict::Good),
        (&[("authorization", &format!("bearer {token}"))], Verdict::Good),
        (&[("authorization", key_bearer)], Verdict::Good),
        (&[("x-service-api-key", token)], Verdict::Invalid),
        (&[("x-service-api-key", token), ("authorization", bearer)], Verdict::Invalid),
        (&[("x-service-api-key", key), ("authorization", bearer)], Verdict::Invalid),
        (&[("authorization", key_bearer), ("authorization", bearer)], Verdict::Invalid),
        (&[("authorization", token)], Verdict::Invalid),
        (&[("authorization", &format!("DPoP {token}"))], Verdict::Invalid),
    ];
    for (headers, verdict) in cases {
        let (mut request, mut post) = (service.bare(Method::GET, BANKS), Post::call("list_bank_qr_banks", &json!({})));
        for (name, value) in headers {
            request = request.header(*name, *value);
            post = post.repeated(if *name == "authorization" { "authorization" } else { "x-service-api-key" }, value);
        }
        check_rest(&Service::send(request).await, &format!("{headers:?}"), verdict);
        installation.check_tool(&post.send(service).await, &format!("{headers:?}"), verdict);
    }
    let in_query = service.bare(Method::GET, &format!("{BANKS}?access_token={token}"));
    assert_eq!(Service::send(in_query).await.refusal(), (401, "UNAUTHORIZED".to_owned()));
}
