//! The directory's refresh from VietQR: asked for by a call, once a day, and never for long.
//!
//! A plugin has no task of its own, so the first call that finds the directory due asks, and waits a second at most; all
//! others go on with what there is. What was taken is a record of `state`, so that it outlives the process and `updatedAt` is
//! the time of the content. Whoever asks first moves the record's own time forward, so one instance asks, and one that fails
//! or is dropped is followed by a pause. Between two looks at the record an instance goes by what it has; that costs one
//! reading of the clock. Without the grants the embedded snapshot serves.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use switchbay_sdk::state::{self, Expected};
use switchbay_sdk::{Timestamp, config, http, log};

use crate::directory::{BankList, SNAPSHOT};
use crate::upstream::{self, Listed};

/// The record's key.
const KEY: &str = "directory";
const URL: &str = "https://api.vietqr.io/v2/banks";
/// Between two refreshes, less up to a tenth so that installations do not ask at the same time.
const INTERVAL_S: u64 = 86_400;
/// After one that failed.
const PAUSE_S: u64 = 600;
/// Between two looks of an instance at the record.
const LOOK_S: u64 = 60;
/// What a call waits at most, in milliseconds.
const WAIT_MS: u32 = 1000;
/// The largest list, in bytes.
const LIST_BYTES_MAX: u32 = 512 * 1024;

/// What is kept of the directory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Record {
    /// The banks and since when they are these; `None` as long as the snapshot's are.
    content: Option<Content>,
    /// When the list is asked for again, in seconds since 1970.
    due_s: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Content {
    banks: Vec<Listed>,
    updated_at: String,
}

thread_local! {
    /// The instance's directory, and until when it goes by it.
    static HELD: Cell<(Option<&'static BankList>, Option<Instant>)> = const { Cell::new((None, None)) };
}

/// The directory as it is now.
pub(crate) async fn current() -> &'static BankList {
    let (held, until) = HELD.get();
    let directory = held.unwrap_or(&SNAPSHOT);
    let now = Instant::now();
    if until.is_some_and(|until| now < until) {
        return directory;
    }
    let interval_s = setting("refresh_s").unwrap_or(INTERVAL_S);
    HELD.set((
        held,
        Some(now + Duration::from_secs(LOOK_S.min(interval_s))),
    ));
    let Some(content) = look(interval_s).await else {
        return directory;
    };
    if content.updated_at == directory.updated_at {
        return directory;
    }
    // It lives as long as the instance, and there is another one only where the content changes.
    let adopted: &'static BankList =
        Box::leak(Box::new(BankList::of(&content.banks, &content.updated_at)));
    let (_, until) = HELD.get();
    HELD.set((Some(adopted), until));
    adopted
}

/// The content of the record, brought up to date if that is due.
async fn look(interval_s: u64) -> Option<Content> {
    // Without `state` there is nothing to look at, and nothing that is asked for could be kept.
    let found = state::get_json::<Record>(KEY).await.ok()?;
    let (record, expected) = match found {
        Some(entry) => (entry.value, Expected::Version(entry.version)),
        None => (Record::default(), Expected::Absent),
    };
    let now_s = Timestamp::now().unix_ms() / 1000;
    if now_s < record.due_s {
        return record.content;
    }
    // Whoever else finds it due now finds this instead.
    let paused = Record {
        due_s: now_s + setting("pause_s").unwrap_or(PAUSE_S),
        ..record.clone()
    };
    let Ok(version) = state::put_json(KEY, &paused, expected).await else {
        return record.content;
    };
    let banks = match fetch().await {
        Ok(banks) => banks,
        Err(why) => {
            log::warn(&format!("the bank directory could not be refreshed: {why}"));
            return record.content;
        }
    };
    let content = changed(banks, record.content);
    let next = Record {
        content: content.clone(),
        due_s: now_s + early(interval_s),
    };
    if let Err(error) = state::put_json(KEY, &next, Expected::Version(version)).await {
        log::warn(&format!(
            "the refreshed bank directory could not be stored: {error:?}"
        ));
        return paused.content;
    }
    content
}

/// The content after the list said these banks: the same where it said the same.
fn changed(banks: Vec<Listed>, content: Option<Content>) -> Option<Content> {
    let is_same = match &content {
        Some(content) => content.banks == banks,
        None => SNAPSHOT
            .banks
            .iter()
            .map(upstream::listed)
            .eq(banks.iter().cloned()),
    };
    if is_same {
        content
    } else {
        Some(Content {
            banks,
            // Two contents never have the same.
            updated_at: Timestamp::now().to_the_millisecond().to_string(),
        })
    }
}

/// Asks for the list.
async fn fetch() -> Result<Vec<Listed>, String> {
    let url = config::get("directory_url").unwrap_or_else(|| URL.to_owned());
    let wait_ms = setting("wait_ms").unwrap_or(WAIT_MS);
    let request = http::get(url)
        .response_bytes(LIST_BYTES_MAX)
        .total_ms(wait_ms)
        .first_byte_ms(wait_ms);
    let response = request.send().await.map_err(|error| format!("{error:?}"))?;
    match response.status() {
        200 => upstream::read(response.bytes()).map_err(|why| why.to_string()),
        status => Err(format!("the response has status {status}")),
    }
}

/// An interval less up to a tenth of it.
fn early(interval_s: u64) -> u64 {
    interval_s - RandomState::new().hash_one(0_u8) % (interval_s / 10 + 1)
}

fn setting<T: DeserializeOwned>(key: &str) -> Option<T> {
    config::value(key).unwrap_or_else(|error| {
        log::error(&error.to_string());
        None
    })
}
