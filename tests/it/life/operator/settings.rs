//! The settings in effect, as the operator reads them: under the names by which they are set, and all of them.

use serde_json::{Value, json};

use crate::support::{Options, Service, workspace};

/// The tables of the file, with what is written and the defaults of the rest.
fn tables() -> Value {
    json!({
        "limits": {
            "connections": 4096,
            "in_flight": 77,
            "unsent_bytes": 256 << 20,
            "connection_unsent_bytes": 16 << 20,
            "instances": 1024,
            "header_ms": 10_000,
            "body_ms": 15_000,
            "request_ms": 180_000,
            "write_ms": 30_000,
            "idle_ms": 12_345,
            "drain_ms": 30_000,
            "compile_memory": 2_u64 << 30,
            "compile_cpu_seconds": 120,
            "compile_wall_ms": 300_000,
        },
        "shares": { "waiting": 64, "cpu_seconds": 30 },
        "credits": { "concurrency": 5, "costs": {} },
        "peers": { "trusted_proxies": [], "connections": 256, "in_flight": 128, "unsent_bytes": 64 << 20 },
        "first_party": { "origins": [] },
        "mcp": { "origins": ["https://app.example.com"] },
        "oauth": {
            "issuer": "https://id.example.com/",
            "audiences": ["https://api.example.com"],
            "per_minute": 60,
            "per_month": null,
            "fetch_ms": 5000,
            "renew_ms": 600_000,
        },
        "egress": { "connect_to": {}, "dns_servers": [], "extra_roots": [] },
        "dns": {
            "resolvers": {
                "cloudflare": { "url": "https://cloudflare-dns.com/dns-query", "client_subnet": "unsaid" },
                "google": { "url": "https://dns.google/dns-query", "client_subnet": "withheld" },
                // Its path may be the name that the operator has there.
                "near": { "url": "https://dns.example.net/…", "client_subnet": "unsaid" },
            },
        },
        "jobs": {
            "running": 8,
            "open": 512,
            "owner_running": 2,
            "owner_open": 16,
            "owner_kept": 512,
            "owner_bytes": 256 << 20,
            "cpu_seconds": 90,
        },
        "ip_databases": {
            "city": { "files": ["/nowhere/city.mmdb"], "title": "Cities", "license": null },
        },
        "proxy": {
            "listen": "127.0.0.1:0",
            "connections": 256,
            "head_ms": 10_000,
            "idle_ms": 60_000,
            "total_ms": 600_000,
            "bytes": 256 << 20,
        },
    })
}

#[tokio::test]
async fn the_settings_are_told_as_they_are_in_effect() {
    let service = Service::start(Options {
        config: "[limits]\nin_flight = 77\nidle_ms = 12345\n[mcp]\norigins = [\"https://app.example.com\"]\n\
                 [oauth]\nissuer = \"https://id.example.com/\"\naudiences = [\"https://api.example.com\"]\n\
                 [dns.resolvers]\nnear = \"https://dns.example.net/customer-7\"\n[jobs]\ncpu_seconds = 90\n\
                 [ip_databases]\ncity = { files = [\"/nowhere/city.mmdb\"], title = \"Cities\" }"
            .to_owned(),
        arguments: vec!["--base-url".to_owned(), "https://api.example.com/v/".to_owned()],
        ..Options::default()
    })
    .await;
    let settings = service.told("/admin/v1/config").await;
    let mut expected = json!({
        "listen": "127.0.0.1:0",
        "operator_listen": "127.0.0.1:0",
        "base_url": "https://api.example.com/v",
        "data": service.data.path(),
        "manifest": workspace().join("tests/programs/plugin-manifest.toml"),
        "safe_mode": false,
    });
    for (name, table) in tables().as_object().expect("tables") {
        expected[name] = table.clone();
    }
    assert_eq!(settings, expected);
}
