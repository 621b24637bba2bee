//! The issuer's documents: its metadata by discovery, and the key set that the metadata names.

use std::time::{Duration, Instant};

use serde::Deserialize;
use url::Url;

use super::keys::{KeySet, KeySetError};
use crate::config::OAuthSettings;
use crate::egress::operators_own::{DocumentError, OperatorsOwn};

const METADATA_BYTES_MAX: usize = 64 * 1024;
const KEY_SET_BYTES_MAX: usize = 256 * 1024;
/// How long the place of the key set is taken from metadata that was read before.
const METADATA_AGE_MAX: Duration = Duration::from_secs(3600);

/// Why no keys were fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum IssuerError {
    #[error(transparent)]
    Fetch(#[from] DocumentError),
    #[error("the issuer's metadata is not a JSON document with `issuer` and `jwks_uri`")]
    Metadata,
    #[error("the metadata names another issuer")]
    OtherIssuer,
    #[error("`jwks_uri` must be https or at the issuer's origin")]
    KeySetPlace,
    #[error(transparent)]
    KeySet(#[from] KeySetError),
    #[error("the documents did not arrive within {0:?}")]
    Deadline(Duration),
}

/// Reads one issuer's documents.
pub(super) struct Issuer {
    name: String,
    /// Where its metadata may be.
    metadata: [Url; 2],
    own: OperatorsOwn,
    deadline: Duration,
}

/// Where the key set is, and since when this is known.
pub(super) struct KeySetPlace {
    url: Url,
    read_at: Instant,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl Issuer {
    /// # Errors
    /// The system's trusted roots cannot be read.
    pub(super) fn new(settings: &OAuthSettings) -> Result<Self, DocumentError> {
        let issuer = settings.issuer_url();
        let own = OperatorsOwn::new("identity-provider", &issuer)?;
        let metadata = metadata_places(&issuer);
        Ok(Self {
            name: settings.issuer.clone(),
            metadata,
            own,
            deadline: settings.fetch_ms.time(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How long [`Issuer::fetch`] takes at most.
    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Fetches the key set, and the metadata before it where its place is not known or was known for long.
    pub(super) async fn fetch(
        &self,
        place: &mut Option<KeySetPlace>,
    ) -> Result<KeySet, IssuerError> {
        match tokio::time::timeout(self.deadline, self.fetch_both(place)).await {
            Ok(fetched) => fetched,
            Err(_) => Err(IssuerError::Deadline(self.deadline)),
        }
    }

    async fn fetch_both(&self, place: &mut Option<KeySetPlace>) -> Result<KeySet, IssuerError> {
        let known = place
            .take()
            .filter(|known| known.read_at.elapsed() < METADATA_AGE_MAX);
        let known = match known {
            Some(known) => known,
            None => KeySetPlace {
                url: self.discover().await?,
                read_at: Instant::now(),
            },
        };
        let document = self
            .own
            .fetch(&known.url, KEY_SET_BYTES_MAX, self.deadline)
            .await?;
        let keys = KeySet::parse(&document)?;
        // Kept only now: after a failure the key set may have moved.
        *place = Some(known);
        Ok(keys)
    }

    async fn discover(&self) -> Result<Url, IssuerError> {
        match self.read_metadata(&self.metadata[0]).await {
            Err(IssuerError::Fetch(_)) => self.read_metadata(&self.metadata[1]).await,
            read => read,
        }
    }

    async fn read_metadata(&self, url: &Url) -> Result<Url, IssuerError> {
        let document = self
            .own
            .fetch(url, METADATA_BYTES_MAX, self.deadline)
            .await?;
        let Metadata { issuer, jwks_uri } =
            serde_json::from_slice(&document).map_err(|_| IssuerError::Metadata)?;
        if issuer != self.name {
            return Err(IssuerError::OtherIssuer);
        }
        let place = Url::parse(&jwks_uri).map_err(|_| IssuerError::Metadata)?;
        if self.own.allows(&place) {
            Ok(place)
        } else {
            Err(IssuerError::KeySetPlace)
        }
    }
}

/// RFC 8414 puts the well-known name before the issuer's path, OpenID Connect Discovery behind it.
fn metadata_places(issuer: &Url) -> [Url; 2] {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url
    };
    [
        at(format!("/.well-known/oauth-authorization-server{path}")),
        at(format!("{path}/.well-known/openid-configuration")),
    ]
}
