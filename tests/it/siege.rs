//! A server under attack: whoever attacks it, with one key or none, takes nothing from anybody else.
//!
//! Honest callers call all the while, each from a loopback address of its own, and every call of theirs must succeed. The
//! attackers have addresses of their own too. How fast the honest calls are beside those of a quiet time is printed; it is
//! judged only in a campaign (`SWITCHBAY_ROUNDS=60` or more, on a machine with nothing else to do), in which each part takes
//! so many seconds.

mod attack;
mod crowd;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::interval;

use self::attack::{Attack, Attackers};
use self::crowd::{Crowd, Latencies};
use crate::lab::{Pages, Reply};
use crate::support::{Options, Service, workspace};

/// What the process may hold at any moment, and above its start when all is over.
const RESIDENT_BYTES_MAX: u64 = 3 << 29;
const KEPT_BYTES_MAX: u64 = 200 << 20;
/// How long the process may take to give memory back.
const GIVEN_BACK: Duration = Duration::from_secs(30);
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How much slower honest calls may be under attack than in a quiet time, in a campaign.
const SLOWER: (f64, f64) = (3.0, 10.0);
/// From so many seconds on a part is long enough for its 99th percentile to mean something.
const CAMPAIGN_SECONDS: u64 = 60;

/// How long each part takes; `SWITCHBAY_ROUNDS` asks for other numbers of seconds.
fn seconds() -> u64 {
    std::env::var("SWITCHBAY_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3)
}

/// An ordinary page, of some thirty kilobytes.
fn article() -> Vec<u8> {
    let paragraph = "<p>The harbour lights went out at ten, and nobody who stood on the quay could say why they did.</p>";
    format!(
        "<title>Lights</title><article><h1>Lights</h1>{}</article>",
        paragraph.repeat(300)
    )
    .into_bytes()
}

fn sites() -> Pages {
    let (article, hostile) = (article(), attack::hostile_pages());
    Pages::serve(
        &["good.test", "hostile.test", "slow.test"],
        move |visit| match &*visit.host {
            "good.test" => Reply::body(200, "text/html", article.clone()),
            "slow.test" => Reply::Hang,
            _ => hostile
                .get(&*visit.path)
                .cloned()
                .unwrap_or_else(|| Reply::page(404, "nothing")),
        },
    )
}

/// The most that the process held while `part` went on.
async fn most_resident(service: &Service, part: impl Future<Output = ()>) -> u64 {
    let mut looks = interval(LOOK);
    let mut part = std::pin::pin!(part);
    let mut most = 0;
    loop {
        tokio::select! {
            () = part.as_mut() => return most.max(service.resident_bytes()),
            _ = looks.tick() => most = most.max(service.resident_bytes()),
        }
    }
}

/// Waits until the process holds no more than this, and gives back what it holds at last.
async fn given_back(service: &Service, bytes_max: u64) -> u64 {
    let deadline = Instant::now() + GIVEN_BACK;
    let mut looks = interval(LOOK);
    loop {
        looks.tick().await;
        let resident = service.resident_bytes();
        if resident <= bytes_max || Instant::now() > deadline {
            return resident;
        }
    }
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attack_takes_anything_from_honest_callers() {
    let pages = sites();
    let manifest = Some(workspace().join("tests/programs/siege.toml"));
    let service = Service::start(Options {
        config: pages.configuration(),
        manifest,
        ..Options::default()
    })
    .await;
    let service = Arc::new(service);
    let crowd = Crowd::gather(&service);
    // Instances are made, and the allocator has seen this load.
    crowd.call_for(Duration::from_secs(2)).await;
    let start = service.resident_bytes();
    let time = Duration::from_secs(seconds());
    let quiet = crowd.call_for(time).await;
    eprintln!("quiet: {quiet}; {} MiB", mib(start));
    let each = Attack::ALL.map(|attack| vec![attack]);
    for attacks in each.into_iter().chain([Attack::ALL.to_vec()]) {
        let attackers = Attackers::begin(&service, &attacks).await;
        let mut besieged = Latencies::default();
        let most = most_resident(&service, async { besieged = crowd.call_for(time).await }).await;
        let did = attackers.end().await;
        let left = given_back(&service, start + KEPT_BYTES_MAX).await;
        let slower = besieged.beside(&quiet);
        let (most_mib, left_mib) = (mib(most), mib(left));
        eprintln!(
            "{attacks:?}: {besieged}; {slower}; at most {most_mib} MiB, then {left_mib} MiB; {did}"
        );
        assert!(
            besieged.failures.is_empty(),
            "{attacks:?}: honest calls failed: {:?}",
            besieged.failures
        );
        assert!(
            most <= RESIDENT_BYTES_MAX,
            "{attacks:?}: the process held {most_mib} MiB"
        );
        assert!(
            left <= start + KEPT_BYTES_MAX,
            "{attacks:?}: {left_mib} MiB are left of {} MiB",
            mib(start)
        );
        if seconds() >= CAMPAIGN_SECONDS {
            assert!(slower.within(SLOWER), "{attacks:?}: {slower}");
        }
    }
}
