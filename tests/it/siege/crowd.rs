//! Honest callers: four with cheap calls and four that scrape, each with an address and a key of its own.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use crate::support::Service;

/// How often each calls, where its last call is answered by then. So they take about a third of two processors in a quiet
/// time; were those nearly used up, a comparison would tell of the machine and not of the shares.
const PACE: Duration = Duration::from_millis(100);
/// How long a caller waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Cheap,
    Scrape,
}

struct Caller {
    kind: Kind,
    client: Client,
    key: String,
    url: String,
    body: Value,
}

pub(super) struct Crowd(Vec<Arc<Caller>>);

/// How long calls took, in the order of their lengths, and what became of those that failed.
#[derive(Default)]
pub(super) struct Latencies {
    cheap: Vec<Duration>,
    scrape: Vec<Duration>,
    pub(super) failures: Vec<String>,
}

/// How many times longer calls took than others: the median and the 99th percentile, of cheap calls and of scrapes.
pub(super) struct Slower {
    cheap: (f64, f64),
    scrape: (f64, f64),
}

impl Crowd {
    pub(super) fn gather(service: &Service) -> Self {
        let callers = (1..=8).map(|number| {
            let kind = if number <= 4 {
                Kind::Cheap
            } else {
                Kind::Scrape
            };
            let (path, body) = match kind {
                Kind::Cheap => (
                    "/api/v1/tools/bank-qr",
                    json!({ "bank": "VCB", "accountNumber": "0011001234567" }),
                ),
                Kind::Scrape => (
                    "/api/v1/web/scrape",
                    json!({ "url": format!("http://good.test/{number}") }),
                ),
            };
            let address = IpAddr::V4(Ipv4Addr::new(127, 0, 1, number));
            let client = Client::builder()
                .local_address(address)
                .timeout(PATIENCE)
                .build()
                .expect("a client");
            let key = service.issue(&["--all-scopes", "--window", "web-data.scrape=100000"]);
            Arc::new(Caller {
                kind,
                client,
                key,
                url: format!("{}{path}", service.base_url),
                body,
            })
        });
        Self(callers.collect())
    }

    /// Lets all of them call for a while.
    pub(super) async fn call_for(&self, time: Duration) -> Latencies {
        let calling = self
            .0
            .iter()
            .map(|caller| tokio::spawn(Arc::clone(caller).call_for(time)));
        let mut all = Latencies::default();
        for (kind, taken, failures) in join_all(calling)
            .await
            .into_iter()
            .map(|ended| ended.expect("no caller panics"))
        {
            match kind {
                Kind::Cheap => all.cheap.extend(taken),
                Kind::Scrape => all.scrape.extend(taken),
            }
            all.failures.extend(failures);
        }
        all.cheap.sort_unstable();
        all.scrape.sort_unstable();
        all
    }
}

impl Caller {
    async fn call_for(self: Arc<Self>, time: Duration) -> (Kind, Vec<Duration>, Vec<String>) {
        let (mut taken, mut failures) = (Vec::new(), Vec::new());
        let end = Instant::now() + time;
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while Instant::now() < end {
            pace.tick().await;
            let begun = Instant::now();
            match self.call().await {
                Ok(()) => taken.push(begun.elapsed()),
                Err(failure) => failures.push(format!("{failure} after {:?}", begun.elapsed())),
            }
        }
        (self.kind, taken, failures)
    }

    async fn call(&self) -> Result<(), String> {
        let sent = self
            .client
            .post(&self.url)
            .bearer_auth(&self.key)
            .json(&self.body)
            .send()
            .await;
        let answer = sent.map_err(|error| format!("{error:?}"))?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| format!("{error:?}"))?;
        if status != 200 {
            return Err(format!("{status} {text}"));
        }
        let whole = if self.kind == Kind::Cheap {
            "data:image/svg+xml"
        } else {
            "nobody who stood on the quay"
        };
        if text.contains(whole) {
            Ok(())
        } else {
            Err(format!("{status} without its content: {text}"))
        }
    }
}

impl Latencies {
    pub(super) fn beside(&self, quiet: &Self) -> Slower {
        let ratio = |mine: &[Duration], theirs: &[Duration]| {
            let of = |part: f64| at(mine, part).as_secs_f64() / at(theirs, part).as_secs_f64();
            (of(0.5), of(0.99))
        };
        Slower {
            cheap: ratio(&self.cheap, &quiet.cheap),
            scrape: ratio(&self.scrape, &quiet.scrape),
        }
    }
}

/// The latency that this part of the calls did not exceed.
fn at(sorted: &[Duration], part: f64) -> Duration {
    assert!(!sorted.is_empty(), "there were no calls");
    // Rounded to the call that is nearest: there are at most some ten thousand.
    let place = ((sorted.len() - 1) as f64 * part).round() as usize;
    sorted[place]
}

impl Slower {
    pub(super) fn within(&self, (median, tail): (f64, f64)) -> bool {
        [self.cheap, self.scrape]
            .iter()
            .all(|(p50, p99)| *p50 <= median && *p99 <= tail)
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, taken) in [("cheap", &self.cheap), ("scrape", &self.scrape)] {
            let (calls, p50, p99) = (taken.len(), at(taken, 0.5), at(taken, 0.99));
            write!(f, "{name} {calls} calls p50 {p50:.1?} p99 {p99:.1?}, ")?;
        }
        write!(f, "{} failed", self.failures.len())
    }
}

impl fmt::Display for Slower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((p50, p99), (scrape_p50, scrape_p99)) = (self.cheap, self.scrape);
        write!(
            f,
            "cheap p50 x{p50:.2} p99 x{p99:.2}, scrape p50 x{scrape_p50:.2} p99 x{scrape_p99:.2}"
        )
    }
}
