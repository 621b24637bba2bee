//! An issuer behind TLS: its keys are taken where the system trusts its certificate, and not otherwise.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Options, Service, Signer, claims, ensure};

const BANKS: &str = "/api/v1/tools/bank-qr/banks";

/// `openssl s_server`, which serves a folder.
struct TlsServer {
    url: String,
    folder: TempDir,
    child: Child,
    _told: BufReader<ChildStdout>,
}

impl TlsServer {
    fn start() -> Self {
        ensure(&[("openssl", "openssl")]);
        let folder = TempDir::new().expect("a temporary folder");
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
        openssl(
            folder.path(),
            &format!("req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=ca"),
        );
        let names = "-subj /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=CA:FALSE";
        openssl(
            folder.path(),
            &format!("req -x509 {key} -keyout key -out pem {names} -CA ca.pem -CAkey ca.key"),
        );
        let mut child = Command::new("openssl")
            .args([
                "s_server",
                "-accept",
                "127.0.0.1:0",
                "-cert",
                "pem",
                "-key",
                "key",
                "-WWW",
            ])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl runs");
        let mut told = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let port = told
            .by_ref()
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                let address = line.strip_prefix("ACCEPT ")?;
                Some(address.rsplit(':').next()?.to_owned())
            });
        let url = format!(
            "https://localhost:{}",
            port.expect("openssl tells its port")
        );
        Self {
            url,
            folder,
            child,
            _told: told,
        }
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        std::fs::write(path, text).expect("the file is written");
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.child.kill().expect("it runs until now");
        self.child.wait().expect("it ends");
    }
}

fn openssl(folder: &Path, arguments: &str) {
    let done = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(folder)
        .output()
        .expect("openssl runs");
    assert!(
        done.status.success(),
        "{arguments}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[tokio::test]
async fn an_issuer_is_who_its_certificate_says() {
    let server = TlsServer::start();
    let signer = &Signer::shared()[1];
    let metadata = json!({ "issuer": server.url, "jwks_uri": format!("{}/keys", server.url) });
    server.put(
        ".well-known/oauth-authorization-server",
        &metadata.to_string(),
    );
    server.put("keys", &json!({ "keys": [signer.jwk()] }).to_string());
    let status = async |roots: &str| {
        let service = Service::start(Options {
            config: format!("[oauth]\nissuer = \"{}\"", server.url),
            environment: vec![(
                "SSL_CERT_FILE",
                server
                    .folder
                    .path()
                    .join(roots)
                    .to_string_lossy()
                    .into_owned(),
            )],
            ..Options::default()
        })
        .await;
        let token = signer.token(&claims(&server.url, &service.base_url));
        Service::send(service.bare(Method::GET, BANKS).bearer_auth(token))
            .await
            .status
    };
    assert_eq!(status("ca.pem").await, 200);
    openssl(
        server.folder.path(),
        "req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -subj /CN=ca",
    );
    assert_eq!(
        status("other.pem").await,
        503,
        "another authority of the same name"
    );
}
