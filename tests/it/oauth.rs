//! Callers with access tokens: what they are told to ask for, what they may call, how often, and who they are to a plugin.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Answer, Document, Issuer, KEYS, METADATA, Options, Post, Service, Signer, in_one_minute, now_s,
    outcome,
};

const BANKS: &str = "/api/v1/tools/bank-qr/banks";
const GENERATE: &str = "/api/v1/tools/bank-qr";
const MISBEHAVE: &str = "/api/v1/test/misbehave";

async fn start(lines: &str) -> (Issuer, Service) {
    let [rsa, p256] = Signer::shared();
    let issuer = Issuer::start(&[rsa, p256]).await;
    let service = Service::start(Options {
        config: issuer.config(lines),
        ..Options::default()
    })
    .await;
    (issuer, service)
}

fn token(claims: &Value) -> String {
    Signer::shared()[0].token(claims)
}

fn of(mut claims: Value, client: &str, subject: &str) -> Value {
    claims["client_id"] = json!(client);
    claims["sub"] = json!(subject);
    claims
}

async fn get(service: &Service, token: &str) -> Answer {
    Service::send(service.bare(Method::GET, BANKS).bearer_auth(token)).await
}

#[tokio::test]
async fn without_an_identity_provider_a_token_is_an_unknown_credential() {
    let issuer = Issuer::start(&[&Signer::shared()[0]]).await;
    let service = Service::shared();
    let token = token(&issuer.claims(&service.base_url));
    let answer = get(service, &token).await;
    assert_eq!(answer.refusal(), (401, "UNAUTHORIZED".to_owned()));
    let answer = Post::call("list_bank_qr_banks", &json!({}))
        .bearer(&token)
        .send(service)
        .await;
    assert_eq!(outcome(&answer), "401 401 #7");
    assert!(
        !answer
            .header("www-authenticate")
            .contains("resource_metadata"),
        "{answer:?}"
    );
    assert_eq!(issuer.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn the_metadata_names_the_issuer_as_it_is_written() {
    let (issuer, service) = start("").await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let metadata = Service::send(service.bare(Method::GET, path)).await.json();
        assert_eq!(
            metadata["authorization_servers"],
            json!([issuer.url]),
            "{path}"
        );
        assert_eq!(
            metadata["resource"],
            format!("{}/mcp", service.base_url),
            "{path}"
        );
    }
    assert_eq!(
        issuer.heads(),
        Vec::<String>::new(),
        "the issuer is asked when a token comes"
    );
}

#[tokio::test]
async fn a_tool_without_a_credential_points_at_the_metadata() {
    let (_, service) = start("").await;
    let url = format!(
        "{}/.well-known/oauth-protected-resource/mcp",
        service.base_url
    );
    let answer = Post::call("list_bank_qr_banks", &json!({}))
        .send(&service)
        .await;
    let expected = format!(r#"Bearer scope="bank-qr:banks", resource_metadata="{url}""#);
    assert_eq!(
        (outcome(&answer).as_str(), answer.header("www-authenticate")),
        ("401 401 #7", expected.as_str())
    );
    let metadata = reqwest::get(&url).await.expect("it answers").status();
    assert_eq!(metadata.as_u16(), 200);
    // On REST the resource is another, which that document does not describe.
    let answer = Service::send(service.bare(Method::GET, BANKS)).await;
    assert_eq!(
        answer.header("www-authenticate"),
        r#"Bearer scope="bank-qr:banks""#
    );
}

#[tokio::test]
async fn a_token_calls_what_its_scopes_name() {
    let (issuer, service) = start("").await;
    let mut claims = issuer.claims(&service.base_url);
    claims["scope"] = json!("openid bank-qr:banks");
    let token = token(&claims);
    assert_eq!(get(&service, &token).await.status, 200);
    let generate = service.bare(Method::POST, GENERATE).bearer_auth(&token);
    let generate = Service::send(
        generate
            .header("content-type", "application/json")
            .body("{}"),
    )
    .await;
    assert_eq!(generate.refusal(), (403, "FORBIDDEN".to_owned()));
    assert!(
        generate
            .header("www-authenticate")
            .contains(r#"error="insufficient_scope""#),
        "{generate:?}"
    );
    assert!(
        generate
            .header("www-authenticate")
            .contains(r#"scope="bank-qr:generate""#),
        "{generate:?}"
    );

    let called = Post::call("list_bank_qr_banks", &json!({}))
        .bearer(&token)
        .send(&service)
        .await;
    assert_eq!(outcome(&called), "200 result #7");
    let refused = Post::call("generate_bank_qr", &json!({}))
        .bearer(&token)
        .send(&service)
        .await;
    assert_eq!(outcome(&refused), "403 403 #7");
    // A batch is refused as a whole, before any of it runs.
    let one = |id: u32, name: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name } });
    let batch = json!([one(1, "list_bank_qr_banks"), one(2, "generate_bank_qr")]);
    let refused = Post::raw(batch.to_string())
        .bearer(&token)
        .send(&service)
        .await;
    assert_eq!(outcome(&refused), "403 403");
    let good = json!([one(1, "list_bank_qr_banks"), one(2, "list_bank_qr_banks")]);
    let answer = Post::raw(good.to_string())
        .bearer(&token)
        .send(&service)
        .await;
    assert_eq!(
        (answer.status, answer.json().as_array().map(Vec::len)),
        (200, Some(2))
    );
}

#[tokio::test]
async fn client_and_subject_together_have_a_window() {
    let (issuer, service) = start("per_minute = 2").await;
    let claims = issuer.claims(&service.base_url);
    let (_, (statuses, headers)) = in_one_minute(async || {
        let fresh = format!("subject {}", uuid::Uuid::now_v7());
        let mut again = of(claims.clone(), "client-1", &fresh);
        let first = token(&again);
        again["exp"] = json!(now_s() + 299);
        again["scope"] = json!("bank-qr:banks");
        let second = token(&again);
        let other = token(&of(claims.clone(), "client-2", &fresh));
        let answers = [
            get(&service, &first).await,
            get(&service, &second).await,
            get(&service, &first).await,
            get(&service, &second).await,
            get(&service, &other).await,
        ];
        let limit = answers[2].header("x-apikey-ratelimit-limit").to_owned();
        let remaining = answers[4].header("x-apikey-ratelimit-remaining").to_owned();
        (answers.map(|answer| answer.status), (limit, remaining))
    })
    .await;
    assert_eq!(statuses, [200, 200, 429, 429, 200]);
    assert_eq!(headers, ("2".to_owned(), "1".to_owned()));
}

/// What a guest is told of its caller: the kind, and the owner.
async fn told(service: &Service, credential: &str) -> (String, String) {
    let request = service
        .bare(Method::POST, MISBEHAVE)
        .bearer_auth(credential)
        .json(&json!({ "how": "tell_caller" }));
    let answer = Service::send(request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = answer.json()["data"]["result"]
        .as_str()
        .expect("text")
        .to_owned();
    let (kind, owner) = text.split_once(' ').expect("two words");
    (kind.to_owned(), owner.to_owned())
}

#[tokio::test]
async fn a_plugin_learns_the_kind_of_its_caller_and_one_owner_for_client_and_subject() {
    let (issuer, service) = start("").await;
    let claims = issuer.claims(&service.base_url);
    let owner = async |client: &str, subject: &str| {
        let mut claims = of(claims.clone(), client, subject);
        claims["jti"] = json!(uuid::Uuid::now_v7().to_string());
        let (kind, owner) = told(&service, &token(&claims)).await;
        assert_eq!(kind, "CallerKind::Oauth");
        owner
    };
    let first = owner("ab", "c").await;
    assert_eq!(
        owner("ab", "c").await,
        first,
        "another token of theirs is theirs"
    );
    for (client, subject) in [
        ("a", "bc"),
        ("abc", "c"),
        ("ab", "d"),
        ("c", "ab"),
        ("ab\0c", "c"),
    ] {
        assert_ne!(owner(client, subject).await, first, "{client} {subject}");
    }
    let (kind, of_key) = told(&service, service.key()).await;
    assert_eq!(kind, "CallerKind::ApiKey");
    assert_ne!(of_key, first);
    // A subject that is a key's id is not that key.
    let listed = reqwest::Client::new()
        .get(format!("{}/admin/v1/keys", service.operator_url()))
        .bearer_auth(service.operator_token());
    let id = Service::send(listed).await.json()["data"]["keys"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_ne!(owner(&id, &id).await, of_key);
}

/// A text that stands nowhere else.
fn word() -> String {
    let id = uuid::Uuid::now_v7().simple().to_string();
    id.chars().rev().collect()
}

#[tokio::test]
async fn no_log_holds_a_token_or_a_claim() {
    let [rsa, p256] = Signer::shared();
    let issuer = Issuer::start(&[rsa, p256]).await;
    let arguments = vec!["--log".to_owned(), "trace".to_owned()];
    let service = Service::start(Options {
        config: issuer.config(""),
        arguments,
        ..Options::default()
    })
    .await;
    let mut claims = of(issuer.claims(&service.base_url), &word(), &word());
    claims["jti"] = json!(word());
    let mut secrets: Vec<String> = ["client_id", "sub", "jti"]
        .map(|name| claims[name].as_str().unwrap_or_default().to_owned())
        .to_vec();
    let changed = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        rsa.token(&claims)
    };
    let words = [word(), word(), word(), word()];
    let mut unknown = rsa.header();
    unknown["kid"] = json!(words[0]);
    let tokens = [
        rsa.token(&claims),
        p256.token(&claims),
        changed("aud", json!(words[1])),
        changed("iss", json!(words[2])),
        changed("scope", json!(words[3])),
        changed("exp", json!(1)),
        changed("exp", json!("soon")),
        rsa.sign(&unknown.to_string(), &claims.to_string()),
        Signer::p256("p256-1").token(&claims),
        format!("{}.{}.{}", word(), word(), word()),
    ];
    secrets.extend(words);
    for token in &tokens {
        get(&service, token).await;
        Post::call("list_bank_qr_banks", &json!({}))
            .bearer(token)
            .send(&service)
            .await;
        let request = service.bare(Method::GET, &format!("{BANKS}?access_token={token}"));
        Service::send(request.header("x-service-api-key", token)).await;
        secrets.extend(
            token
                .split('.')
                .map(|part| part[part.len() / 2 - 8..part.len() / 2 + 8].to_owned()),
        );
    }
    // Whatever the issuer says is not repeated either.
    issuer.set(
        METADATA,
        Document::Text(json!({ "issuer": secrets[0], "jwks_uri": secrets[1] }).to_string()),
    );
    issuer.set(KEYS, Document::Text(secrets[2].clone()));
    unknown["kid"] = json!(word());
    get(
        &service,
        &rsa.sign(&unknown.to_string(), &claims.to_string()),
    )
    .await;
    let lines = service.stop();
    let is_told = |text: &str| lines.iter().any(|line| line.contains(text));
    assert!(
        is_told("an access token was refused") && is_told("the issuer's keys could not be fetched"),
        "{lines:?}"
    );
    for secret in &secrets {
        let found = lines.iter().find(|line| line.contains(secret.as_str()));
        assert!(found.is_none(), "{secret} stands in {found:?}");
    }
}
