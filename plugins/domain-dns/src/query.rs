//! One query's outcome: its answer with the records shown, or how it failed.

use serde::Serialize;
use switchbay_sdk::schemars::{self, JsonSchema};

use crate::kind::{self, Kind};
use crate::message::{Flags, Message, NotAnswer, RawRecord, Section};
use crate::rdata::{self, Shown};

/// How much text one answer may become. Pointers make much of few bytes; nothing that is of use comes near.
const TEXT_BYTES_MAX: usize = 256 << 10;
/// What a record is counted as beside its names and data.
const RECORD_BYTES: usize = 200;

/// How a query came to no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Failed {
    /// Not even the resolver was reached, or it was not to be asked.
    Unreachable,
    /// What came is no answer.
    Bad,
    Late,
}

/// What became of a query.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Answer),
    Failed(Failed),
}

/// A query's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response_code: u16,
    pub(crate) flags: Flags,
    pub(crate) counts: Counts,
    pub(crate) records: Vec<Record>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Counts {
    /// Records in the answer section.
    pub(crate) answer: u32,
    /// Records in the authority section.
    pub(crate) authority: u32,
    /// Records in the additional section, without the OPT pseudo-record.
    pub(crate) additional: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub(crate) section: Section,
    /// The owner name as the resolver returned it, without the trailing dot; the root is `.`.
    name: String,
    /// The owner name in lower case, with the trailing dot.
    pub(crate) canonical_name: String,
    /// The owner name in lower case, without the trailing dot.
    normalized_name: String,
    /// The number of the record type.
    pub(crate) type_code: u16,
    /// The name of the record type, or `TYPE` and the number if it has no name here.
    pub(crate) type_name: String,
    /// Seconds for which the record may be cached.
    pub(crate) ttl: u32,
    /// The same as `ttl`.
    #[serde(rename = "TTL")]
    pub(crate) ttl_again: u32,
    /// The record data in presentation format.
    data: String,
    /// The data normalized for comparison: lower-case names and digits, no trailing dots, joined strings, sorted parameters.
    pub(crate) normalized_data: String,
}

impl Outcome {
    /// What the bytes say that a query for a name, in lower case and without trailing dot, was answered with.
    pub(crate) fn of(answered: Result<Vec<u8>, Failed>, domain: &str, kind: &Kind) -> Self {
        let bytes = match answered {
            Ok(bytes) => bytes,
            Err(failed) => return Self::Failed(failed),
        };
        match Message::read(&bytes, domain, kind.code) {
            Ok(message) => Answer::of(&message).map_or(Self::Failed(Failed::Bad), Self::Answered),
            Err(NotAnswer::Malformed(_) | NotAnswer::Query | NotAnswer::OtherQuestion) => {
                Self::Failed(Failed::Bad)
            }
        }
    }

    pub(crate) fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answered(answer) => Some(answer),
            Self::Failed(_) => None,
        }
    }

    pub(crate) fn failed(&self) -> Option<Failed> {
        match self {
            Self::Answered(_) => None,
            Self::Failed(failed) => Some(*failed),
        }
    }
}

impl Answer {
    /// Shows the records, unless they become more text than is of use.
    fn of(message: &Message<'_>) -> Option<Self> {
        let mut counts = Counts::default();
        let mut records = Vec::with_capacity(message.records.len());
        let mut left = TEXT_BYTES_MAX;
        for raw in &message.records {
            *counts.of(raw.section) += 1;
            let record = Record::of(raw);
            left = left.checked_sub(record.text_bytes())?;
            records.push(record);
        }
        Some(Self {
            response_code: message.response_code,
            flags: message.flags,
            counts,
            records,
        })
    }

    /// Whether a record of the answer section belongs to this name, in lower case and without trailing dot.
    pub(crate) fn owns(&self, domain: &str) -> bool {
        self.records
            .iter()
            .any(|record| record.section == Section::Answer && record.normalized_name == domain)
    }
}

impl Counts {
    fn of(&mut self, section: Section) -> &mut u32 {
        match section {
            Section::Answer => &mut self.answer,
            Section::Authority => &mut self.authority,
            Section::Additional => &mut self.additional,
        }
    }
}

impl Record {
    fn of(raw: &RawRecord<'_>) -> Self {
        let Shown { data, normalized } = rdata::show(raw.code, raw.data);
        Self {
            section: raw.section,
            name: raw.owner.plain(),
            canonical_name: raw.owner.absolute().to_ascii_lowercase(),
            normalized_name: raw.owner.plain().to_ascii_lowercase(),
            type_code: raw.code,
            type_name: kind::name(raw.code),
            ttl: raw.ttl,
            ttl_again: raw.ttl,
            data,
            normalized_data: normalized,
        }
    }

    /// What it takes in an answer, about.
    fn text_bytes(&self) -> usize {
        let texts = [
            &self.name,
            &self.canonical_name,
            &self.normalized_name,
            &self.data,
            &self.normalized_data,
        ];
        RECORD_BYTES + texts.iter().map(|text| text.len()).sum::<usize>()
    }
}
