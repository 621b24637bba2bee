//! IP information: addresses of every form and range, databases in both schemas that the tests write, and files that are
//! damaged, missing or swapped while they serve.

mod addresses;
mod asked;
pub(crate) mod databases;
mod schemas;

use std::process::Command;

use mmdb_writer::IpVersion;
use regex_lite::Regex;
use serde_json::{Value, json};

use crate::support::{Answer, Options, Service, failure, workspace};
use databases::Databases;

pub(crate) async fn serve(config: String) -> Service {
    let manifest = Some(workspace().join("tests/programs/ip_info.toml"));
    Service::start(Options {
        config,
        manifest,
        ..Options::default()
    })
    .await
}

/// A text as a segment of a path.
fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

pub(crate) async fn ask(service: &Service, ip: &str) -> Answer {
    service
        .post(&format!("/api/v1/ip-info/{}", encoded(ip)), &json!({}))
        .await
}

/// The `data` of a 200, which is the same over MCP, and whose moving part is taken out once it was judged.
async fn told(service: &Service, ip: &str) -> Value {
    let answer = ask(service, ip).await;
    assert_eq!(answer.status, 200, "{ip}: {answer:?}");
    let mut data = answer.json()["data"].clone();
    let mut called = service
        .tool("lookup_ip_information", &json!({ "ip": ip }))
        .await;
    assert_eq!(
        (&called["isError"], &called["structuredContent"]["success"]),
        (&json!(false), &json!(true)),
        "{called}"
    );
    let mut called = called["structuredContent"]["data"].take();
    let times = [
        data["timezone"]["localTime"].take(),
        called["timezone"]["localTime"].take(),
    ];
    for time in times.iter().filter(|time| !time.is_null()) {
        let form = Regex::new(
            r"^2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]([+-][0-9:]{5})$",
        );
        let found = form
            .expect("a pattern")
            .captures(time.as_str().expect("text"))
            .map(|found| found[1].to_owned());
        assert_eq!(
            found.as_deref(),
            data["timezone"]["utcOffset"].as_str(),
            "{time}"
        );
    }
    assert_eq!(data, called, "{ip}: the faces tell the same");
    data
}

async fn unavailable(service: &Service) {
    let answer = ask(service, "8.8.8.8").await;
    assert_eq!(answer.refusal(), (503, "SERVICE_UNAVAILABLE".to_owned()));
    let message = answer.json()["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned();
    assert!(message.contains("`switchbay data fetch`"), "{message}");
    let (code, envelope) = failure(
        &service
            .tool("lookup_ip_information", &json!({ "ip": "8.8.8.8" }))
            .await,
    );
    assert_eq!(
        (code.as_str(), envelope["error"]["message"].as_str()),
        ("SERVICE_UNAVAILABLE", Some(message.as_str()))
    );
}

fn refusals(lines: &[Value]) -> Vec<&Value> {
    let is_one = |line: &&Value| {
        line["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("an IP database was refused"))
    };
    lines.iter().filter(is_one).collect()
}

#[tokio::test]
async fn without_a_database_the_command_that_gets_one_is_named() {
    let service = serve(String::new()).await;
    unavailable(&service).await;
    assert_eq!(
        ask(&service, "10.0.0.1").await.refusal().0,
        400,
        "what an address is needs no database"
    );
    assert_eq!(ask(&service, "10.0.0.01").await.refusal().0, 400);
}

#[tokio::test]
async fn files_that_cannot_be_used_are_refused_by_their_reason_and_the_rest_serves() {
    let whole = databases::nested_city();
    let databases = Databases::new()
        .with("city", "own", &[("cut.mmdb", &whole[..whole.len() / 2])])
        .with("anonymous", "own", &[("text.mmdb", b"no database")]);
    std::fs::create_dir(databases.path("folder.mmdb")).expect("a folder");
    let missing = format!(
        "asn = {{ files = [{:?}] }}\nother = {{ files = [{:?}] }}\n",
        databases.path("missing.mmdb"),
        databases.path("folder.mmdb")
    );
    let service = serve(databases.config() + &missing).await;
    let lines = service.log_until(|lines| refusals(lines).len() >= 4);
    for (name, reason) in [
        ("city", "cut.mmdb is not a usable database"),
        ("anonymous", "text.mmdb is not a usable database"),
        ("asn", "missing.mmdb: No such file"),
        ("other", "folder.mmdb is not a file"),
    ] {
        let told = refusals(&lines)
            .into_iter()
            .find(|line| line["name"] == name)
            .unwrap_or_else(|| panic!("{lines:?}"));
        assert!(
            told["error"]
                .as_str()
                .is_some_and(|error| error.contains(reason)),
            "{told}"
        );
        assert_eq!(told["serves_on"], false);
    }
    unavailable(&service).await;
    databases.put("missing.mmdb", &databases::asn());
    service.log_until(|lines| {
        lines
            .iter()
            .any(|line| line["message"] == "an IP database is in use")
    });
    assert_eq!(
        told(&service, "8.8.8.8").await["network"]["asn"],
        15169,
        "a file that comes is taken"
    );
}

fn city(name: &str) -> Vec<u8> {
    databases::file(
        "one",
        IpVersion::V6,
        &[("8.0.0.0/8", json!({ "city": name, "country_code": "US" }))],
    )
}

#[tokio::test]
async fn a_file_is_swapped_under_load_and_a_broken_one_changes_nothing() {
    let databases = Databases::new().with("city", "own", &[("city.mmdb", &city("First"))]);
    let service = serve(databases.config()).await;
    let named = async || {
        told(&service, "8.8.8.8").await["location"]["city"]
            .as_str()
            .map(str::to_owned)
    };
    let served = |lines: &[Value]| {
        lines
            .iter()
            .filter(|line| line["message"] == "an IP database is in use")
            .count()
    };
    assert_eq!(named().await.as_deref(), Some("First"));

    databases.put("city.mmdb", &city("Second"));
    service.log_until(|lines| served(lines) == 2);
    assert_eq!(named().await.as_deref(), Some("Second"));

    // Cut in place, under what serves: a file that were mapped itself would end the process here.
    let path = databases.path("city.mmdb");
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("it is there")
        .set_len(100)
        .expect("it is cut");
    let lines = service.log_until(|lines| !refusals(lines).is_empty());
    assert_eq!(refusals(&lines)[0]["serves_on"], true);
    assert_eq!(named().await.as_deref(), Some("Second"));
    std::fs::remove_file(&path).expect("it is there");
    service.log_until(|lines| refusals(lines).len() >= 2);
    assert_eq!(named().await.as_deref(), Some("Second"));

    databases.put("city.mmdb", &city("Third"));
    service.log_until(|lines| served(lines) == 3);
    assert_eq!(named().await.as_deref(), Some("Third"));
    // A signal has all looked at again; what is as it was is not read again.
    let before = refusals(&service.log_until(|_| true)).len();
    std::fs::remove_file(&path).expect("it is there");
    let sent = Command::new("kill")
        .args(["-HUP", &service.pid().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
    service.log_until(|lines| refusals(lines).len() > before);
    assert_eq!(named().await.as_deref(), Some("Third"));
}

#[tokio::test]
async fn databases_that_are_named_wrongly_keep_the_process_from_starting() {
    let manifest = workspace().join("tests/programs/ip_info.toml");
    for (setting, expected) in [
        (
            "City = { files = [\"a\"] }",
            "`ip_databases` is City; it must be named with a-z",
        ),
        (
            "city = { files = [] }",
            "`ip_databases` is city with 0 files; it must be one file",
        ),
        (
            "city = { files = [\"a\", \"b\", \"c\"] }",
            "`ip_databases` is city with 3 files",
        ),
        ("city = { file = \"a\" }", "unknown field `file`"),
        ("city = \"a\"", "line 2, column 8"),
    ] {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let config = folder.path().join("config.toml");
        std::fs::write(&config, format!("[ip_databases]\n{setting}")).expect("it is written");
        let files = [
            "--config",
            &config.to_string_lossy(),
            "--manifest",
            &manifest.to_string_lossy(),
        ];
        let told = crate::startup::failure_in(folder.path(), &files).await;
        assert!(told.contains(expected), "{setting}: {told}");
    }
}
