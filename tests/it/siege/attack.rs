//! The attackers. Each kind has an address of its own; the first two and the last have no credential.

mod held;

use std::collections::HashMap;
use std::fmt;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::lab::Reply;
use crate::support::Service;

/// How many calls each key of [`Attack::HostilePages`] and of [`Attack::HeldPlaces`] has under way.
const HOSTILE_CALLS: usize = 8;
const HELD_CALLS: usize = 64;
const HELD_KEYS: usize = 2;
/// Keys that fill the jobs, and how many each submits at once.
const CRAWL_KEYS: usize = 8;
const CRAWLS: usize = 8;
const IDLE_CONNECTIONS: usize = 4_200;
/// A new call comes no sooner than this after the last: an attacker pays little, and does not win by load alone.
const PACE: Duration = Duration::from_millis(50);

/// What is attacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    /// Streams whose answers are not taken, and bodies that never come, on nine connections.
    HeldStreams,
    /// Large answers in batches that are not taken.
    UntakenAnswers,
    /// Pages that cost as much processor time as can be had, of one key.
    HostilePages,
    /// Calls and jobs that wait for pages which do not come, of few keys.
    HeldPlaces,
    /// More connections than the listener takes, without a request.
    IdleConnections,
}

/// Attackers at work; they end with this.
pub(super) struct Attackers {
    tasks: JoinSet<()>,
    tally: Arc<Tally>,
}

/// What attackers did, so that an attack which came to nothing is seen.
#[derive(Default)]
pub(super) struct Tally {
    connections: AtomicU64,
    requests: AtomicU64,
    answers: AtomicU64,
    refusals: AtomicU64,
}

impl Attack {
    pub(super) const ALL: [Self; 5] = [
        Self::HeldStreams,
        Self::UntakenAnswers,
        Self::HostilePages,
        Self::HeldPlaces,
        Self::IdleConnections,
    ];

    /// The loopback address that it comes from.
    fn address(self) -> SocketAddr {
        SocketAddr::from(([127, 0, 2, 1 + self as u8], 0))
    }
}

/// Pages by their paths: few bytes on the wire, and much work for a parser without bounds.
pub(super) fn hostile_pages() -> HashMap<&'static str, Reply> {
    let mut pages = HashMap::new();
    let deep = format!("{}text{}", "<div>".repeat(30_000), "</p>".repeat(200_000));
    let formatted = format!("<p>{}", "<b><i><a href=/x>".repeat(60_000));
    let table = format!("<table>{}", "<b>x<tr><td><p>".repeat(50_000));
    for (path, text) in [
        (
            "/ends",
            format!("<p>begin{}", "</b></i></a></p></x>".repeat(300_000)),
        ),
        ("/images", "<img src=/x alt=y>".repeat(249_000)),
        ("/deep", deep),
        ("/formatted", formatted),
        ("/table", table),
        (
            "/links",
            (0..100_000).fold(String::new(), |text, number| {
                text + &format!("<a href=/{number}>a</a> ")
            }),
        ),
    ] {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder
            .write_all(text.as_bytes())
            .expect("memory is written to");
        let body = encoder.finish().expect("memory is written to");
        pages.insert(
            path,
            Reply::body(200, "text/html", body).header("content-encoding", "gzip"),
        );
    }
    pages
}

impl Attackers {
    pub(super) async fn begin(service: &Arc<Service>, attacks: &[Attack]) -> Self {
        let (mut tasks, tally) = (JoinSet::new(), Arc::new(Tally::default()));
        for attack in attacks {
            begin(*attack, service, &mut tasks, &tally);
        }
        Self { tasks, tally }
    }

    /// Ends them all, and tells what they did.
    pub(super) async fn end(mut self) -> String {
        self.tasks.shutdown().await;
        self.tally.to_string()
    }
}

fn begin(attack: Attack, service: &Arc<Service>, tasks: &mut JoinSet<()>, tally: &Arc<Tally>) {
    let address = attack.address();
    let target = service
        .base_url
        .trim_start_matches("http://")
        .parse::<SocketAddr>()
        .expect("an address");
    match attack {
        Attack::HeldStreams => held::streams(tasks, tally, address, target),
        Attack::UntakenAnswers => held::batches(tasks, tally, address, target),
        Attack::HostilePages => {
            let key = issue(service);
            let mut paths: Vec<&str> = hostile_pages().into_keys().collect();
            paths.sort_unstable();
            for number in 0..HOSTILE_CALLS {
                let path = ["/api/v1/web/scrape", "/api/v1/web/map"][number % 2];
                let url = format!("http://hostile.test{}", paths[number % paths.len()]);
                call(
                    tasks,
                    tally,
                    service,
                    address,
                    path,
                    &key,
                    move || json!({ "url": url }),
                );
            }
            crawl(
                tasks,
                tally,
                service,
                address,
                &key,
                "http://hostile.test/deep",
            );
        }
        Attack::HeldPlaces => {
            for _ in 0..HELD_KEYS {
                let key = issue(service);
                for number in 0..HELD_CALLS {
                    let url = format!("http://slow.test/{number}");
                    call(
                        tasks,
                        tally,
                        service,
                        address,
                        "/api/v1/web/scrape",
                        &key,
                        move || json!({ "url": url }),
                    );
                }
            }
            for _ in 0..CRAWL_KEYS {
                let key = issue(service);
                for _ in 0..CRAWLS {
                    crawl(tasks, tally, service, address, &key, "http://slow.test/");
                }
            }
        }
        Attack::IdleConnections => {
            for _ in 0..IDLE_CONNECTIONS {
                tasks.spawn(idle(Arc::clone(tally), address, target));
            }
        }
    }
}

fn issue(service: &Service) -> String {
    let windows =
        ["scrape", "map", "crawl"].map(|operation| format!("web-data.{operation}=100000"));
    let mut arguments = vec!["--all-scopes"];
    arguments.extend(windows.iter().flat_map(|window| ["--window", window]));
    service.issue(&arguments)
}

fn crawl(
    tasks: &mut JoinSet<()>,
    tally: &Arc<Tally>,
    service: &Service,
    address: SocketAddr,
    key: &str,
    url: &'static str,
) {
    let body = move || json!({ "url": url, "limit": 20, "maxDepth": 3, "requestId": uuid::Uuid::now_v7().to_string() });
    call(
        tasks,
        tally,
        service,
        address,
        "/api/v1/web/crawls",
        key,
        body,
    );
}

/// Calls again and again, whatever is answered.
fn call(
    tasks: &mut JoinSet<()>,
    tally: &Arc<Tally>,
    service: &Service,
    address: SocketAddr,
    path: &str,
    key: &str,
    body: impl Fn() -> Value + Send + 'static,
) {
    let client = Client::builder()
        .local_address(address.ip())
        .build()
        .expect("a client");
    let (url, key, tally) = (
        format!("{}{path}", service.base_url),
        key.to_owned(),
        Arc::clone(tally),
    );
    tasks.spawn(async move {
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pace.tick().await;
            tally.requests.fetch_add(1, Ordering::Relaxed);
            let answer = client
                .post(&url)
                .bearer_auth(&key)
                .json(&body())
                .send()
                .await;
            tally.count(answer.is_ok_and(|answer| answer.status().is_success()));
        }
    });
}

/// Holds a connection without a word, and makes another when it is closed.
async fn idle(tally: Arc<Tally>, address: SocketAddr, target: SocketAddr) {
    let mut pace = interval(Duration::from_secs(1));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        if let Ok(stream) = connect(address, target).await {
            tally.connections.fetch_add(1, Ordering::Relaxed);
            // Readable is what is closed: a server says nothing first.
            stream.readable().await.ok();
        }
    }
}

async fn connect(from: SocketAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind(from)?;
    socket.connect(to).await
}

impl Tally {
    fn count(&self, succeeded: bool) {
        let counter = if succeeded {
            &self.answers
        } else {
            &self.refusals
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [connections, requests, answers, refusals] = [
            &self.connections,
            &self.requests,
            &self.answers,
            &self.refusals,
        ]
        .map(|counter| counter.load(Ordering::Relaxed));
        write!(
            f,
            "attackers: {connections} connections, {requests} requests, {answers} answered, {refusals} refused"
        )
    }
}
