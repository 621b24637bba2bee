//! Finds out who calls, and whether its credential carries the operation's scope.
//!
//! First, because nothing is counted, read or told for a stranger: what follows is counted by the caller.

use std::time::SystemTime;

use crate::auth::oauth::OAuth;
use crate::auth::{self, AuthError, Caller, PresentedCredential};
use crate::contract::error::Refusal;
use crate::contract::operation::{Face, Scope};
use crate::stores::Store;

/// Identifies and authorizes a caller, or refuses it with the challenge of the face that it called.
pub(super) async fn identify(
    store: &Store,
    oauth: Option<&OAuth>,
    face: Face,
    scope: &Scope,
    credential: &PresentedCredential,
    now: SystemTime,
) -> Result<Caller, Refusal> {
    let metadata = oauth
        .filter(|_| face == Face::Tool)
        .map(OAuth::metadata_url);
    let refused = |error: AuthError| error.refusal(face, scope, metadata);
    let caller = auth::identify(store, oauth, credential, face, now)
        .await
        .map_err(refused)?;
    caller.authorize(scope).map_err(refused)?;
    Ok(caller)
}
