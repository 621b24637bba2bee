//! Pages of the outside world that the tests can hold back, and that know who asked for them.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::{Reply, listen, public_row};

/// How often a held connection is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long a test waits for a page; generous, because it is no measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sites on a loopback port, for as long as the process lives.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) address: SocketAddr,
    hosts: Arc<[String]>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) host: String,
    /// With the query, as it was sent.
    pub(crate) path: String,
    pub(crate) came: Instant,
    /// When its answer was sent. `None` while there is none, and where its client went away before.
    pub(crate) answered: Option<Instant>,
    /// Whether its client went away before it had an answer.
    gone: bool,
}

#[derive(Default)]
struct Seen {
    /// Beginnings of paths that are not answered yet.
    held: HashSet<String>,
    visits: Vec<Visit>,
    /// Requests that are under way, by their hosts, and the most that ever were.
    under_way: HashMap<String, (usize, usize)>,
}

impl Pages {
    /// Sites of these hosts on port 80, which answer so.
    pub(crate) fn serve(
        hosts: &[&str],
        reply: impl Fn(&Visit) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let seen: Arc<(Mutex<Seen>, Condvar)> = Arc::default();
        let kept = Arc::clone(&seen);
        let address = listen(move |stream| answer(stream, &kept, &reply));
        Self {
            address,
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            seen,
        }
    }

    /// The configuration that leads guests here.
    pub(crate) fn configuration(&self) -> String {
        let rows: Vec<String> = self
            .hosts
            .iter()
            .map(|host| public_row(&format!("{host}:80"), self.address))
            .collect();
        format!("[egress]\nconnect_to = {{ {} }}\n", rows.join(", "))
    }

    /// Holds back every page whose path begins so.
    pub(crate) fn hold(&self, path: &str) {
        change(&self.seen, |seen| {
            seen.held.insert(path.to_owned());
        });
    }

    /// Answers them.
    pub(crate) fn release(&self, path: &str) {
        change(&self.seen, |seen| {
            seen.held.remove(path);
        });
    }

    /// All requests, in their order.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        self.seen.0.lock().expect("no page panicked").visits.clone()
    }

    /// All paths that begin so and were asked for, in their order.
    pub(crate) fn asked(&self, path: &str) -> Vec<String> {
        self.visits()
            .into_iter()
            .map(|visit| visit.path)
            .filter(|asked| asked.starts_with(path))
            .collect()
    }

    /// The most requests that were under way at once for a host.
    pub(crate) fn most_at_once(&self, host: &str) -> usize {
        self.seen
            .0
            .lock()
            .expect("no page panicked")
            .under_way
            .get(host)
            .map_or(0, |(_, most)| *most)
    }

    /// Waits until a page was asked for.
    pub(crate) async fn until_asked(&self, path: &str) {
        self.until_asked_often(path, 1).await;
    }

    /// Waits until pages were asked for so often.
    pub(crate) async fn until_asked_often(&self, path: &str, often: usize) {
        self.until(path, often, |_| true).await;
    }

    /// Waits until a client went away before it had the page.
    pub(crate) async fn until_gone(&self, path: &str) {
        self.until_gone_often(path, 1).await;
    }

    /// Waits until so many clients did.
    pub(crate) async fn until_gone_often(&self, path: &str, often: usize) {
        self.until(path, often, |visit| visit.gone).await;
    }

    async fn until(&self, path: &str, often: usize, counts: fn(&Visit) -> bool) {
        let (seen, path) = (Arc::clone(&self.seen), path.to_owned());
        let waiting = tokio::task::spawn_blocking(move || {
            let is_one = |visit: &&Visit| counts(visit) && visit.path.starts_with(&path);
            let lacks = |seen: &mut Seen| seen.visits.iter().filter(is_one).count() < often;
            let locked = seen.0.lock().expect("no page panicked");
            let (seen, waited) = seen
                .1
                .wait_timeout_while(locked, PATIENCE, lacks)
                .expect("no page panicked");
            assert!(
                !waited.timed_out(),
                "nothing came of {path}: {:?}",
                seen.visits
            );
        });
        waiting.await.expect("it came");
    }
}

fn answer(
    mut stream: TcpStream,
    seen: &(Mutex<Seen>, Condvar),
    reply: &impl Fn(&Visit) -> Reply,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    // A client that goes away before it has asked asks for nothing.
    let Some(path) = head.split(' ').nth(1).map(str::to_owned) else {
        return Ok(());
    };
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    let host = header("host")
        .map(|(_, value)| value.to_owned())
        .unwrap_or_default();
    let visit = Visit {
        host,
        path,
        came: Instant::now(),
        answered: None,
        gone: false,
    };
    let mut at = 0;
    change(seen, |seen| {
        at = seen.visits.len();
        seen.visits.push(visit.clone());
        let (now, most) = seen.under_way.entry(visit.host.clone()).or_default();
        (*now, *most) = (*now + 1, (*most).max(*now + 1));
    });
    let reply = reply(&visit);
    let released = until_released(&mut stream, seen, &visit.path)?;
    // A client that goes away while it is answered had no answer.
    let is_answered = released && send(&mut stream, reply).unwrap_or(false);
    // Before its client can read it to its end, and so before another request.
    change(seen, |seen| {
        (seen.visits[at].answered, seen.visits[at].gone) =
            (is_answered.then(Instant::now), !is_answered);
        seen.under_way
            .entry(visit.host)
            .and_modify(|(now, _)| *now -= 1);
    });
    Ok(())
}

/// Whether the page may be sent; otherwise its client is gone.
fn until_released(
    stream: &mut TcpStream,
    seen: &(Mutex<Seen>, Condvar),
    path: &str,
) -> std::io::Result<bool> {
    stream.set_read_timeout(Some(LOOK))?;
    let is_held = |seen: &Seen| seen.held.iter().any(|held| path.starts_with(held));
    while is_held(&seen.0.lock().expect("no page panicked")) {
        if matches!(stream.read(&mut [0]), Ok(0)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sends all of an answer but its end, which the end of the connection tells. Gives back whether there was one.
fn send(stream: &mut TcpStream, reply: Reply) -> std::io::Result<bool> {
    match reply {
        Reply::Say {
            status,
            headers,
            body,
        } => {
            let mut head = format!("HTTP/1.1 {status} said\r\nconnection: close\r\n");
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            stream.write_all(format!("{head}\r\n").as_bytes())?;
            stream.write_all(&body)?;
            Ok(true)
        }
        Reply::Hang => {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.read(&mut [0]).map(|_| false)
        }
        Reply::Close => Ok(true),
    }
}

fn change((seen, changed): &(Mutex<Seen>, Condvar), change: impl FnOnce(&mut Seen)) {
    change(&mut seen.lock().expect("no page panicked"));
    changed.notify_all();
}
