//! The server's process: the lines that it writes, how it ends, and what it takes of the machine.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::{ensure, in_time};
use super::Service;

/// How long a server may take to start; generous, because it is no measurement.
const START: Duration = Duration::from_secs(120);

/// How long a log line may take to arrive.
const LINE: Duration = Duration::from_secs(20);

/// The lines that a server wrote, and a bell for each new one.
#[derive(Default)]
pub(super) struct Log {
    lines: Mutex<Vec<String>>,
    written: Condvar,
    /// Whether the server has ended and all its lines are there. Written under the lock of `lines`.
    ended: AtomicBool,
}

impl Service {
    /// The lines that the server wrote, once they fulfil a condition; lines arrive a little after the answers that they are
    /// about.
    pub(crate) fn log_until(&self, fulfilled: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let parse = |lines: &[String]| {
            lines
                .iter()
                .map(|line| serde_json::from_str(line).unwrap_or_default())
                .collect()
        };
        let mut lines = self.log.lines.lock().expect("no writer panicked");
        loop {
            let parsed: Vec<Value> = parse(&lines);
            if fulfilled(&parsed) {
                return parsed;
            }
            let (more, waited) = self
                .log
                .written
                .wait_timeout(lines, LINE)
                .expect("no writer panicked");
            assert!(
                !waited.timed_out(),
                "the lines did not come; there are {more:?}"
            );
            lines = more;
        }
    }

    /// Asks the server to stop, and gives back everything that it has written, to its end.
    pub(crate) fn stop(&self) -> Vec<String> {
        self.end("-TERM")
    }

    /// Ends the server at once, and waits for that.
    pub(crate) fn kill(&self) {
        self.end("-KILL");
    }

    fn end(&self, signal: &str) -> Vec<String> {
        let sent = Command::new("kill")
            .args([signal, &self.pid().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
        let mut lines = self.log.lines.lock().expect("no writer panicked");
        while !self.log.ended.load(Ordering::Acquire) {
            let (more, waited) = self
                .log
                .written
                .wait_timeout(lines, START)
                .expect("no writer panicked");
            assert!(
                !waited.timed_out(),
                "the server does not end; there are {more:?}"
            );
            lines = more;
        }
        lines.clone()
    }

    /// Lets no file of the server grow or change any more, as on a disk that is full, until the server ends.
    pub(crate) fn fill_disk(&self) {
        ensure(&[("prlimit", "util-linux")]);
        let limit = ["--pid", &self.pid().to_string(), "--fsize=1:"];
        assert!(
            Command::new("prlimit")
                .args(limit)
                .status()
                .expect("prlimit runs")
                .success()
        );
    }

    /// What the server holds in memory, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))
            .expect("the server runs");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("a size");
        line.trim()
            .trim_end_matches(" kB")
            .parse::<u64>()
            .expect("a number")
            << 10
    }

    /// The processor time that the server has used.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("the server runs");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
        // utime and stime, in hundredths of a second.
        let ticks = |place: usize| {
            fields
                .split(' ')
                .nth(place)
                .and_then(|field| field.parse::<u64>().ok())
        };
        Duration::from_millis(10 * (ticks(11).expect("a number") + ticks(12).expect("a number")))
    }

    /// The server's own process id (the shell's child).
    pub(crate) fn pid(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let text = std::fs::read_to_string(children).expect("the shell runs");
        text.split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok())
            .expect("the server runs")
    }

    /// Waits for the server to end by itself, and gives back its exit code.
    pub(crate) async fn exit_code(mut self) -> Option<i32> {
        // Waiting closes the child's input, and that would kill the server.
        let input = self.child.stdin.take();
        let ended =
            tokio::task::spawn_blocking(move || self.child.wait().expect("the shell ends").code());
        let code = in_time("the server ends", ended).await.expect("no panic");
        drop(input);
        code
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The closed input makes the shell kill the server.
        drop(self.child.stdin.take());
        self.child.wait().expect("the shell ends");
    }
}

/// Reads the server's lines for as long as it runs, and gives back the one that says that it serves.
pub(super) fn watch(child: &mut Child, log: Arc<Log>) -> Value {
    let lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
    let (sender, receiver) = mpsc::channel();
    let kept = Arc::clone(&log);
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let parsed = serde_json::from_str(&line).unwrap_or_else(|_| serving_text(&line));
            kept.lines.lock().expect("no reader panicked").push(line);
            kept.written.notify_all();
            if parsed["message"] == "serving" {
                // The service may be gone by the second time.
                sender.send(parsed).ok();
            }
        }
        let lines = kept.lines.lock().expect("no reader panicked");
        kept.ended.store(true, Ordering::Release);
        drop(lines);
        kept.written.notify_all();
    });
    receiver
        .recv_timeout(START)
        .unwrap_or_else(|_| panic!("the server did not start: {:?}", log.lines.lock()))
}

/// The same of the line in text form: `… serving base_url="…" listen=…`.
fn serving_text(line: &str) -> Value {
    let field = |name: &str| {
        line.split(' ')
            .find_map(|word| word.strip_prefix(name))
            .map(|value| value.trim_matches('"'))
    };
    match (field("base_url="), field("listen=")) {
        (Some(base_url), Some(listen)) => {
            json!({ "message": "serving", "base_url": base_url, "listen": listen })
        }
        _ => Value::Null,
    }
}
