//! Asks a site for its robots.txt (RFC 9309, 2.3).
//!
//! It must know nothing of what the file says.

use switchbay_sdk::http::Error;
use url::Url;

use super::Robots;
use crate::outside;

/// Redirects that are followed, other sites' included (RFC 9309, 2.3.1.2).
const REDIRECTS_MAX: u32 = 5;
/// Bytes of an answer. A site whose file is larger cannot be read, so nothing of it may be asked for.
const ANSWER_BYTES_MAX: u32 = 4 << 20;

/// Why nobody knows what a site asks. Until it is known, nothing of the site may be asked for.
#[derive(Clone, Debug)]
pub(crate) enum Unreachable {
    /// Its server failed, with this status.
    Status(u16),
    /// There was no answer.
    NoAnswer(Error),
}

/// What the site of a page asks, within so many milliseconds. A site that has no such file, or keeps it to itself (a status
/// of 4xx, or redirects without end), asks nothing.
///
/// # Errors
/// Its server failed or could not be reached.
pub(crate) async fn fetch(page: &Url, total_ms: u32) -> Result<Robots, Unreachable> {
    let mut file = page.clone();
    file.set_path("/robots.txt");
    file.set_query(None);
    file.set_fragment(None);
    let answer = outside::get(file.as_str(), |request| {
        let request = request
            .header("accept", "text/plain,*/*;q=0.5")
            .redirects(REDIRECTS_MAX);
        request.response_bytes(ANSWER_BYTES_MAX).total_ms(total_ms)
    });
    match answer.await {
        Ok(response) => match response.status() {
            200..300 => Ok(Robots::read(response.bytes())),
            status @ 500.. => Err(Unreachable::Status(status)),
            _ => Ok(Robots::default()),
        },
        Err(Error::TooManyRedirects) => Ok(Robots::default()),
        Err(error) => Err(Unreachable::NoAnswer(error)),
    }
}
