//! One request to the provider, in the time that is left for it.
//!
//! This alone of the search reaches out. What a provider says of a failure is never passed on: it may hold the operator's key
//! or plan.

use switchbay_sdk::http::{Cause, Error, Request, Response};
use switchbay_sdk::{Deadline, log};

use super::answer::SearchAnswer;
use super::brave;
use super::settings::Provider;
use super::trouble::Trouble;

/// The largest answer, in bytes. Most have a hundredth of it, but for those with the content of pages.
const ANSWER_BYTES_MAX: u32 = 4 << 20;

/// Makes the request and reads its answer.
///
/// # Errors
/// There is no answer that can be used.
pub(super) async fn ask(
    provider: &Provider,
    request: Request,
    deadline: Deadline,
) -> Result<SearchAnswer, Trouble> {
    let ms = deadline.part_ms(1..=u32::MAX).ok_or(Trouble::Late)?;
    let request = request.response_bytes(ANSWER_BYTES_MAX).within_ms(ms);
    let response = request.send().await.map_err(unsent)?;
    check(provider, &response)?;
    provider.read(response.bytes()).map_err(|error| {
        // The kind of the error alone: its text may quote what was searched for.
        let (kind, line) = (error.classify(), error.line());
        log::warn(&format!(
            "the search provider's response could not be read: {kind:?} in line {line}"
        ));
        Trouble::Unreadable
    })
}

/// What a status that is none of success means.
fn check(provider: &Provider, response: &Response) -> Result<(), Trouble> {
    let refused = || {
        let hint = match provider {
            Provider::Searxng { .. } => "its `search.formats` setting must include `json`",
            Provider::Brave => "its key must be bound to the header `x-subscription-token`",
            Provider::Tavily { .. } => {
                "its key must be bound to the header `authorization`, with the prefix `Bearer `"
            }
        };
        log::error(&format!("the search provider refused the request: {hint}"));
        Trouble::Refused
    };
    match response.status() {
        200..=299 => Ok(()),
        401 | 403 => Err(refused()),
        422 if *provider == Provider::Brave && brave::refuses_key(response.bytes()) => {
            Err(refused())
        }
        402 | 432 | 433 => {
            log::error("the search provider reports that the plan is used up");
            Err(Trouble::Exhausted)
        }
        429 => Err(Trouble::throttled(wait_s(provider, response))),
        500..=599 => Err(Trouble::Failed),
        status => {
            log::warn(&format!("the search provider returned status {status}"));
            Err(Trouble::Unreadable)
        }
    }
}

/// How long it asks to wait, where it says so.
fn wait_s(provider: &Provider, response: &Response) -> Option<u64> {
    let said = response.retry_after_s();
    match provider {
        Provider::Brave => said.or_else(|| brave::reset_s(response)),
        Provider::Searxng { .. } | Provider::Tavily { .. } => said,
    }
}

fn unsent(error: Error) -> Trouble {
    match error.cause() {
        Cause::Late => Trouble::Late,
        Cause::HeadersTooLarge | Cause::BodyTooLarge => Trouble::TooLarge,
        Cause::Unreached => Trouble::Unreached,
        Cause::Busy => Trouble::Busy,
        Cause::Refused(told) => {
            log::error(&format!("the request to the search provider {told}"));
            Trouble::Denied
        }
    }
}
