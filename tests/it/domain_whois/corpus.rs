//! The plugin's corpora, as what the lab's servers answer and what the service is to tell of it.

use serde_json::{Value, json};

use super::registries::Does;
use crate::support::workspace;

/// One answer of a registry.
pub(super) struct Case {
    /// The host of its server, or the base URL of its RDAP service.
    pub(super) server: String,
    pub(super) kind: String,
    pub(super) domain: String,
    pub(super) answer: String,
    /// What is told, without names and `meta`; nothing where the registry refuses.
    pub(super) expected: Option<Value>,
}

/// The cases of a folder of corpora.
pub(super) fn cases(folder: &str) -> Vec<Case> {
    let folder = workspace().join("plugins/domain-whois/corpus").join(folder);
    let files = std::fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path());
    files
        .flat_map(|file| read(&std::fs::read_to_string(file).expect("text")))
        .collect()
}

fn read(text: &str) -> Vec<Case> {
    let (server, cases) = text.split_once("\n== ").expect("cases");
    let server = server.split_once(' ').expect("a server").1;
    let cases = cases.split("\n== ").map(|case| {
        let (head, rest) = case.split_once('\n').expect("an answer");
        let (kind, domain) = head.split_once(' ').expect("a kind");
        let (answer, expected) = rest.split_once("--> ").expect("what is expected");
        let expected = match expected.trim() {
            "free" => Some(json!({ "registered": false })),
            "reserved" => Some(json!({ "registered": false, "status": ["reserved"] })),
            "throttled" => None,
            members => {
                let mut members: Value = serde_json::from_str(members).expect("JSON");
                members["registered"] = json!(true);
                Some(members)
            }
        };
        let [server, kind, domain, answer] = [server, kind, domain, answer].map(str::to_owned);
        Case {
            server,
            kind,
            domain,
            answer,
            expected,
        }
    });
    cases.collect()
}

impl Case {
    /// What the server of this case does.
    pub(super) fn does(&self) -> Does {
        match self
            .answer
            .strip_prefix("HTTP ")
            .and_then(|rest| rest.split_once('\n'))
        {
            Some((status, body)) => Does::rdap(status.parse().expect("a status"), body),
            None => Does::says(&self.answer),
        }
    }

    /// What a port-43 server is to be asked: four want more than the name.
    pub(super) fn question(&self) -> String {
        let domain = &self.domain;
        match self.server.as_str() {
            "whois.verisign-grs.com" => format!("domain {domain}"),
            "whois.denic.de" => format!("-T dn,ace {domain}"),
            "whois.jprs.jp" => format!("{domain}/e"),
            "whois.dk-hostmaster.dk" => format!("--charset=utf-8 {domain}"),
            _ => domain.clone(),
        }
    }
}
