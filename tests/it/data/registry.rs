//! An npm registry on loopback: packages whose documents and archives the tests write, and that misbehaves as they say.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};
use tar::{Builder, EntryType, Header};

use crate::lab::{HttpServer, Reply, Then};

/// A running registry.
pub(crate) struct Registry {
    address: SocketAddr,
    server: HttpServer,
    answers: Arc<Mutex<HashMap<String, Reply>>>,
    /// How many of the requests were told.
    told: AtomicUsize,
}

impl Registry {
    pub(crate) fn start() -> Self {
        let answers: Arc<Mutex<HashMap<String, Reply>>> = Arc::default();
        let known = Arc::clone(&answers);
        let server = HttpServer::new(move |visit| {
            let answer = known
                .lock()
                .expect("no thread panicked")
                .get(&visit.path)
                .cloned();
            answer.unwrap_or_else(|| Reply::bare(404, "{\"error\":\"not found\"}"))
        });
        Self {
            address: server.listen(None),
            server,
            answers,
            told: AtomicUsize::new(0),
        }
    }

    /// With a path, as registries of companies have it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/npm", self.address)
    }

    /// Publishes a version of a package with its archive.
    pub(crate) fn publish(&self, package: &str, version: &str, license: &str, archive: Vec<u8>) {
        let integrity = format!("sha512-{}", STANDARD.encode(Sha512::digest(&archive)));
        let document = self.document(package, version, license, &integrity);
        self.say(package, &document);
        self.put(&tarball(package, version), Reply::bare(200, archive));
    }

    /// What a registry says of a package with one version.
    pub(crate) fn document(
        &self,
        package: &str,
        version: &str,
        license: &str,
        integrity: &str,
    ) -> Value {
        let tarball = format!("http://{}{}", self.address, tarball(package, version));
        let dist = json!({ "tarball": tarball, "integrity": integrity, "shasum": "0".repeat(40) });
        let one = json!({ "name": package, "version": version, "license": license, "dist": dist });
        let old = json!({ "name": package, "version": "0.0.1", "license": "none", "dist": { "tarball": "http://no.test/" } });
        json!({ "name": package, "dist-tags": { "latest": version }, "versions": { "0.0.1": old, version: one } })
    }

    /// Says something else of a package.
    pub(crate) fn say(&self, package: &str, document: &Value) {
        let path = format!("/npm/{}", package.replace('/', "%2f"));
        self.put(&path, Reply::bare(200, document.to_string()));
    }

    /// Answers for the archive of a version with this instead, and announces this length.
    pub(crate) fn send(
        &self,
        package: &str,
        version: &str,
        status: &'static str,
        body: Vec<u8>,
        length: Option<u64>,
    ) {
        let length = length.unwrap_or(body.len() as u64);
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        let said = [head.into_bytes(), body].concat();
        self.put(&tarball(package, version), Reply::Raw(said, Then::Close));
    }

    fn put(&self, path: &str, answer: Reply) {
        let mut answers = self.answers.lock().expect("no thread panicked");
        answers.insert(path.to_owned(), answer);
    }

    /// The paths that were asked for since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        let visits = self.server.visits();
        let told = self.told.swap(visits.len(), Ordering::Relaxed);
        visits[told..]
            .iter()
            .map(|visit| visit.path.clone())
            .collect()
    }
}

fn tarball(package: &str, version: &str) -> String {
    let name = package.rsplit('/').next().unwrap_or(package);
    format!("/npm/{package}/-/{name}-{version}.tgz")
}

/// An entry of an archive: its path as it stands, what it is, and its content.
pub(crate) type Part<'a> = (&'a str, EntryType, &'a [u8]);

pub(crate) fn archive(parts: &[Part<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, kind, content) in parts {
        let mut header = Header::new_ustar();
        // Past what the library refuses to write.
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o4777);
        header.set_size(content.len() as u64);
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_size(0);
            header.set_link_name_literal(content).expect("it fits");
        }
        header.set_cksum();
        let content = if header.size().is_ok_and(|size| size == 0) {
            &[]
        } else {
            *content
        };
        builder.append(&header, content).expect("it is written");
    }
    builder
        .into_inner()
        .and_then(GzEncoder::finish)
        .expect("it is written")
}

/// Files as npm packs them.
pub(crate) fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
    let paths: Vec<String> = files
        .iter()
        .map(|(name, _)| format!("package/{name}"))
        .collect();
    let parts: Vec<Part<'_>> = paths
        .iter()
        .zip(files)
        .map(|(path, (_, content))| (path.as_str(), EntryType::Regular, *content))
        .collect();
    let manifest: Part<'_> = ("package/package.json", EntryType::Regular, b"{}");
    archive(&[&[manifest][..], &parts].concat())
}
