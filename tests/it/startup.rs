//! A server that cannot start says why in one line on standard error, before it serves anything, and exits with 1.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;

use crate::support::{Service, binary, build, workspace};

/// How long a process that should fail may run; generous, because it is no measurement.
const RUN: Duration = Duration::from_secs(60);

/// The line that `switchbay serve` fails with.
async fn failure(arguments: &[&str]) -> String {
    let child = Command::new(binary())
        .arg("serve")
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let done = tokio::time::timeout(RUN, child)
        .await
        .expect("it fails, and does not serve")
        .expect("the binary runs");
    let told = String::from_utf8(done.stderr).expect("UTF-8");
    assert_eq!(
        (done.status.code(), done.stdout.len()),
        (Some(1), 0),
        "{told}"
    );
    let line = told
        .strip_prefix("switchbay: ")
        .and_then(|rest| rest.strip_suffix('\n'));
    let line = line
        .filter(|line| !line.contains('\n'))
        .unwrap_or_else(|| panic!("not one line:\n{told}"));
    assert!(!line.ends_with('.'), "{line}");
    line.to_owned()
}

/// Serves this manifest from a folder of its own, with free ports.
async fn check_manifest(manifest: &str, expected: &str) {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("plugin-manifest.toml");
    std::fs::write(&file, manifest).expect("the manifest is written");
    let line = failure_in(folder.path(), &["--manifest", &file.to_string_lossy()]).await;
    assert_eq!(
        line.replace(&*folder.path().to_string_lossy(), "[folder]"),
        expected,
        "{manifest}"
    );
}

/// With free ports, on this data folder.
pub(crate) async fn failure_in(data: &Path, arguments: &[&str]) -> String {
    let data = data.to_string_lossy();
    // What became of the plugins is told in the log too; here the one line counts that a person reads last.
    let ports = [
        "--listen",
        "127.0.0.1:0",
        "--operator-listen",
        "127.0.0.1:0",
        "--log",
        "off",
        "--data",
        &data,
    ];
    failure(&[&ports, arguments].concat()).await
}

fn entry(lines: &str) -> String {
    format!("[[plugin]]\nname = \"bank-qr\"\nsource = \"bank-qr.wasm\"\n{lines}\n")
}

#[tokio::test]
async fn a_malformed_manifest_is_told_by_its_place() {
    let at = "the plugin manifest [folder]/plugin-manifest.toml is malformed: line";
    let keys = "`name`, `source`, `grants`, `instances`, `limits`, `config`, `secrets`";
    let limits = "`memory`, `cpu_ms`, `wall_ms`, `concurrency`, `owner_concurrency`, `warm_growth`, `response`";
    check_manifest(
        &entry("colour = \"red\""),
        &format!("{at} 4, column 1: unknown field `colour`, expected one of {keys}"),
    )
    .await;
    check_manifest(
        &entry("limits = { ram = 1 }"),
        &format!("{at} 4, column 12: unknown field `ram`, expected one of {limits}"),
    )
    .await;
    check_manifest(
        &entry("instances = \"cold\""),
        &format!("{at} 4, column 13: unknown variant `cold`, expected `fresh` or `warm`"),
    )
    .await;
    check_manifest(
        "[[plugins]]",
        &format!("{at} 1, column 3: unknown field `plugins`, expected `plugin`"),
    )
    .await;
    check_manifest(
        "\n[[plugin]]\nname = \"ab\"",
        &format!("{at} 2, column 1: missing field `source`"),
    )
    .await;
    check_manifest(
        "đ",
        &format!("{at} 1, column 2: key with no value, expected `=`"),
    )
    .await;
}

#[tokio::test]
async fn an_entry_that_cannot_be_used_is_told_by_plugin_rule_and_value() {
    let of = |plugin: &str| format!("plugin `{plugin}` in [folder]/plugin-manifest.toml:");
    let named = |name: &str| entry("").replace("bank-qr\"\ns", &format!("{name}\"\ns"));
    let rule =
        "its name must be 2 to 40 characters of a-z, 0-9 and hyphens, starting with a letter";
    for name in ["Bank", "b", "1bank", "bank_qr", "bänk", &"b".repeat(41)] {
        check_manifest(&named(name), &format!("{} {rule}", of(name))).await;
    }
    check_manifest(
        &entry("grants = [\"logging\", \"fetch\"]"),
        &format!("{} `fetch` is not a grant that this host knows; it knows blobs, browser, cache, config, dns, \
            features, http, ip-database, jobs, line-query, logging, media, state", of("bank-qr")),
    )
    .await;
    check_manifest(
        &entry("").repeat(2),
        &format!("{} it has more than one entry", of("bank-qr")),
    )
    .await;
    check_manifest(
        &entry("limits = { memory = \"1\" }"),
        &format!(
            "{} `limits.memory` is 1; it must be from 1048576 to 268435456",
            of("bank-qr")
        ),
    )
    .await;
    check_manifest(
        &entry("").replace("bank-qr.wasm", "https://example.com/x.wasm"),
        &format!(
            "{} the source `https://example.com/x.wasm` is neither a crate folder nor a .wasm file",
            of("bank-qr")
        ),
    )
    .await;
}

#[tokio::test]
async fn a_component_that_is_missing_or_none_is_told_by_plugin() {
    check_manifest(
        &entry(""),
        "plugin `bank-qr`: its component [folder]/bank-qr.wasm is missing: build it with `switchbay build`",
    )
    .await;
    check_manifest(
        &entry("").replace("bank-qr.wasm", "nowhere"),
        "plugin `bank-qr`: its crate folder [folder]/nowhere has no Cargo.toml",
    )
    .await;
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("plugin-manifest.toml");
    std::fs::write(&file, entry("")).expect("the manifest is written");
    std::fs::write(folder.path().join("bank-qr.wasm"), "junk").expect("the file is written");
    let line = failure_in(folder.path(), &["--manifest", &file.to_string_lossy()]).await;
    assert!(
        line.starts_with("plugin `bank-qr`: it is not a WebAssembly component: "),
        "{line}"
    );
}

/// A configuration, and the line that it is refused with.
const SETTINGS: [(&str, &str); 15] = [
    (
        "[limit]\n",
        "the configuration file [folder]/config.toml is malformed: line 1, column 2: unknown field `limit`, expected one of `limits`, `peers`, `mcp`, `oauth`, `credits`, `first_party`, `egress`, `dns`, `proxy`, `jobs`, `shares`, `ip_databases`",
    ),
    (
        "[limits]\nin_flight = 0\n",
        "`limits.in_flight` is 0; it must be from 1 to 1000000",
    ),
    (
        "[limits]\nidle_ms = 9\n",
        "`limits.idle_ms` is 9; it must be from 10 to 3600000",
    ),
    (
        "[limits]\nunsent_bytes = 1\n",
        "`limits.unsent_bytes` is 1; it must be from 65536 to 1099511627776",
    ),
    (
        "[peers]\nconnections = 0\n",
        "`peers.connections` is 0; it must be from 1 to 1000000",
    ),
    (
        "[first_party]\ntrusted_proxies = [\"10.0.0.0/8\"]\n",
        "`first_party.trusted_proxies` has moved to `peers.trusted_proxies`: write it there",
    ),
    (
        "[mcp]\norigins = [\"https://a.example/\"]\n",
        "`mcp.origins` is https://a.example/; it must be only a scheme, a host and a port, such as \
         https://app.example.com",
    ),
    (
        "[oauth]\naudiences = []\n",
        "the configuration file [folder]/config.toml is malformed: line 1, column 1: missing field `issuer`",
    ),
    (
        "[oauth]\nissuer = \"https://id.example\"\nper_minute = 0\n",
        "`oauth.per_minute` is 0; it must be from 1 to 1000000",
    ),
    (
        "[dns.resolvers]\nNear = \"https://dns.example.net/dns-query\"\n",
        "`dns.resolvers` is a table with `Near`; it must be a name of a-z, 0-9, - and _, starting with a letter, as \
         in `dns:NAME`",
    ),
    (
        "[dns.resolvers]\nnear = { url = \"https://dns.example.net/dns-query\", client_subnet = \"sent\" }\n",
        "the configuration file [folder]/config.toml is malformed: line 2, column 8: expected a URL, or a table with \
         `url` and optionally `client_subnet`, which is \"unsaid\" or \"withheld\"",
    ),
    (
        "[credits]\nconcurrency = 0\n",
        "`credits.concurrency` is 0; it must be from 1 to 100000",
    ),
    (
        "[credits.costs.p]\no = 1000001\n",
        "`credits.costs` is 1000001; it must be from 0 to 1000000",
    ),
    (
        "[first_party]\norigins = [\"*\"]\n",
        "`first_party.origins` is *; it must be only a scheme, a host and a port, such as https://app.example.com",
    ),
    (
        "[peers]\ntrusted_proxies = [\"10.0.0.0/33\"]\n",
        "`peers.trusted_proxies` is 10.0.0.0/33; it must be an address or a network such as 10.0.0.0/8",
    ),
];

#[tokio::test]
async fn a_setting_that_cannot_be_used_is_told_by_rule_and_value() {
    let manifest = manifest();
    let folder = TempDir::new().expect("a temporary folder");
    let serve = async |arguments: &[&str]| {
        let line = failure_in(
            folder.path(),
            &[&["--manifest", &manifest], arguments].concat(),
        )
        .await;
        line.replace(&*folder.path().to_string_lossy(), "[folder]")
    };
    let file = folder.path().join("config.toml");
    let path = file.to_string_lossy();
    let missing = "cannot read the configuration file [folder]/config.toml: No such file or directory (os error 2)";
    assert_eq!(serve(&["--config", &path]).await, missing);
    for (text, expected) in SETTINGS {
        std::fs::write(&file, text).expect("the configuration is written");
        assert_eq!(serve(&["--config", &path]).await, expected);
    }
    let rule = "an https URL (or http on loopback) without credentials, query or fragment";
    for issuer in [
        "http://id.example",
        "https://id.example?a",
        "https://id.example/#a",
        "https://a:b@id.example",
        "id",
    ] {
        std::fs::write(&file, format!("[oauth]\nissuer = \"{issuer}\"\n"))
            .expect("the configuration is written");
        assert_eq!(
            serve(&["--config", &path]).await,
            format!("`oauth.issuer` is {issuer}; it must be {rule}")
        );
    }
    let base = "`base-url` is ftp://example.com; it must be an http or https URL without query or fragment";
    assert_eq!(serve(&["--base-url", "ftp://example.com"]).await, base);
    let nowhere =
        "cannot read the plugin manifest /nowhere.toml: No such file or directory (os error 2)";
    assert_eq!(
        failure_in(folder.path(), &["--manifest", "/nowhere.toml"]).await,
        nowhere
    );
}

#[tokio::test]
async fn a_resolver_that_could_not_be_granted_is_told_by_rule_and_value() {
    let manifest = manifest();
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("config.toml");
    let path = file.to_string_lossy();
    let rule = "an https URL of a host name and a path, such as https://dns.example.net/dns-query";
    for (url, because) in [
        ("http://dns.example.net/dns-query", ""),
        ("https://dns.example.net/", ""),
        ("https://*.example.net/dns-query", ""),
        ("https://127.0.0.1/dns-query", "has the address `127.0.0.1`"),
        (
            "https://localhost/dns-query",
            "has the host `localhost`, which is never public",
        ),
        (
            "https://me@dns.example.net/dns-query",
            "has credentials in its target",
        ),
        ("https://dns.example.net/dns-query?a=b", "has a query"),
        ("https://dns.example.net:443/dns-query", "must be spelled"),
    ] {
        std::fs::write(&file, format!("[dns.resolvers]\nnear = \"{url}\"\n"))
            .expect("the configuration is written");
        let told = failure_in(folder.path(), &["--manifest", &manifest, "--config", &path]).await;
        assert!(
            told.starts_with(&format!("`dns.resolvers` is {url}; it must be {rule}")),
            "{told}"
        );
        assert!(told.contains(because), "{told}");
    }
}

#[tokio::test]
async fn a_second_process_does_not_take_the_data_folder() {
    let service = Service::shared();
    let data = service.data.path();
    let line = failure_in(data, &["--manifest", &manifest()]).await;
    assert_eq!(
        line,
        format!(
            "another switchbay process is using the data folder {}",
            data.display()
        )
    );
    assert_eq!(service.get("/readyz").await.status, 200);
    assert!(
        service.operator_url().starts_with("http://127.0.0.1:"),
        "the first one's address is kept"
    );
}

#[tokio::test]
async fn a_port_in_use_is_told_with_the_flag_that_chooses_another() {
    let service = Service::shared();
    let (api, operator) = (
        service.base_url.replace("http://", ""),
        service.operator_url().replace("http://", ""),
    );
    let folder = TempDir::new().expect("a temporary folder");
    let data = folder.path().to_string_lossy();
    for (listen, operator_listen, taken, flag) in [
        (api.as_str(), "127.0.0.1:0", &api, "--listen"),
        (
            "127.0.0.1:0",
            operator.as_str(),
            &operator,
            "--operator-listen",
        ),
    ] {
        let ports = ["--listen", listen, "--operator-listen", operator_listen];
        let line =
            failure(&[&ports[..], &["--data", &data, "--manifest", &manifest()]].concat()).await;
        assert_eq!(
            line,
            format!(
                "the address {taken} is in use: stop the process that uses it, or choose another with {flag}"
            )
        );
    }
}

/// The manifest of the product, whose components are built.
fn manifest() -> String {
    build();
    workspace()
        .join("plugin-manifest.toml")
        .to_string_lossy()
        .into_owned()
}

#[tokio::test]
async fn a_public_operator_listener_is_warned_of_at_every_start() {
    let data = Service::shared().data.path().to_string_lossy().into_owned();
    for (operator_listen, is_public) in [
        ("127.0.0.1:0", false),
        ("[::1]:0", false),
        ("[::ffff:127.0.0.1]:0", false),
        ("0.0.0.0:0", true),
        ("[::]:0", true),
    ] {
        // It ends by itself, because another process has the data folder.
        let ports = [
            "--listen",
            "127.0.0.1:0",
            "--operator-listen",
            operator_listen,
            "--data",
            &data,
        ];
        let mut command = Command::new(binary());
        command
            .arg("serve")
            .args(ports)
            .args(["--log-format", "json", "--manifest", &manifest()]);
        let ended = tokio::time::timeout(
            RUN,
            command.stdin(Stdio::null()).kill_on_drop(true).output(),
        )
        .await;
        let told = String::from_utf8(ended.expect("it fails").expect("the binary runs").stderr)
            .expect("UTF-8");
        assert!(
            told.contains("another switchbay process is using the data folder"),
            "{told}"
        );
        let warned = told
            .lines()
            .any(|line| line.contains("\"WARN\"") && line.contains("not on a loopback address"));
        assert_eq!(warned, is_public, "{operator_listen}: {told}");
    }
}
