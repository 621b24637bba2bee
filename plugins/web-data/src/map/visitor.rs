//! Asks for what a map wants to see, within the time that there is for a map.
//!
//! It must know nothing of what is asked for. At most two requests are under way at a time, and where a site wants a pause
//! between two requests, one, and then the pause.

use std::time::Duration;

use futures::future::join_all;
use switchbay_sdk::Deadline;
use switchbay_sdk::http::{self, Error, Response};
use url::Url;

use crate::outside;

/// Requests are made for so long; what is left of the operation's budget is for reading the last of them.
const TIME: Duration = Duration::from_secs(21);
/// The most that one of them may take, so that one that hangs leaves time for others.
const REQUEST_MS_MAX: u32 = 8000;
/// What is too short for a request.
const LEFT_MIN: Duration = Duration::from_millis(500);
/// Requests at a time, as many as a crawl has.
const AT_ONCE: usize = 2;
/// The longest pause that is kept; who asks for more gets fewer pages mapped, not a map that never ends.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// One map's way to the outside.
#[derive(Debug)]
pub(super) struct Visitor {
    ends: Deadline,
    pause: Duration,
    /// When the next request may be made.
    free: Deadline,
}

/// What is asked for, and how.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) url: &'a Url,
    pub(super) accept: &'a str,
    pub(super) redirects: u32,
    pub(super) bytes_max: u32,
}

impl Visitor {
    pub(super) fn new() -> Self {
        Self {
            ends: Deadline::after(TIME),
            pause: Duration::ZERO,
            free: Deadline::after(Duration::ZERO),
        }
    }

    /// Keeps the pause that a site asks for, from its answer on.
    pub(super) fn heed(&mut self, delay: Option<Duration>) {
        self.pause = delay.unwrap_or_default().min(PAUSE_MAX);
        self.free = Deadline::after(self.pause);
    }

    /// Whether there is no time for another request.
    pub(super) fn is_over(&self) -> bool {
        self.free.left() + LEFT_MIN > self.ends.left()
    }

    /// How many requests may be made at a time.
    pub(super) fn at_once(&self) -> usize {
        if self.pause.is_zero() { AT_ONCE } else { 1 }
    }

    /// Milliseconds for the next request.
    pub(super) fn request_ms(&self) -> u32 {
        self.ends.part_ms(1..=REQUEST_MS_MAX).unwrap_or(1)
    }

    /// Makes these requests, no more than [`Self::at_once`] of them, and gives back their answers in their order.
    pub(super) async fn ask(&mut self, requests: &[Request<'_>]) -> Vec<Result<Response, Error>> {
        if self.is_over() {
            return requests.iter().map(|_| Err(Error::TotalLate)).collect();
        }
        // Nothing else is under way in this call.
        std::thread::sleep(self.free.left());
        let total_ms = self.request_ms();
        let answers = join_all(requests.iter().map(|request| request.send(total_ms))).await;
        self.free = Deadline::after(self.pause);
        answers
    }
}

impl Request<'_> {
    async fn send(&self, total_ms: u32) -> Result<Response, Error> {
        let complete = |request: http::Request| {
            let request = request
                .header("accept", self.accept)
                .redirects(self.redirects);
            request.response_bytes(self.bytes_max).total_ms(total_ms)
        };
        outside::get(self.url.as_str(), complete).await
    }
}
