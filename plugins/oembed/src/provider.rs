//! One question to a network's oEmbed provider, in the time that is left for it.
//!
//! What the answer means is `resolved`'s to read. No message holds a URL of the provider: a secret may be in it.

use switchbay_sdk::http::{self, Cause, Error, Response};
use switchbay_sdk::{Deadline, log};
use url::Url;

use crate::networks::{Answered, Network, Post};
use crate::resolved::{self, Resolved};
use crate::settings::Settings;
use crate::trouble::Trouble;

/// The largest answer, in bytes (features, "Upstream status").
const ANSWER_BYTES_MAX: u32 = 512 * 1024;

/// Asks about a post.
///
/// # Errors
/// There is no answer, or none about this post.
pub(crate) async fn ask(
    network: &Network,
    post: &Post,
    settings: &Settings,
    deadline: Deadline,
) -> Result<Resolved, Trouble> {
    let url = url(network, post, settings)?;
    let response = fetch("GET", url.as_str(), settings, deadline)
        .await
        .map_err(|error| unsent(network, error))?;
    let answered = Answered {
        status: response.status(),
        body: response.bytes(),
        retry_after_s: response.retry_after_s(),
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
    deadline: Deadline,
) -> Result<Response, Error> {
    let ms = deadline
        .part_ms(1..=settings.request_ms())
        .ok_or(Error::TotalLate)?;
    let mut request = http::Request::new(method, url)
        .header("accept", "*/*")
        .response_bytes(ANSWER_BYTES_MAX)
        .within_ms(ms);
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
    match error.cause() {
        Cause::Late => Trouble::Timeout,
        Cause::Unreached | Cause::HeadersTooLarge => Trouble::Upstream,
        Cause::BodyTooLarge => Trouble::InvalidResponse("it is too large".to_owned()),
        Cause::Busy => Trouble::Unavailable,
        Cause::Refused(told) => {
            log::error(&format!(
                "the request to the provider of {} {told}",
                network.name
            ));
            Trouble::Unavailable
        }
    }
}
