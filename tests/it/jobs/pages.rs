//! Pages of the outside world that the tests can hold back, and that know who asked for them.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::support::listen;

/// How often a held connection is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How long a test waits for a page; generous, because it is no measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// A site on a loopback port, for as long as the process lives.
#[derive(Clone)]
pub(super) struct Pages {
    pub(super) address: SocketAddr,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

#[derive(Default)]
struct Seen {
    /// Beginnings of paths that are not answered yet.
    held: HashSet<String>,
    asked: Vec<String>,
    /// Paths whose clients went away before they had an answer.
    gone: Vec<String>,
}

impl Pages {
    pub(super) fn serve() -> Self {
        let seen: Arc<(Mutex<Seen>, Condvar)> = Arc::default();
        let kept = Arc::clone(&seen);
        let address = listen(move |stream| answer(stream, &kept));
        Self { address, seen }
    }

    /// The configuration that leads the guest here.
    pub(super) fn configuration(&self) -> String {
        format!("[egress]\nconnect_to = {{ \"pages.test:80\" = \"{}\" }}\n", self.address)
    }

    /// Holds back every page whose path begins so.
    pub(super) fn hold(&self, path: &str) {
        change(&self.seen, |seen| {
            seen.held.insert(path.to_owned());
        });
    }

    /// Answers them.
    pub(super) fn release(&self, path: &str) {
        change(&self.seen, |seen| {
            seen.held.remove(path);
        });
    }

    /// All paths that begin so and were asked for, in their order.
    pub(super) fn asked(&self, path: &str) -> Vec<String> {
        let seen = self.seen.0.lock().expect("no page panicked");
        seen.asked.iter().filter(|asked| asked.starts_with(path)).cloned().collect()
    }

    /// Waits until a page was asked for.
    pub(super) async fn until_asked(&self, path: &str) {
        self.until(path, |seen| &seen.asked).await;
    }

    /// Waits until a client went away before it had the page.
    pub(super) async fn until_gone(&self, path: &str) {
        self.until(path, |seen| &seen.gone).await;
    }

    async fn until(&self, path: &str, list: fn(&Seen) -> &Vec<String>) {
        let (seen, path) = (Arc::clone(&self.seen), path.to_owned());
        let waiting = tokio::task::spawn_blocking(move || {
            let lacks = |seen: &mut Seen| !list(seen).iter().any(|known| known.starts_with(&path));
            let locked = seen.0.lock().expect("no page panicked");
            let waited = seen.1.wait_timeout_while(locked, PATIENCE, lacks).expect("no page panicked").1;
            assert!(!waited.timed_out(), "nothing came of {path}");
        });
        waiting.await.expect("it came");
    }
}

fn answer(mut stream: TcpStream, seen: &(Mutex<Seen>, Condvar)) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    change(seen, |seen| seen.asked.push(path.clone()));
    stream.set_read_timeout(Some(LOOK))?;
    let is_held = |seen: &Seen| seen.held.iter().any(|held| path.starts_with(held));
    while is_held(&seen.0.lock().expect("no page panicked")) {
        if matches!(stream.read(&mut [0]), Ok(0)) {
            change(seen, |seen| seen.gone.push(path.clone()));
            return Ok(());
        }
    }
    let text = format!("the page {path}");
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len())
}

fn change((seen, changed): &(Mutex<Seen>, Condvar), change: impl FnOnce(&mut Seen)) {
    change(&mut seen.lock().expect("no page panicked"));
    changed.notify_all();
}
