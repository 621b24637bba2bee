//! Which access tokens are taken: a list of bad ones, each of which is what a good one is but for one thing.

mod claims;
mod headers;
mod signatures;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Issuer, Options, Post, Service, Signer, now_s, outcome};

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
        let config =
            issuer.config("per_minute = 1000000\naudiences = [\"https://other.example/api\"]");
        Self {
            service: Service::start(Options {
                config,
                ..Options::default()
            })
            .await,
            issuer,
        }
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

    /// Each token comes to its verdict; and again once it was verified before, because it is judged anew each time.
    async fn check_twice(&self, cases: &[(&str, String, Verdict)]) {
        for (what, token, verdict) in cases.iter().chain(cases) {
            self.check(what, token, *verdict).await;
        }
    }

    /// None of the tokens is valid, and a good one is after all.
    async fn check_invalid(&self, cases: &[(&str, String)], good: &str) {
        for (what, token) in cases {
            self.check(what, token, Verdict::Invalid).await;
        }
        self.check("a good one after all", good, Verdict::Good)
            .await;
    }

    fn check_tool(&self, answer: &Answer, what: &str, verdict: Verdict) {
        let (status, challenge) = match verdict {
            Verdict::Good => {
                return assert_eq!(outcome(answer), "200 result #7", "{what}: {answer:?}");
            }
            Verdict::Invalid | Verdict::RestAlone => (401, INVALID),
            Verdict::Expired => (401, EXPIRED),
            Verdict::Scope => (403, INSUFFICIENT),
        };
        assert_eq!(outcome(answer), format!("{status} {status} #7"), "{what}");
        let metadata = format!(
            "{}/.well-known/oauth-protected-resource/mcp",
            self.service.base_url
        );
        let expected = format!("{challenge}, resource_metadata=\"{metadata}\"");
        assert_eq!(answer.header("www-authenticate"), expected, "{what}");
    }
}

const INVALID: &str = r#"Bearer error="invalid_token", error_description="The credential is not valid", scope="bank-qr:banks""#;
const EXPIRED: &str = r#"Bearer error="invalid_token", error_description="The access token has expired", scope="bank-qr:banks""#;
const INSUFFICIENT: &str = r#"Bearer error="insufficient_scope", error_description="The credential does not carry the scope bank-qr:banks", scope="bank-qr:banks""#;

fn check_rest(answer: &Answer, what: &str, verdict: Verdict) {
    let (status, code, challenge) = match verdict {
        Verdict::Good | Verdict::RestAlone => {
            assert_eq!(answer.status, 200, "{what}: {answer:?}");
            assert!(
                answer.headers.get("www-authenticate").is_none(),
                "{what}: {answer:?}"
            );
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

#[tokio::test]
async fn good_tokens_are_taken() {
    let installation = Installation::start().await;
    let [rsa, p256] = Signer::shared();
    let base_url = &installation.service.base_url;
    let (claims, good) = (installation.claims(), Verdict::Good);
    let typed = |kind: &str| {
        rsa.sign(
            &with(rsa.header(), "typ", json!(kind)).to_string(),
            &claims.to_string(),
        )
    };
    let claiming = |name: &str, value: Value| rsa.token(&installation.claiming(name, value));
    let mcp = format!("{base_url}/mcp");
    let cases = [
        ("RS256", rsa.token(&claims), good),
        ("ES256", p256.token(&claims), good),
        ("the long type", typed("application/at+jwt"), good),
        ("a type in capitals", typed("AT+JWT"), good),
        (
            "a header member that nobody knows",
            rsa.sign(
                &with(rsa.header(), "x", json!(1)).to_string(),
                &claims.to_string(),
            ),
            good,
        ),
        (
            "a claim that nobody knows",
            claiming("roles", json!([{ "a": [1, null] }])),
            good,
        ),
        (
            "our audience among others",
            claiming("aud", json!(["https://a.example", mcp])),
            good,
        ),
        (
            "a configured audience",
            claiming("aud", json!("https://other.example/api")),
            good,
        ),
        (
            "the base URL as the audience",
            claiming("aud", json!(base_url)),
            Verdict::RestAlone,
        ),
        ("the scope alone", claiming("scope", json!(SCOPE)), good),
        (
            "the scope twice, with spaces",
            claiming("scope", json!("  bank-qr:banks   bank-qr:banks ")),
            good,
        ),
        (
            "expired within the skew",
            claiming("exp", json!(now_s() - 1)),
            good,
        ),
        (
            "valid within the skew",
            claiming("nbf", json!(now_s() + 25)),
            good,
        ),
        (
            "issued within the skew",
            claiming("iat", json!(now_s() + 25)),
            good,
        ),
        ("valid since long ago", claiming("nbf", json!(0)), good),
    ];
    installation.check_twice(&cases).await;
    assert_eq!(installation.issuer.asked(crate::support::KEYS), 1);
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
        (
            &[("authorization", &format!("bearer {token}"))],
            Verdict::Good,
        ),
        (&[("authorization", key_bearer)], Verdict::Good),
        (&[("x-service-api-key", token)], Verdict::Invalid),
        (
            &[("x-service-api-key", token), ("authorization", bearer)],
            Verdict::Invalid,
        ),
        (
            &[("x-service-api-key", key), ("authorization", bearer)],
            Verdict::Invalid,
        ),
        (
            &[("authorization", key_bearer), ("authorization", bearer)],
            Verdict::Invalid,
        ),
        (&[("authorization", token)], Verdict::Invalid),
        (
            &[("authorization", &format!("DPoP {token}"))],
            Verdict::Invalid,
        ),
    ];
    for (headers, verdict) in cases {
        let (mut request, mut post) = (
            service.bare(Method::GET, BANKS),
            Post::call("list_bank_qr_banks", &json!({})),
        );
        for (name, value) in headers {
            request = request.header(*name, *value);
            post = post.repeated(
                if *name == "authorization" {
                    "authorization"
                } else {
                    "x-service-api-key"
                },
                value,
            );
        }
        check_rest(
            &Service::send(request).await,
            &format!("{headers:?}"),
            verdict,
        );
        installation.check_tool(&post.send(service).await, &format!("{headers:?}"), verdict);
    }
    let in_query = service.bare(Method::GET, &format!("{BANKS}?access_token={token}"));
    assert_eq!(
        Service::send(in_query).await.refusal(),
        (401, "UNAUTHORIZED".to_owned())
    );
}
