//! An identity provider whose documents and tokens a test writes: a real HTTP server on loopback, with keys of its own.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaEncoding,
    RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::lab::{HttpServer, Reply, Then, Visit};

pub(crate) const METADATA: &str = "/.well-known/oauth-authorization-server";
pub(crate) const KEYS: &str = "/keys";

/// The server, and what its paths are answered with; a path without a document is 404.
pub(crate) struct Issuer {
    pub(crate) url: String,
    address: SocketAddr,
    documents: Arc<Mutex<HashMap<String, Document>>>,
    server: HttpServer,
    serving: Mutex<Option<JoinHandle<()>>>,
}

/// What a path is answered with.
#[derive(Clone)]
pub(crate) enum Document {
    Text(String),
    /// A redirect to this place.
    Redirect(String),
    Failure,
    /// The head of an answer, and then nothing.
    Silence,
    /// This text, once it may be told.
    Held(String, Arc<Notify>),
}

impl Issuer {
    /// One that publishes these keys.
    pub(crate) async fn start(keys: &[&Signer]) -> Self {
        let issuer = Self::down().await;
        issuer.publish(keys);
        issuer.up().await;
        issuer
    }

    /// One that has an address, publishes its metadata and no keys, and does not answer yet.
    pub(crate) async fn down() -> Self {
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|bound| bound.local_addr())
            .expect("a port");
        let documents: Arc<Mutex<HashMap<String, Document>>> = Arc::default();
        let known = Arc::clone(&documents);
        let server = HttpServer::patient(move |visit| {
            let document = known.lock().expect("no panic").get(&visit.path).cloned();
            answer(document)
        });
        let url = format!("http://{address}");
        let issuer = Self {
            url,
            address,
            documents,
            server,
            serving: Mutex::default(),
        };
        let metadata = json!({ "issuer": issuer.url, "jwks_uri": format!("{}{KEYS}", issuer.url) });
        issuer.set(METADATA, Document::Text(metadata.to_string()));
        issuer
    }

    /// Answers from now on.
    pub(crate) async fn up(&self) {
        let listener = TcpListener::bind(self.address).expect("the port is free");
        *self.serving.lock().expect("no panic") = Some(self.server.accept(listener, None));
    }

    /// Refuses connections from now on.
    pub(crate) async fn stop(&self) {
        let serving = self
            .serving
            .lock()
            .expect("no panic")
            .take()
            .expect("it serves");
        serving.abort();
        assert!(serving.await.is_err_and(|ended| ended.is_cancelled()));
    }

    pub(crate) fn set(&self, path: &str, document: Document) {
        self.documents
            .lock()
            .expect("no panic")
            .insert(path.to_owned(), document);
    }

    /// Publishes these keys in the place of those before.
    pub(crate) fn publish(&self, keys: &[&Signer]) {
        self.publish_raw(keys.iter().map(|key| key.jwk()).collect());
    }

    pub(crate) fn publish_raw(&self, keys: Vec<Value>) {
        self.set(KEYS, Document::Text(json!({ "keys": keys }).to_string()));
    }

    /// How often a path was asked for.
    pub(crate) fn asked(&self, path: &str) -> usize {
        let visits = self.server.visits();
        let is_one = |visit: &&Visit| visit.method == "GET" && visit.path == path;
        visits.iter().filter(is_one).count()
    }

    /// The heads of all requests.
    pub(crate) fn heads(&self) -> Vec<String> {
        let visits = self.server.visits();
        visits.into_iter().map(|visit| visit.head).collect()
    }

    /// The configuration that trusts it, with more lines of its table.
    pub(crate) fn config(&self, lines: &str) -> String {
        format!("[oauth]\nissuer = \"{}\"\n{lines}\n", self.url)
    }

    /// What a good token of its for the tools of a service says.
    pub(crate) fn claims(&self, base_url: &str) -> Value {
        claims(&self.url, base_url)
    }
}

/// What a good token of an issuer's says.
pub(crate) fn claims(issuer: &str, base_url: &str) -> Value {
    json!({
        "iss": issuer,
        "aud": format!("{base_url}/mcp"),
        "sub": "subject-1",
        "client_id": "client-1",
        "scope": "bank-qr:banks bank-qr:generate test:misbehave",
        "iat": now_s(),
        "exp": now_s() + 300,
        "jti": Uuid::now_v7().to_string(),
    })
}

async fn answer(document: Option<Document>) -> Reply {
    match document {
        Some(Document::Text(body)) => Reply::bare(200, body),
        Some(Document::Held(body, told)) => {
            told.notified().await;
            Reply::bare(200, body)
        }
        Some(Document::Redirect(to)) => Reply::redirect(302, to).header("set-cookie", "a=b"),
        Some(Document::Failure) => Reply::bare(500, ""),
        Some(Document::Silence) => {
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
            Reply::Raw(head.to_vec(), Then::Hang)
        }
        None => Reply::bare(404, ""),
    }
}

/// A key pair with its id.
pub(crate) struct Signer {
    pub(crate) kid: String,
    pair: Pair,
}

enum Pair {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
}

impl Signer {
    pub(crate) fn rsa(kid: &str) -> Self {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
        Self {
            kid: kid.to_owned(),
            pair: Pair::Rsa(pair),
        }
    }

    pub(crate) fn p256(kid: &str) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        Self {
            kid: kid.to_owned(),
            pair: Pair::P256(pair),
        }
    }

    /// The pair of RSA and P-256 that most tests use; RSA keys take a while to find.
    pub(crate) fn shared() -> &'static [Self; 2] {
        static SHARED: OnceLock<[Signer; 2]> = OnceLock::new();
        SHARED.get_or_init(|| [Self::rsa("rsa-1"), Self::p256("p256-1")])
    }

    pub(crate) fn alg(&self) -> &'static str {
        match self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::P256(_) => "ES256",
        }
    }

    /// The public key in DER, as a library has it.
    pub(crate) fn public(&self) -> &[u8] {
        match &self.pair {
            Pair::Rsa(pair) => pair.public_key().as_ref(),
            Pair::P256(pair) => pair.public_key().as_ref(),
        }
    }

    /// The public key as it is published.
    pub(crate) fn jwk(&self) -> Value {
        let public = self.public();
        let mut key = match &self.pair {
            Pair::Rsa(_) => {
                // A sequence of two integers: 9 bytes of lengths and a zero, the modulus, 2 bytes of lengths, the exponent.
                assert_eq!(public.len(), 270);
                json!({ "kty": "RSA", "n": encode(&public[9..265]), "e": encode(&public[267..]) })
            }
            Pair::P256(_) => {
                json!({ "kty": "EC", "crv": "P-256", "x": encode(&public[1..33]), "y": encode(&public[33..]) })
            }
        };
        key["kid"] = json!(self.kid);
        key["alg"] = json!(self.alg());
        key["use"] = json!("sig");
        key
    }

    /// The header of a good token of this key's.
    pub(crate) fn header(&self) -> Value {
        json!({ "typ": "at+jwt", "alg": self.alg(), "kid": self.kid })
    }

    /// A token with these claims.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.sign(&self.header().to_string(), &claims.to_string())
    }

    /// Signs any two texts.
    pub(crate) fn sign(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", encode(header), encode(claims));
        let signature = match &self.pair {
            Pair::Rsa(pair) => rsa_signature(pair, &RSA_PKCS1_SHA256, &message),
            Pair::P256(pair) => pair
                .sign(&SystemRandom::new(), message.as_bytes())
                .expect("signed")
                .as_ref()
                .to_vec(),
        };
        format!("{message}.{}", encode(signature))
    }

    /// Signs with another padding of RSA.
    pub(crate) fn sign_by(
        &self,
        encoding: &'static dyn RsaEncoding,
        header: &Value,
        claims: &Value,
    ) -> String {
        let Pair::Rsa(pair) = &self.pair else {
            panic!("an RSA key signs by an RSA encoding")
        };
        let message = format!(
            "{}.{}",
            encode(header.to_string()),
            encode(claims.to_string())
        );
        format!(
            "{message}.{}",
            encode(rsa_signature(pair, encoding, &message))
        )
    }
}

fn rsa_signature(pair: &RsaKeyPair, encoding: &'static dyn RsaEncoding, message: &str) -> Vec<u8> {
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(
        encoding,
        &SystemRandom::new(),
        message.as_bytes(),
        &mut signature,
    )
    .expect("signed");
    signature
}

/// As the parts of a token are encoded.
pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}
