//! Asks the outside for pages: nothing else in this plugin does, but for the search itself.
//!
//! The host sends the operator's keys along where a request goes to the address that they are bound to. Which pages are asked
//! for is callers' to say, so none of these requests may go to a search provider. It must know nothing of what a page is.

use switchbay_sdk::http::{self, Denial, Error, Request, Response};
use url::Url;

use crate::{search, site};

/// Judges, before anything is asked for, whether there may be a page at a URL, with the lookup of its host within so many
/// milliseconds.
///
/// # Errors
/// It is nothing that may be asked for; or nobody knows where its name leads, which no later request needs to find so.
pub(crate) async fn judge(url: &Url, at_most_ms: u32) -> Result<(), Error> {
    refuse_provider(url.as_str()).map_err(Error::Denied)?;
    http::judge("GET", url.as_str(), at_most_ms).await
}

/// Asks for what is at a URL, by a request that the caller completes.
///
/// # Errors
/// There is no answer, or none that is anybody's to read.
pub(crate) async fn get(
    url: &str,
    complete: impl FnOnce(Request) -> Request,
) -> Result<Response, Error> {
    refuse_provider(url).map_err(Error::Denied)?;
    // Pages link to names with a dot at their end, which the gate does not take.
    let url = Url::parse(url).map_or_else(|_| url.to_owned(), |url| site::plain(url).into());
    let response = complete(http::get(url)).send().await?;
    refuse_provider(response.url()).map_err(Error::RedirectDenied)?;
    Ok(response)
}

/// Says no more than that: whom searches are asked of is not for callers to find out.
fn refuse_provider(url: &str) -> Result<(), Denial> {
    if search::is_provider(url) {
        return Err(Denial::NotPublic(
            "pages of this host cannot be read".to_owned(),
        ));
    }
    Ok(())
}
