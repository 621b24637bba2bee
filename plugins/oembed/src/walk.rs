//! From a short link to the post that it leads to, hop by hop.
//!
//! Each hop is judged before it is asked for: here by the network's own sites, and at the gate by what is granted and public.
//! The walk ends as soon as a hop is the URL of a post: the post itself is never fetched.

use switchbay_sdk::http::{Cause, Denial, Error, Response};
use switchbay_sdk::{Deadline, log};

use crate::address::Address;
use crate::networks::Place;
use crate::provider::fetch;
use crate::settings::Settings;
use crate::trouble::Trouble;

/// Redirects that are followed (features, "Redirect walk").
const HOPS_MAX: usize = 5;

/// The URL of the post that a short link leads to.
///
/// # Errors
/// It leads to none, or not in time.
pub(crate) async fn follow(
    mut at: Address,
    settings: &Settings,
    deadline: Deadline,
) -> Result<String, Trouble> {
    // A short link is its path; what else it was shared with is nobody's business.
    at.url.set_query(None);
    let mut seen = vec![at.url.clone()];
    for _ in 0..HOPS_MAX {
        let Some(location) = next(&at, settings, deadline).await? else {
            return Err(Trouble::Unresolved);
        };
        let to = at.redirected(&location).map_err(landed)?;
        if !std::ptr::eq(to.network, at.network) || seen.contains(&to.url) {
            return Err(Trouble::Unresolved);
        }
        match &to.place {
            Place::Post(post) => return Ok(post.url.clone()),
            Place::Login => return Err(Trouble::Private),
            Place::Short | Place::Other => seen.push(to.url.clone()),
        }
        at = to;
    }
    Err(Trouble::Unresolved)
}

/// What a redirect to nowhere of ours says of the short link.
fn landed(trouble: Trouble) -> Trouble {
    match trouble {
        unsafe_one @ Trouble::Unsafe(_) => unsafe_one,
        _ => Trouble::Unresolved,
    }
}

/// Where a hop leads: asked for without its page first, because that is what some sites redirect.
async fn next(
    at: &Address,
    settings: &Settings,
    deadline: Deadline,
) -> Result<Option<String>, Trouble> {
    let head = fetch("HEAD", at.url.as_str(), settings, deadline).await;
    let head = match head {
        Err(Error::BadResponse(_)) => None,
        other => Some(other.map_err(|error| unsent(at, error))?),
    };
    if let Some(location) = head.as_ref().and_then(Response::redirect) {
        return Ok(Some(location.to_owned()));
    }
    let got = match fetch("GET", at.url.as_str(), settings, deadline).await {
        // A page, and no redirect.
        Err(Error::BodyTooLarge) => return Ok(None),
        other => other.map_err(|error| unsent(at, error))?,
    };
    match got.status() {
        429 => Err(Trouble::rate_limited(got.retry_after_s())),
        500..=599 => Err(Trouble::Upstream),
        _ => Ok(got.redirect().map(str::to_owned)),
    }
}

fn unsent(at: &Address, error: Error) -> Trouble {
    if let Error::Denied(Denial::NotPublic(rule)) | Error::RedirectDenied(Denial::NotPublic(rule)) =
        error
    {
        return Trouble::Unsafe(rule);
    }
    match error.cause() {
        Cause::Late => Trouble::Timeout,
        Cause::Unreached | Cause::HeadersTooLarge | Cause::BodyTooLarge => Trouble::Upstream,
        Cause::Busy => Trouble::Unavailable,
        Cause::Refused(told) => {
            log::error(&format!(
                "following a short link of {} {told}",
                at.network.name
            ));
            Trouble::Unavailable
        }
    }
}
