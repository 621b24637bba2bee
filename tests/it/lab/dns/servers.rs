//! Starts knot and unbound, each on a port of an address that no other process of this machine takes.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Endpoint, Lab, Record, ask, kdig};
use crate::lab::Certificate;
use crate::support::{ensure, workspace};

/// How long a server may take to start; generous, because it is no measurement.
const START: Duration = Duration::from_secs(60);

const PROGRAMS: [(&str, &str); 4] = [
    ("knotd", "knot"),
    ("kdig", "knot-dnsutils"),
    ("dig", "bind9-dnsutils"),
    ("unbound", "unbound"),
];

const HOST: &str = "unbound.resolver.test";
/// The signed zones. The resolver takes the first one's key for both, so it believes nothing of the second.
const SIGNED: [&str; 2] = ["example.test", "bogus.test"];

/// Starts them. They end with this process, and their folder goes with them.
pub(super) fn start() -> Lab {
    ensure(&PROGRAMS);
    let folder = TempDir::new().expect("a temporary folder").keep();
    let [authority, resolver, https, silent] = ports();
    let certificate = Certificate::of(&[HOST]);
    certificate.write(&folder.join("certificate.pem"));
    certificate.write_key(&folder.join("key.pem"));
    fs::create_dir(folder.join("keys")).expect("it is made");
    let fill = |template: &str| {
        let path = workspace().join("tests/lab/dns").join(template);
        let filled = fs::read_to_string(&path)
            .expect("the template")
            .replace(
                "{zones}",
                &workspace().join("tests/lab/dns").to_string_lossy(),
            )
            .replace("{folder}", &folder.to_string_lossy())
            .replace("{address}", &authority.ip().to_string())
            .replace(
                "{port}",
                if template == "knot.conf" {
                    "{authority_port}"
                } else {
                    "{resolver_port}"
                },
            )
            .replace("{authority_port}", &authority.port().to_string())
            .replace("{resolver_port}", &resolver.port().to_string())
            .replace("{https_port}", &https.port().to_string())
            .replace("{silent_port}", &silent.port().to_string());
        fs::write(folder.join(template), filled).expect("it is written");
    };
    fill("knot.conf");
    let mut knot = Server::start(&folder, "knotd", &["-c"], "knot.conf");
    for zone in SIGNED {
        knot.until(|| ask(authority, zone, 48).is_some_and(|told| told.answer.len() == 2));
    }
    let keys = kdig(authority, SIGNED[0], "DNSKEY").answer;
    let keys: Vec<&Record> = keys
        .iter()
        .filter(|key| key.data.starts_with("257 "))
        .collect();
    let anchors = SIGNED.map(|zone| format!("{zone}. IN DNSKEY {}\n", keys[0].data));
    fs::write(folder.join("anchors"), anchors.concat()).expect("it is written");
    fill("unbound.conf");
    let mut unbound = Server::start(&folder, "unbound", &["-d", "-c"], "unbound.conf");
    unbound.until(|| ask(resolver, SIGNED[0], 6).is_some_and(|told| told.ad));
    // The pipes to the shells stay open for as long as this process lives.
    std::mem::forget((knot, unbound));
    Lab {
        authority,
        resolver,
        endpoint: Endpoint {
            host: HOST.to_owned(),
            address: https,
            root: folder.join("certificate.pem"),
        },
    }
}

/// Free ports, over UDP and TCP alike, of a loopback address that is this process's own: what tests ask the system for are
/// ports of 127.0.0.1, so nobody takes these before the servers do. The last one is bound for good, and not answered.
fn ports() -> [SocketAddr; 4] {
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = Ipv4Addr::new(127, 53, high, low);
    let bound: Vec<(UdpSocket, TcpListener)> = std::iter::repeat_with(|| {
        let udp = UdpSocket::bind((address, 0)).ok()?;
        let tcp = TcpListener::bind(udp.local_addr().ok()?).ok()?;
        Some((udp, tcp))
    })
    .take(100)
    .flatten()
    .take(4)
    .collect();
    let mut ports = bound
        .iter()
        .map(|(udp, _)| udp.local_addr().expect("an address"));
    let ports = std::array::from_fn(|_| ports.next().expect("free ports of a loopback address"));
    if let Some(silent) = bound.into_iter().next_back() {
        std::mem::forget(silent);
    }
    ports
}

/// A server, and the shell that ends it when this process ends.
struct Server {
    shell: Child,
    log: std::path::PathBuf,
}

impl Server {
    fn start(folder: &Path, program: &str, arguments: &[&str], configuration: &str) -> Self {
        let log = folder.join(format!("{program}.log"));
        let lines = File::create(&log).expect("it is made");
        // The end of this process closes the shell's input, which ends the server and takes its folder away.
        let script = r#"exec 3<&0; "$@" <&- >&2 & server=$!
            (cat >/dev/null; kill -KILL $server; rm -rf "$FOLDER") <&3 >/dev/null 2>&1 & wait $server"#;
        let shell = Command::new("sh")
            .env("FOLDER", folder)
            .env("PATH", crate::support::path())
            .args(["-c", script, "sh", program])
            .args(arguments)
            .arg(folder.join(configuration))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(lines)
            .spawn()
            .expect("sh runs");
        Self { shell, log }
    }

    /// Asks until it answers as it should.
    fn until(&mut self, answers: impl Fn() -> bool) {
        let started = Instant::now();
        while !answers() {
            let log = || fs::read_to_string(&self.log).unwrap_or_default();
            let ended = self.shell.try_wait().expect("the shell can be waited for");
            assert!(ended.is_none(), "the server ended: {}", log());
            assert!(
                started.elapsed() < START,
                "the server does not answer as it should: {}",
                log()
            );
            std::thread::yield_now();
        }
    }
}
