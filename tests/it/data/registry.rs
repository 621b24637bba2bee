//! An npm registry on loopback: packages whose documents and archives the tests write, and that misbehaves as they say.
//!
//! Threads and blocking sockets. Each connection is served once and then closed.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};
use tar::{Builder, EntryType, Header};

use crate::support::listen;

/// A running registry.
pub(crate) struct Registry {
    address: SocketAddr,
    house: Arc<Mutex<House>>,
}

/// What is answered, and what was asked for.
#[derive(Default)]
struct House {
    answers: HashMap<String, Answer>,
    asked: Vec<String>,
}

#[derive(Clone)]
struct Answer {
    status: &'static str,
    body: Vec<u8>,
    /// What is announced, where that is not what is sent.
    length: Option<u64>,
}

impl Registry {
    pub(crate) fn start() -> Self {
        let house = Arc::<Mutex<House>>::default();
        let served = Arc::clone(&house);
        let address = listen(move |stream| answer(stream, &served));
        Self { address, house }
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
        self.put(&tarball(package, version), "200 OK", archive, None);
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
        self.put(&path, "200 OK", document.to_string().into_bytes(), None);
    }

    /// Answers for the archive of a version with this instead.
    pub(crate) fn send(
        &self,
        package: &str,
        version: &str,
        status: &'static str,
        body: Vec<u8>,
        length: Option<u64>,
    ) {
        self.put(&tarball(package, version), status, body, length);
    }

    fn put(&self, path: &str, status: &'static str, body: Vec<u8>, length: Option<u64>) {
        let mut house = self.house.lock().expect("no thread panicked");
        house.answers.insert(
            path.to_owned(),
            Answer {
                status,
                body,
                length,
            },
        );
    }

    /// The paths that were asked for since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.house.lock().expect("no thread panicked").asked)
    }
}

fn tarball(package: &str, version: &str) -> String {
    let name = package.rsplit('/').next().unwrap_or(package);
    format!("/npm/{package}/-/{name}-{version}.tgz")
}

fn answer(mut stream: TcpStream, house: &Mutex<House>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    let found = {
        let mut house = house.lock().expect("no thread panicked");
        house.asked.push(path.clone());
        house.answers.get(&path).cloned()
    };
    let none = Answer {
        status: "404 Not Found",
        body: b"{\"error\":\"not found\"}".to_vec(),
        length: None,
    };
    let Answer {
        status,
        body,
        length,
    } = found.unwrap_or(none);
    let length = length.unwrap_or(body.len() as u64);
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )?;
    stream.write_all(&body)
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
