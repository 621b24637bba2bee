//! Writes the plugin's tables anew from the lists that they are made of, to standard output:
//!
//! - `tables suffixes public_suffix_list.dat`: the ICANN section of the public suffix list
//! - `tables rdap dns.json`: IANA's RDAP bootstrap registry (RFC 9224)
//! - `tables servers tld.json`: port-43 servers by top-level domain
//!
//! The lists are fetched by whoever refreshes a table; nothing is fetched here, and the plugin reads the tables alone.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::Value;

/// Names and what stands behind each, both in alphabetical order.
type Rows = BTreeMap<String, Vec<String>>;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [table, file] = arguments.as_slice() else {
        return std::io::stderr().write_all(b"usage: tables (suffixes | rdap | servers) FILE\n");
    };
    let text = std::fs::read_to_string(file)?;
    let written = match table.as_str() {
        "suffixes" => suffixes(&text),
        "rdap" => rdap(&serde_json::from_str(&text)?),
        "servers" => servers(&serde_json::from_str(&text)?),
        other => format!("no table `{other}`\n"),
    };
    std::io::stdout().write_all(written.as_bytes())
}

/// A rule of one label says nothing that the list's default does not, so those with more stand alone.
fn suffixes(text: &str) -> String {
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("// VERSION: "))
        .unwrap_or("unknown");
    let mut rows = Rows::new();
    let icann = text
        .split("===END ICANN DOMAINS===")
        .next()
        .unwrap_or_default();
    for rule in icann
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
    {
        let (mark, labels) = rule
            .strip_prefix('!')
            .map_or(("", rule), |rest| ("!", rest));
        let labels = idna::domain_to_ascii(labels)
            .unwrap_or_else(|_| panic!("the rule `{rule}` has no ASCII form"));
        if let Some((below, top)) = labels.rsplit_once('.') {
            rows.entry(top.to_owned())
                .or_default()
                .push(format!("{mark}{below}"));
        }
    }
    let head = format!(
        "# Public suffixes of more than one label, ICANN section alone: a top-level domain and what stands below it.\n\
         # SOURCE: the public suffix list (publicsuffix.org), version {version}.\n"
    );
    print(head, rows)
}

fn rdap(list: &Value) -> String {
    let mut rows = Rows::new();
    for service in list["services"].as_array().into_iter().flatten() {
        let urls: Vec<&str> = strings(&service[1]);
        let Some(url) = urls
            .iter()
            .find(|url| url.starts_with("https://"))
            .or(urls.first())
        else {
            continue;
        };
        rows.entry((*url).to_owned())
            .or_default()
            .extend(strings(&service[0]).into_iter().map(str::to_owned));
    }
    let head = format!(
        "# RDAP services: a base URL and the domains that it answers for.\n\
         # SOURCE: IANA's bootstrap registry for domain names (data.iana.org/rdap/dns.json), publication {}.\n",
        list["publication"].as_str().unwrap_or("unknown")
    );
    print(head, rows)
}

/// Keys of several labels are kept where registrations are made by another registry than the top-level domain's.
fn servers(list: &Value) -> String {
    let mut rows = Rows::new();
    for (name, row) in list.as_object().into_iter().flatten() {
        if let Some(host) = row["host"].as_str() {
            rows.entry(host.to_owned())
                .or_default()
                .push(name.trim_start_matches('.').to_owned());
        }
    }
    let head = format!(
        "# Port-43 servers: a host and the domains that it answers for.\n\
         # SOURCE: the table of the MIT-licensed `whois` project (weppos/whois, data/tld.json), updated {}.\n",
        list["_"]["updated"].as_str().unwrap_or("unknown")
    );
    print(head, rows)
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn print(head: String, rows: Rows) -> String {
    rows.into_iter().fold(head, |mut text, (name, mut behind)| {
        behind.sort();
        behind.dedup();
        text.push_str(&format!("{name} {}\n", behind.join(" ")));
        text
    })
}
