//! The plugin's cache.

use serde::{Deserialize, Serialize};
use switchbay_sdk::cache::{self, Ages, Error};
use switchbay_sdk::schemars::{self, JsonSchema};
use switchbay_sdk::{Call, Failure, Reply};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// What to do: `get`, `put`, `remove`, `get_json` or `put_json`.
    act: String,
    /// The key.
    key: String,
    /// The value.
    #[serde(default)]
    value: Option<String>,
    /// A value of so many bytes in its place.
    #[serde(default)]
    bytes: Option<usize>,
    /// How long it is fresh, in milliseconds: a minute, if this is not said.
    #[serde(default)]
    fresh_ms: Option<u64>,
    /// And how much longer it is stale: not at all, if this is not said.
    #[serde(default)]
    stale_ms: Option<u64>,
    /// How often, with the number behind the key.
    #[serde(default)]
    times: Option<usize>,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// `fresh`, `stale`, `none`, `done`, or the name of what went wrong.
    outcome: String,
    /// How the value begins, or what else there is to say.
    told: String,
    /// Bytes of the value.
    bytes: usize,
    /// How long ago it was put.
    age_ms: u64,
}

pub(crate) async fn run(_call: Call, input: Input) -> Result<Reply<Output>, Failure> {
    let mut last = Output::default();
    for number in 0..input.times.unwrap_or(1) {
        let key = input
            .times
            .map_or_else(|| input.key.clone(), |_| format!("{}{number}", input.key));
        last = one(&input, &key).unwrap_or_else(|error| named(&error));
    }
    Ok(Reply::ok(last))
}

fn one(input: &Input, key: &str) -> Result<Output, Error> {
    let value = match input.bytes {
        Some(bytes) => "x".repeat(bytes),
        None => input.value.clone().unwrap_or_default(),
    };
    let ages = Ages {
        fresh_ms: input.fresh_ms.unwrap_or(60_000),
        stale_ms: input.stale_ms.unwrap_or(0),
    };
    match input.act.as_str() {
        "get" => Ok(cache::get(key)?.map_or_else(
            || plain("none"),
            |entry| found(&entry.value, entry.stale, entry.age_ms),
        )),
        "get_json" => Ok(cache::get_json::<Vec<String>>(key)?.map_or_else(
            || plain("none"),
            |entry| found(entry.value.join(" ").as_bytes(), entry.stale, entry.age_ms),
        )),
        "put" => cache::put(key, value.as_bytes(), ages).map(|()| plain("done")),
        "put_json" => cache::put_json(key, &value.split(' ').collect::<Vec<_>>(), ages)
            .map(|()| plain("done")),
        "remove" => cache::remove(key).map(|()| plain("done")),
        other => panic!("`{other}` is nothing to do"),
    }
}

fn found(value: &[u8], stale: bool, age_ms: u64) -> Output {
    let outcome = if stale { "stale" } else { "fresh" };
    let told = String::from_utf8_lossy(value).chars().take(40).collect();
    Output {
        outcome: outcome.to_owned(),
        told,
        bytes: value.len(),
        age_ms,
    }
}

fn plain(outcome: &str) -> Output {
    Output {
        outcome: outcome.to_owned(),
        ..Output::default()
    }
}

fn named(error: &Error) -> Output {
    let (outcome, told) = match error {
        Error::NotGranted(told) => ("not_granted", told),
        Error::NotAcceptable(told) => ("not_acceptable", told),
    };
    Output {
        outcome: outcome.to_owned(),
        told: told.clone(),
        ..Output::default()
    }
}
