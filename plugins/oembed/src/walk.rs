//! From a short link to the post that it leads to, hop by hop.
//!
//! Each hop is judged before it is asked for: here by the network's own sites, and at the gate by what is granted and public.
//! The walk ends as soon as a hop is the URL of a post: the post itself is never fetched.

use switchbay_sdk::http::{Denial, Error, Response};
use switchbay_sdk::log;

use crate::address::Address;
use crate::networks::Place;
use crate::provider::{Budget, fetch};
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
    budget: Budget,
) -> Result<String, Trouble> {
    // A short link is its path; what else it was shared with is nobody's business.
    at.url.set_query(None);
    let mut seen = vec![at.url.clone()];
    for _ in 0..HOPS_MAX {
        let Some(location) = next(&at, settings, budget).await? else {
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
    budget: Budget,
) -> Result<Option<String>, Trouble> {
    let head = fetch("HEAD", at.url.as_str(), settings, budget).await;
    let head = match head {
        Err(Error::BadResponse(_)) => None,
        other => Some(other.map_err(|error| unsent(at, error))?),
    };
    if let Some(location) = head.as_ref().and_then(location) {
        return Ok(Some(location));
    }
    let got = match fetch("GET", at.url.as_str(), settings, budget).await {
        // A page, and no redirect.
        Err(Error::BodyTooLarge) => return Ok(None),
        other => other.map_err(|error| unsent(at, error))?,
    };
    match got.status() {
        429 => {
            let wait = got
                .header("retry-after")
                .and_then(|value| value.parse().ok());
            Err(Trouble::rate_limited(wait))
        }
        500..=599 => Err(Trouble::Upstream),
        _ => Ok(location(&got)),
    }
}

fn location(response: &Response) -> Option<String> {
    let is_redirect = matches!(response.status(), 301 | 302 | 303 | 307 | 308);
    response
        .header("location")
        .filter(|_| is_redirect)
        .map(str::to_owned)
}

fn unsent(at: &Address, error: Error) -> Trouble {
    match error {
        Error::FirstByteLate | Error::Idle | Error::TotalLate => Trouble::Timeout,
        Error::Denied(Denial::NotPublic(rule)) | Error::RedirectDenied(Denial::NotPublic(rule)) => {
            Trouble::Unsafe(rule)
        }
        Error::Denied(denial) | Error::RedirectDenied(denial) => {
            let (Denial::NotGranted(rule) | Denial::NotPublic(rule) | Denial::NotAcceptable(rule)) =
                denial;
            log::error(&format!(
                "following a short link of {} was denied: {rule}",
                at.network.name
            ));
            Trouble::Unavailable
        }
        Error::Busy | Error::InvalidRequest(_) => Trouble::Unavailable,
        Error::Unresolved
        | Error::Unreachable
        | Error::BadResponse(_)
        | Error::TooManyRedirects
        | Error::HeadersTooLarge
        | Error::BodyTooLarge => Trouble::Upstream,
    }
}
