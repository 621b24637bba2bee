//! A running `switchbay dev`, whose lines on standard output say what it did.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use super::binary;

/// How long a build and a start may take; generous, because it is no measurement.
const PATIENCE: Duration = Duration::from_secs(240);

/// The process; it is killed when this is dropped.
pub(crate) struct Dev {
    base_url: String,
    /// The development key, which has a limit, until a test puts another in its place.
    pub(crate) key: String,
    client: Client,
    child: Child,
    lines: AsyncMutex<mpsc::UnboundedReceiver<String>>,
    stderr: Arc<Mutex<String>>,
}

impl Dev {
    /// Starts it in a folder with a plugin manifest, and waits until it serves.
    pub(crate) async fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[]).await
    }

    /// With more arguments of `switchbay dev`.
    pub(crate) async fn start_with(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args([
                "dev",
                "--listen",
                "127.0.0.1:0",
                "--operator-listen",
                "127.0.0.1:0",
                "--key-file",
                "key",
            ])
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let (sender, lines) = mpsc::unbounded_channel();
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let stderr = Arc::new(Mutex::new(String::new()));
        let (mut pipe, kept) = (
            child.stderr.take().expect("stderr is piped"),
            Arc::clone(&stderr),
        );
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                kept.lock()
                    .expect("no reader panicked")
                    .push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        });
        let client = Client::builder().build().expect("a client");
        let lines = AsyncMutex::new(lines);
        let mut dev = Self {
            base_url: String::new(),
            key: String::new(),
            client,
            child,
            lines,
            stderr,
        };
        let api = dev.line_with("  API ").await;
        dev.base_url = api
            .split_whitespace()
            .nth(1)
            .expect("an address")
            .to_owned();
        dev.line_with("Plugins reload when their source changes")
            .await;
        dev.key = std::fs::read_to_string(folder.join("key"))
            .expect("the key's file")
            .trim()
            .to_owned();
        dev
    }

    /// A request with the development key.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.base_url))
            .bearer_auth(&self.key)
    }

    /// The next line that contains a text.
    pub(crate) async fn line_with(&self, text: &str) -> String {
        let mut lines = self.lines.lock().await;
        let found = async {
            loop {
                match lines.recv().await {
                    Some(line) if line.contains(text) => return line,
                    Some(_) => {}
                    None => panic!("switchbay dev ended: {}", self.stderr()),
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("no line with `{text}`: {}", self.stderr()))
    }

    /// What it wrote to standard error so far, cargo's messages among it.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().expect("no writer panicked").clone()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        self.child.kill().expect("it runs until now");
        self.child.wait().expect("it ends");
    }
}
