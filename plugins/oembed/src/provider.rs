//! One question to a network's oEmbed provider, in the time that is left for it.
//!
//! What the answer means is `resolved`'s to read. No message holds a URL of the provider: a secret may be in it.

use std::time::{Duration, Instant};

use switchbay_sdk::http::{self, Denial, Error, Response};
use switchbay_sdk::log;
use url::Url;

use crate::networks::{Answered, Network, Post};
use crate::resolved::{self, Resolved};
use crate::settings::Settings;
use crate::trouble::Trouble;

/// The largest answer, in bytes (features, "Upstream status").
const ANSWER_BYTES_MAX: u32 = 512 * 1024;

/// The time that one call has for all that it asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    ends: Instant,
    request_ms: u32,
}

impl Budget {
    /// So long from now on, and so long for each request.
    pub(crate) fn new(whole_ms: u32, request_ms: u32) -> Self {
        Self {
            ends: Instant::now() + Duration::from_millis(u64::from(whole_ms)),
            request_ms,
        }
    }

    /// What the next request may take, in milliseconds.
    ///
    /// # Errors
    /// Nothing is left.
    pub(crate) fn request_ms(&self) -> Result<u32, Trouble> {
        let left = self
            .ends
            .saturating_duration_since(Instant::now())
            .as_millis();
        match u32::try_from(left).unwrap_or(u32::MAX).min(self.request_ms) {
            0 => Err(Trouble::Timeout),
            ms => Ok(ms),
        }
    }
}

/// Asks about a post.
///
/// # Errors
/// There is no answer, or none about this post.
pub(crate) async fn ask(
    network: &Network,
    post: &Post,
    settings: &Settings,
    budget: Budget,
) -> Result<Resolved, Trouble> {
    let url = url(network, post, settings)?;
    let response = fetch("GET", url.as_str(), settings, budget)
        .await
        .map_err(|error| unsent(network, error))?;
    let retry_after_s = response
        .header("retry-after")
        .and_then(|value| value.parse().ok());
    let answered = Answered {
        status: response.status(),
        body: response.bytes(),
        retry_after_s,
    };
    let read = resolved::read(network, post, &answered);
    if let Err(Trouble::Unavailable) = read {
        log::error(&format!(
            "the provider of {} rejected the credentials or requires them",
            network.name
        ));
    }
    read
}

/// Makes one request, which follows no redirect.
///
/// # Errors
/// There is no answer.
pub(crate) async fn fetch(
    method: &str,
    url: &str,
    settings: &Settings,
    budget: Budget,
) -> Result<Response, Error> {
    let ms = budget.request_ms().map_err(|_| Error::TotalLate)?;
    let mut request = http::Request::new(method, url)
        .header("accept", "*/*")
        .response_bytes(ANSWER_BYTES_MAX)
        .total_ms(ms)
        .first_byte_ms(ms)
        .idle_ms(ms);
    if let Some(agent) = &settings.user_agent {
        request = request.header("user-agent", agent);
    }
    request.send().await
}

/// Where a provider is asked about a post.
fn url(network: &Network, post: &Post, settings: &Settings) -> Result<Url, Trouble> {
    let base = settings
        .base_url
        .as_deref()
        .unwrap_or(network.provider.base_url);
    let version = settings.version.as_deref().or(network.provider.version);
    let path: Vec<&str> = version.into_iter().chain([post.resource]).collect();
    let broken = |_| {
        log::error(&format!(
            "the setting `{}.base_url` or `{0}.version` does not make a valid URL",
            network.name
        ));
        Trouble::Unavailable
    };
    let mut url = Url::parse(base)
        .and_then(|base| base.join(&path.join("/")))
        .map_err(broken)?;
    url.query_pairs_mut()
        .append_pair("url", post.asked.as_deref().unwrap_or(&post.url))
        .extend_pairs(network.provider.query);
    Ok(url)
}

fn unsent(network: &Network, error: Error) -> Trouble {
    match error {
        Error::FirstByteLate | Error::Idle | Error::TotalLate => Trouble::Timeout,
        Error::Unresolved
        | Error::Unreachable
        | Error::BadResponse(_)
        | Error::TooManyRedirects
        | Error::HeadersTooLarge => Trouble::Upstream,
        Error::BodyTooLarge => Trouble::InvalidResponse("it is too large".to_owned()),
        Error::Busy => Trouble::Unavailable,
        Error::Denied(denial) | Error::RedirectDenied(denial) => {
            let (Denial::NotGranted(rule) | Denial::NotPublic(rule) | Denial::NotAcceptable(rule)) =
                denial;
            log::error(&format!(
                "the request to the provider of {} was denied: {rule}",
                network.name
            ));
            Trouble::Unavailable
        }
        Error::InvalidRequest(rule) => {
            log::error(&format!(
                "the request to the provider of {} is invalid: {rule}",
                network.name
            ));
            Trouble::Unavailable
        }
    }
}
