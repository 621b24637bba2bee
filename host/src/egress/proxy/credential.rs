//! Credentials: what the proxy was lent to whom, and until when.
//!
//! A credential is 256 random bits, kept as their digest alone. It ends when its time is over, when its lease is dropped, and
//! when the revision whose rights it carries is gone; its tunnels end with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use crate::egress::EgressClient;

/// Credentials that live at once.
const LENT_MAX: usize = 256;

/// What a credential carries.
pub(super) struct LeaseGrant {
    pub(super) door: EgressClient,
    /// Whom it was lent to, for the audit.
    pub(super) lent_to: Arc<str>,
    pub(super) until: Instant,
    /// Cancelled when it is over before that.
    pub(super) ended: CancellationToken,
}

type Digest = [u8; 32];

/// All credentials that live.
#[derive(Default)]
pub(super) struct ProxyLeases {
    /// By the digest of the user's name, a colon and the password: two that are compared are digests, so that the time it takes tells
    /// nothing. Never held over an await.
    grants: Mutex<HashMap<Digest, Arc<LeaseGrant>>>,
}

/// As many credentials live as may.
#[derive(Debug, thiserror::Error)]
#[error("{LENT_MAX} proxy credentials are in use, which is the limit; try again when one expires")]
pub(crate) struct TooManyLent;

/// A credential, for as long as this is held.
pub(crate) struct ProxyLease {
    lent: Arc<ProxyLeases>,
    digest: Digest,
    ended: CancellationToken,
    pub(crate) user: String,
    pub(crate) password: String,
}

impl ProxyLeases {
    /// Lends the door for a time. It ends with `gone`, too.
    pub(super) fn lend(
        self: &Arc<Self>,
        door: EgressClient,
        lent_to: &str,
        time: Duration,
        gone: &CancellationToken,
    ) -> Result<ProxyLease, TooManyLent> {
        let random: [u8; 32] = rand::rng().random();
        let (user, password) = (door.plugin().to_owned(), URL_SAFE_NO_PAD.encode(random));
        let digest = digest(format!("{user}:{password}").as_bytes());
        let ended = gone.child_token();
        let grant = LeaseGrant {
            door,
            lent_to: lent_to.into(),
            until: Instant::now() + time,
            ended: ended.clone(),
        };
        let mut grants = self.grants.lock();
        grants.retain(|_, grant| grant.lives());
        if grants.len() >= LENT_MAX {
            return Err(TooManyLent);
        }
        grants.insert(digest, Arc::new(grant));
        Ok(ProxyLease {
            lent: Arc::clone(self),
            digest,
            ended,
            user,
            password,
        })
    }

    /// What the value of `Proxy-Authorization` opens.
    pub(super) fn find(&self, value: Option<&str>) -> Option<Arc<LeaseGrant>> {
        let (scheme, encoded) = value?.split_once(' ')?;
        let basic = scheme
            .eq_ignore_ascii_case("basic")
            .then(|| STANDARD.decode(encoded.trim()).ok())??;
        let digest = digest(&basic);
        let grants = self.grants.lock();
        grants.get(&digest).filter(|grant| grant.lives()).cloned()
    }

    pub(super) fn count(&self) -> usize {
        let grants = self.grants.lock();
        grants.values().filter(|grant| grant.lives()).count()
    }
}

impl LeaseGrant {
    fn lives(&self) -> bool {
        Instant::now() < self.until && !self.ended.is_cancelled()
    }
}

impl Drop for ProxyLease {
    fn drop(&mut self) {
        self.ended.cancel();
        self.lent.grants.lock().remove(&self.digest);
    }
}

fn digest(text: &[u8]) -> Digest {
    Sha256::digest(text).into()
}
