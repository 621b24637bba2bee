//! `switchbay key`, with and without a server.

use std::path::Path;
use std::sync::Arc;

use regex_lite::Regex;
use serde_json::json;
use tempfile::TempDir;

use super::{call, key, parsed, printed, text};
use crate::support::{Options, Service};

/// The words that issue the keys of a round.
const FIRST: [&str; 8] = [
    "issue",
    "--json",
    "--label",
    "first",
    "--scope",
    "bank-qr:banks",
    "--per-minute",
    "9",
];
const SECOND: [&str; 6] = [
    "issue",
    "--label",
    "second",
    "--all-scopes",
    "--expires",
    "2999-01-31T00:00:00Z",
];

/// Issues, lists and revokes on a data folder; gives back the two keys, the second of them revoked.
fn go_round(data: &Path) -> [String; 2] {
    let first = parsed(data, &FIRST);
    assert_eq!(
        (&first["scopes"], &first["perMinute"]),
        (&json!(["bank-qr:banks"]), &json!(9))
    );
    let human = printed(data, &SECOND);
    let form =
        "^(sb_adm_[0-9A-Za-z]{38})\nid ([0-9a-f-]{36})\\. The key is shown only this once\\.\n$";
    let found = Regex::new(form).expect("a pattern");
    let found = found.captures(&human).unwrap_or_else(|| panic!("{human}"));
    let (second, id) = (found[1].to_owned(), &found[2]);

    let listed = parsed(data, &["list", "--json"]);
    let mine = |label: &str| {
        let keys = listed["keys"].as_array().expect("keys");
        keys.iter()
            .find(|key| key["label"] == label)
            .unwrap_or_else(|| panic!("no {label} in {listed}"))
            .clone()
    };
    assert_eq!(
        (&mine("first")["id"], &mine("second")["id"]),
        (&first["id"], &json!(id))
    );
    assert_eq!(mine("second")["expiresAt"], "2999-01-31T00:00:00Z");
    assert!(!listed.to_string().contains(&second));

    assert_eq!(
        printed(data, &["revoke", id]),
        format!("revoked {id} (second)\n")
    );
    assert!(parsed(data, &["revoke", "--json", id])["revokedAt"].is_string());
    let table = printed(data, &["list"]);
    let row = |label: &str| {
        table
            .lines()
            .find(|line| line.contains(label))
            .unwrap_or_else(|| panic!("{table}"))
    };
    assert!(table.starts_with("ID "), "{table}");
    let words = |label: &str| {
        row(label)
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        words("first ")[2..],
        ["9", "active", "first", "bank-qr:banks"]
    );
    assert_eq!(words("second")[2..], ["-", "revoked", "second", "*"]);
    [text(&first["key"]).to_owned(), second]
}

#[tokio::test]
async fn the_command_line_handles_keys_while_a_server_runs() {
    let service = Service::start(Options::default()).await;
    let [good, revoked] = go_round(service.data.path());
    assert_eq!(
        (
            call(&service, &good).await.status,
            call(&service, &revoked).await.status
        ),
        (200, 403)
    );
}

#[tokio::test]
async fn the_command_line_handles_keys_while_no_server_runs() {
    let data = TempDir::new().expect("a temporary folder");
    let [good, revoked] = go_round(data.path());
    let service = Service::start(Options {
        data: Some(Arc::new(data)),
        ..Options::default()
    })
    .await;
    assert_eq!(
        (
            call(&service, &good).await.status,
            call(&service, &revoked).await.status
        ),
        (200, 403)
    );
    assert_eq!(
        call(&service, &good)
            .await
            .header("x-apikey-ratelimit-limit"),
        "9"
    );
}

#[tokio::test]
async fn the_command_line_refuses_as_the_operators_api_does() {
    let offline = TempDir::new().expect("a temporary folder");
    for data in [Service::shared().data.path(), offline.path()] {
        check_failure(
            data,
            &["issue", "--label", "", "--all-scopes"],
            1,
            "`label` must have 1 to 100",
        )
        .await;
        check_failure(
            data,
            &["issue", "--label", "l", "--scope", "nothing"],
            1,
            "`scopes` has `nothing`",
        )
        .await;
        let zero = ["issue", "--label", "l", "--all-scopes", "--per-minute", "0"];
        check_failure(data, &zero, 1, "`perMinute` must be at least 1").await;
        let past = [
            "issue",
            "--label",
            "l",
            "--all-scopes",
            "--expires",
            "2020-01-01T00:00:00Z",
        ];
        check_failure(
            data,
            &past,
            1,
            "`expiresAt` is 2020-01-01T00:00:00Z, which is in the past",
        )
        .await;
        check_failure(
            data,
            &["revoke", "nobody"],
            4,
            "there is no key with the id nobody",
        )
        .await;
        check_failure(
            data,
            &["revoke", "../k?e y#é"],
            4,
            "there is no key with the id ../k?e y#é",
        )
        .await;
        check_failure(data, &["issue", "--label", "l"], 2, "--scope <SCOPE>").await;
        check_failure(
            data,
            &["issue", "--label", "l", "--all-scopes", "--scope", "a:b"],
            2,
            "cannot be used with",
        )
        .await;
    }
}

/// A command that fails with this exit code, says why on standard error, in one line unless it is 2, and prints nothing.
async fn check_failure(data: &Path, arguments: &[&str], code: i32, expected: &str) {
    let done = key(data, arguments);
    let told = String::from_utf8(done.stderr).expect("UTF-8");
    assert_eq!(
        (done.status.code(), done.stdout.len()),
        (Some(code), 0),
        "{arguments:?}: {told}"
    );
    assert!(told.contains(expected), "{arguments:?}: {told}");
    if code != 2 {
        assert!(
            told.starts_with("switchbay: ") && told.lines().count() == 1,
            "{arguments:?}: {told}"
        );
    }
}
