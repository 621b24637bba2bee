//! The OAuth resource server: access tokens (RFC 9068) of the one issuer that the configuration names.
//!
//! `token` reads and judges a token, `keys` an issuer's key set, both from values alone; `issuer` fetches, `gate` says when.
//! Requests never fetch themselves: one task does, so that a client which hangs up cannot stop a fetch that others wait
//! for. A signature is verified once: what it proved is kept with the keys that proved it.

mod gate;
mod issuer;
mod keys;
mod token;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;
use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, Semaphore, watch};

use self::gate::{FetchTurn, Gate};
use self::issuer::Issuer;
use self::keys::KeySet;
use self::token::UnverifiedToken;
pub(crate) use self::token::{AccessToken, TokenError, is_token};
use super::CallerLimits;
use crate::base::clock::epoch_seconds;
use crate::config::OAuthSettings;
use crate::contract::operation::Face;
use crate::egress::operators_own::DocumentError;

/// Keys that are older are used no more, however long the issuer has been down.
const USABLE_FOR: Duration = Duration::from_secs(24 * 3600);
/// Verified tokens kept at most; a full cache is begun anew.
const VERIFIED_MAX: usize = 10_000;
/// How much longer than a fetch its waiters wait.
const MARGIN: Duration = Duration::from_secs(1);
/// Requests that wait for a fetch. More are sent away, so that a slow issuer and made-up tokens do not take every place.
const WAITING_MAX: usize = 256;

/// Why a token identifies nobody.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OAuthError {
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("the issuer's keys cannot be fetched at the moment")]
    Keys { retry_after: Duration },
}

/// One issuer's tokens.
pub(crate) struct OAuth {
    issuer: Issuer,
    /// Of tokens for tools.
    tool_audiences: Vec<String>,
    /// Of tokens for REST: those for tools, and the base URL.
    rest_audiences: Vec<String>,
    /// Of each client and subject.
    pub(super) limits: CallerLimits,
    /// After which keys are old: used, and fetched again.
    renew: Duration,
    /// Absolute, for the challenges of tools.
    metadata_url: String,
    current: ArcSwapOption<KnownKeys>,
    /// Guards what its own file says; never held over an await.
    gate: Mutex<Gate>,
    wanted: Notify,
    waiting: Semaphore,
    /// Counts the fetches that have ended. Changed while the gate is held.
    ended: watch::Sender<u64>,
}

/// A key set, and the tokens that it has verified.
struct KnownKeys {
    keys: KeySet,
    fetched_at: Instant,
    verified: Verified,
}

/// Verified tokens by their SHA-256. Shared by equal key sets, and gone with a changed one. Never held over an await.
type Verified = Arc<RwLock<HashMap<[u8; 32], Arc<AccessToken>>>>;

impl OAuth {
    /// # Errors
    /// The system's trusted roots cannot be read.
    pub(crate) fn new(settings: &OAuthSettings, base_url: &str) -> Result<Self, DocumentError> {
        let tool_audiences: Vec<String> = std::iter::once(format!("{base_url}/mcp"))
            .chain(settings.audiences.iter().cloned())
            .collect();
        Ok(Self {
            issuer: Issuer::new(settings)?,
            rest_audiences: tool_audiences
                .iter()
                .cloned()
                .chain([base_url.to_owned()])
                .collect(),
            tool_audiences,
            limits: CallerLimits {
                per_second: None,
                per_minute: Some(settings.per_minute),
                per_month: settings.per_month,
            },
            renew: settings.renew_ms.time(),
            metadata_url: format!("{base_url}/.well-known/oauth-protected-resource/mcp"),
            current: ArcSwapOption::empty(),
            gate: Mutex::new(Gate::new()),
            wanted: Notify::new(),
            waiting: Semaphore::new(WAITING_MAX),
            ended: watch::Sender::new(0),
        })
    }

    /// Where clients learn which issuer to ask.
    pub(crate) fn metadata_url(&self) -> &str {
        &self.metadata_url
    }

    /// Finds what a token proves. Waits for keys where its key is not known, and the gate allows a fetch; the token is judged by
    /// the time at which they are there.
    pub(crate) async fn identify(
        &self,
        text: &str,
        face: Face,
    ) -> Result<Arc<AccessToken>, OAuthError> {
        let audiences = match face {
            Face::Rest => &self.rest_audiences,
            Face::Tool => &self.tool_audiences,
        };
        let token = match self.verified(text).await {
            Ok(token) => token
                .judge(audiences, epoch_seconds(SystemTime::now()))
                .map(|()| token)
                .map_err(OAuthError::Token),
            Err(error) => Err(error),
        };
        if let Err(reason) = &token {
            tracing::debug!(%reason, "an access token was refused");
        }
        token
    }

    async fn verified(&self, text: &str) -> Result<Arc<AccessToken>, OAuthError> {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        if let Some(known) = self.usable() {
            self.renew_if_old(&known);
            if let Some(token) = known.verified.read().get(&digest) {
                return Ok(Arc::clone(token));
            }
        }
        let unverified = UnverifiedToken::parse(text)?;
        let known = self.known_with(&unverified.kid).await?;
        let key = known
            .keys
            .find(&unverified.kid, unverified.algorithm)
            .ok_or(TokenError::Algorithm)?;
        let token = Arc::new(unverified.verify(key, self.issuer.name())?);
        let mut verified = known.verified.write();
        if verified.len() >= VERIFIED_MAX {
            verified.clear();
        }
        verified.insert(digest, Arc::clone(&token));
        Ok(token)
    }

    /// Keys with this id among them, fetched where they must be and may be.
    async fn known_with(&self, kid: &str) -> Result<Arc<KnownKeys>, OAuthError> {
        let knowing = || self.usable().filter(|known| known.keys.knows(kid));
        // Once for a fetch that began before this was asked, which may miss the key, and once for its own.
        for _ in 0..2 {
            if let Some(known) = knowing() {
                return Ok(known);
            }
            let Ok(_place) = self.waiting.try_acquire() else {
                return Err(OAuthError::Keys {
                    retry_after: self.issuer.deadline(),
                });
            };
            let (passage, mut ended) = {
                let mut gate = self.gate.lock();
                (gate.ask(Some(kid), Instant::now()), self.ended.subscribe())
            };
            match passage {
                FetchTurn::Start => self.wanted.notify_one(),
                FetchTurn::Wait => {}
                FetchTurn::Closed => break,
            }
            let waited =
                tokio::time::timeout(self.issuer.deadline() + MARGIN, ended.changed()).await;
            if passage == FetchTurn::Start || waited.is_err() {
                break;
            }
        }
        let (failed, retry_after) = {
            let gate = self.gate.lock();
            (gate.has_failed(), gate.wait(Instant::now()))
        };
        match (knowing(), failed || self.usable().is_none()) {
            (Some(known), _) => Ok(known),
            // The key may be one that the issuer would tell of.
            (None, true) => Err(OAuthError::Keys { retry_after }),
            (None, false) => Err(OAuthError::Token(TokenError::Key)),
        }
    }

    fn usable(&self) -> Option<Arc<KnownKeys>> {
        self.current
            .load_full()
            .filter(|known| known.fetched_at.elapsed() < USABLE_FOR)
    }

    /// Asks for a fetch that nobody waits for.
    fn renew_if_old(&self, known: &KnownKeys) {
        if known.fetched_at.elapsed() >= self.renew
            && self.gate.lock().ask(None, Instant::now()) == FetchTurn::Start
        {
            self.wanted.notify_one();
        }
    }

    /// Fetches keys whenever they are asked for, for as long as it is polled.
    pub(crate) async fn keep_keys(&self) -> Infallible {
        let mut place = None;
        loop {
            self.wanted.notified().await;
            let fetched = self.issuer.fetch(&mut place).await;
            let now = Instant::now();
            let mut gate = self.gate.lock();
            match fetched {
                Ok(keys) => {
                    tracing::info!(
                        issuer = self.issuer.name(),
                        keys = keys.len(),
                        "the issuer's keys were fetched"
                    );
                    self.keep(keys, now);
                    gate.fetched(now);
                }
                Err(error) => {
                    let (issuer, serving) = (self.issuer.name(), self.usable().is_some());
                    tracing::warn!(issuer, serving, cause = %error, "the issuer's keys could not be fetched");
                    gate.failed();
                }
            }
            self.ended
                .send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    fn keep(&self, keys: KeySet, fetched_at: Instant) {
        let verified = match self.current.load_full() {
            Some(known) if known.keys == keys => Arc::clone(&known.verified),
            Some(_) | None => Verified::default(),
        };
        self.current.store(Some(Arc::new(KnownKeys {
            keys,
            fetched_at,
            verified,
        })));
    }
}
