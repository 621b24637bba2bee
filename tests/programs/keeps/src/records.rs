//! The plugin's records.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::state::{self, Error, Expected, Write};
use switchbay_sdk::{Call, Failure, Reply};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// What to do: `get`, `put`, `delete`, `write` (several), `list` or `count` (adds one to a number).
    act: String,
    /// The key, or the prefix of a list.
    #[serde(default)]
    key: String,
    /// The value.
    #[serde(default)]
    value: Option<String>,
    /// A value of so many bytes in its place.
    #[serde(default)]
    bytes: Option<usize>,
    /// The version that must be there, 0 for none at all.
    #[serde(default)]
    expected: Option<u64>,
    /// What a list begins after.
    #[serde(default)]
    after: Option<String>,
    /// How long a list may be.
    #[serde(default)]
    limit: Option<u32>,
    /// In how many milliseconds a record expires that is put; it may be past.
    #[serde(default)]
    expires_in_ms: Option<i64>,
    /// What is written together.
    #[serde(default)]
    writes: Vec<OneWrite>,
    /// How often, all at once, with the number behind the key.
    #[serde(default)]
    times: Option<usize>,
}

/// A write among others: it deletes where there is no value.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneWrite {
    /// The key.
    key: String,
    /// A value of so many bytes.
    #[serde(default)]
    bytes: Option<usize>,
    /// The value.
    #[serde(default)]
    value: Option<String>,
    /// The version that must be there, 0 for none at all.
    #[serde(default)]
    expected: Option<u64>,
    /// In how many milliseconds it expires; it may be past.
    #[serde(default)]
    expires_in_ms: Option<i64>,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// `found`, `none`, `done`, or the name of what went wrong.
    outcome: String,
    /// How the value begins, the list, or what else there is to say.
    told: String,
    /// The version of what was found or written, or of what is there where it was not expected.
    version: Option<u64>,
    /// Bytes of the value.
    bytes: usize,
    /// How often each outcome was, if it was done several times.
    outcomes: String,
}

pub(crate) async fn run(_call: Call, input: Input) -> Result<Reply<Output>, Failure> {
    let Some(times) = input.times else {
        return Ok(Reply::ok(one(&input, &input.key).await));
    };
    let keys: Vec<String> = (0..times)
        .map(|number| format!("{}{number}", input.key))
        .collect();
    let mut all = futures::future::join_all(keys.iter().map(|key| one(&input, key))).await;
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for output in &all {
        *outcomes.entry(&output.outcome).or_default() += 1;
    }
    let outcomes: Vec<String> = outcomes
        .iter()
        .map(|(outcome, count)| format!("{outcome} {count}"))
        .collect();
    let last = all.pop().unwrap_or_default();
    Ok(Reply::ok(Output {
        outcomes: outcomes.join(", "),
        ..last
    }))
}

async fn one(input: &Input, key: &str) -> Output {
    act(input, key).await.unwrap_or_else(named)
}

async fn act(input: &Input, key: &str) -> Result<Output, Error> {
    let value = match input.bytes {
        Some(bytes) => "x".repeat(bytes),
        None => input.value.clone().unwrap_or_default(),
    };
    let expected = expected(input.expected);
    let done = || Output {
        outcome: "done".to_owned(),
        ..Output::default()
    };
    Ok(match input.act.as_str() {
        "get" => match state::get(key).await? {
            None => Output {
                outcome: "none".to_owned(),
                ..Output::default()
            },
            Some(entry) => {
                let told = String::from_utf8_lossy(&entry.value)
                    .chars()
                    .take(40)
                    .collect();
                let (version, bytes) = (Some(entry.version), entry.value.len());
                Output {
                    outcome: "found".to_owned(),
                    told,
                    version,
                    bytes,
                    ..Output::default()
                }
            }
        },
        "put" => {
            let put = expiring(Write::put(key, value), input.expires_in_ms);
            Output {
                version: Some(state::write([put.expect(expected)]).await?),
                ..done()
            }
        }
        "write" => Output {
            version: Some(state::write(input.writes.iter().map(write)).await?),
            ..done()
        },
        "delete" => state::delete(key, expected).await.map(|()| done())?,
        "list" => {
            let listed =
                state::list(key, input.after.as_deref(), input.limit.unwrap_or(1000)).await?;
            let told: Vec<String> = listed
                .iter()
                .map(|one| format!("{}={}", one.key, one.bytes))
                .collect();
            Output {
                told: told.join(" "),
                ..done()
            }
        }
        "count" => {
            let count =
                state::update_json(key, |count: Option<u64>| count.unwrap_or(0) + 1).await?;
            Output {
                told: count.to_string(),
                ..done()
            }
        }
        other => panic!("`{other}` is nothing to do"),
    })
}

fn write(one: &OneWrite) -> Write {
    let value = one.bytes.map(|bytes| "x".repeat(bytes));
    let write = match value.or_else(|| one.value.clone()) {
        Some(value) => expiring(Write::put(&one.key, value), one.expires_in_ms),
        None => Write::delete(&one.key),
    };
    write.expect(expected(one.expected))
}

fn expected(version: Option<u64>) -> Expected {
    match version {
        None => Expected::Any,
        Some(0) => Expected::Absent,
        Some(version) => Expected::Version(version),
    }
}

fn expiring(write: Write, in_ms: Option<i64>) -> Write {
    let Some(in_ms) = in_ms else {
        return write;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(0));
    write.expire_at(now_ms.saturating_add_signed(in_ms))
}

fn named(error: Error) -> Output {
    let (outcome, told, version) = match error {
        Error::NotGranted(told) => ("not_granted", told, None),
        Error::NotAcceptable(told) => ("not_acceptable", told, None),
        Error::Full(told) => ("full", told, None),
        Error::Conflict(unmet) => {
            let places: Vec<String> = unmet
                .iter()
                .map(|one| format!("{} {:?}", one.index, one.found))
                .collect();
            let found = unmet.first().and_then(|one| one.found);
            ("conflict", places.join(", "), found)
        }
        Error::Busy => ("busy", String::new(), None),
        Error::Unavailable => ("unavailable", String::new(), None),
    };
    Output {
        outcome: outcome.to_owned(),
        told,
        version,
        ..Output::default()
    }
}
