//! Asks the outside for pages: nothing else in this plugin does, but for the search itself.
//!
//! The host sends the operator's keys along where a request goes to the address that they are bound to. Which pages are asked
//! for is callers' to say, so none of these requests may go to a search provider. It must know nothing of what a page is.

use switchbay_sdk::http::{self, Denial, Error, Request, Response};

use crate::search;

/// Whether a URL may be a page to read, as far as this plugin has a say.
pub(crate) fn is_anybodys(url: &str) -> bool {
    !search::is_provider(url)
}

/// Asks for what is at a URL, by a request that the caller completes.
///
/// # Errors
/// There is no answer, or none that is anybody's to read.
pub(crate) async fn get(url: &str, complete: impl FnOnce(Request) -> Request) -> Result<Response, Error> {
    let denial = || Denial::NotPublic("the search provider's host is no place of pages".to_owned());
    if !is_anybodys(url) {
        return Err(Error::Denied(denial()));
    }
    let response = complete(http::get(url)).send().await?;
    match is_anybodys(response.url()) {
        true => Ok(response),
        false => Err(Error::RedirectDenied(denial())),
    }
}
