//! A lookup's published result, put together from what became of its 16 queries.
//!
//! It must know nothing of where answers come from, of the cache and of the clock.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchbay_sdk::Timestamp;
use switchbay_sdk::schemars::{self, JsonSchema};

use crate::kind::{self, ASKED, Kind};
use crate::message::{Flags, Section};
use crate::query::{Counts, Failed, Outcome, Record};
use crate::status::{self, Status, StatusSummary};

/// A resolver that can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Provider {
    #[default]
    Cloudflare,
    Google,
}

impl Provider {
    /// Its name in requests, in answers and among the operator's resolvers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cloudflare => "cloudflare",
            Self::Google => "google",
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Lookup<'a> {
    /// The hostname that was looked up, in lower-case ASCII without the trailing dot.
    domain: &'a str,
    /// The resolver that was queried.
    #[schemars(with = "Provider")]
    provider: &'a str,
    /// The records of all queries, each once with its shortest TTL, ordered by section and type.
    records: Vec<Record>,
    /// The same records by section and type; empty sections and types are omitted.
    sections: Vec<SectionGroups>,
    /// The queries, one per type: A, AAAA, CNAME, MX, NS, PTR, SRV, SOA, TXT, CAA, DS, DNSKEY, TLSA, NAPTR, HTTPS, SVCB.
    queries: Vec<Query<'a>>,
    /// The overall status of the lookup.
    #[serde(rename = "statusSummary")]
    status_summary: StatusSummary,
    /// When the resolver was queried. Results are cached for 60 seconds.
    queried_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SectionGroups {
    section: Section,
    /// `Answer`, `Authority` or `Additional`.
    title: &'static str,
    /// The section's records, grouped by type.
    groups: Vec<Group>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Group {
    /// The name of the type.
    type_name: String,
    /// The number of the type.
    type_code: u16,
    /// The records.
    records: Vec<Record>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Query<'a> {
    /// The query.
    query: Question<'a>,
    /// The status of the query.
    status: Status,
    /// The header flags of the answer; all false if there was no answer.
    flags: Flags,
    /// The records of this answer, as received.
    records: &'a [Record],
    /// The number of records in each section.
    counts: Counts,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Question<'a> {
    /// The name as it was queried.
    name: &'a str,
    /// The name in lower-case ASCII, without the trailing dot.
    normalized_name: &'a str,
    /// The name of the type.
    type_name: &'static str,
    /// The number of the type.
    type_code: u16,
}

impl<'a> Lookup<'a> {
    /// The result for a name, in lower case and without trailing dot. The outcomes are in the order of [`ASKED`].
    pub(crate) fn of(
        domain: &'a str,
        provider: Provider,
        outcomes: &'a [Outcome],
        queried_at: Timestamp,
    ) -> Self {
        let records = deduplicated(outcomes);
        Self {
            domain,
            provider: provider.name(),
            sections: sections(&records),
            records,
            queries: ASKED
                .iter()
                .zip(outcomes)
                .map(|(kind, outcome)| query(domain, kind, outcome))
                .collect(),
            status_summary: status::summary(domain, outcomes),
            queried_at,
        }
    }
}

/// What a lookup without a single answer failed by; of several ways, the latest that a query came to.
pub(crate) fn failure(outcomes: &[Outcome]) -> Option<Failed> {
    let failed: Option<Vec<Failed>> = outcomes.iter().map(Outcome::failed).collect();
    failed?.into_iter().max()
}

/// The records of all answers, each once: 16 queries bring the same alias and the same SOA up to 16 times.
fn deduplicated(outcomes: &[Outcome]) -> Vec<Record> {
    let mut places: BTreeMap<(Section, &str, u16, &str), usize> = BTreeMap::new();
    let mut records: Vec<Record> = Vec::new();
    for record in outcomes
        .iter()
        .filter_map(Outcome::answer)
        .flat_map(|answer| &answer.records)
    {
        let key = (
            record.section,
            &*record.canonical_name,
            record.type_code,
            &*record.normalized_data,
        );
        let place = *places.entry(key).or_insert(records.len());
        match records.get_mut(place) {
            None => records.push(record.clone()),
            Some(known) => {
                known.ttl = known.ttl.min(record.ttl);
                known.ttl_again = known.ttl;
            }
        }
    }
    records.sort_by_key(|record| (record.section, kind::rank(record.type_code)));
    records
}

/// Sorted records by section and type.
fn sections(records: &[Record]) -> Vec<SectionGroups> {
    let groups = |records: &[Record]| {
        let of_type = |records: &[Record]| Group {
            type_name: records[0].type_name.clone(),
            type_code: records[0].type_code,
            records: records.to_vec(),
        };
        records
            .chunk_by(|one, next| one.type_code == next.type_code)
            .map(of_type)
            .collect()
    };
    let of_section = |records: &[Record]| SectionGroups {
        section: records[0].section,
        title: match records[0].section {
            Section::Answer => "Answer",
            Section::Authority => "Authority",
            Section::Additional => "Additional",
        },
        groups: groups(records),
    };
    records
        .chunk_by(|one, next| one.section == next.section)
        .map(of_section)
        .collect()
}

fn query<'a>(domain: &'a str, kind: &'static Kind, outcome: &'a Outcome) -> Query<'a> {
    let answer = outcome.answer();
    Query {
        query: Question {
            name: domain,
            normalized_name: domain,
            type_name: kind.name,
            type_code: kind.code,
        },
        status: Status::of(outcome),
        flags: answer.map(|answer| answer.flags).unwrap_or_default(),
        records: answer.map_or(&[], |answer| &answer.records),
        counts: answer.map(|answer| answer.counts).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, record};

    const DOMAIN: &str = "example.com";

    fn outcomes(answer: impl Fn(&Kind) -> Result<Vec<u8>, Failed>) -> Vec<Outcome> {
        ASKED
            .iter()
            .map(|kind| Outcome::of(answer(kind), DOMAIN, kind))
            .collect()
    }

    #[test]
    fn a_lookup_without_an_answer_failed_in_the_worst_of_its_ways() {
        let of = |ways: &[Failed]| {
            failure(
                &ways
                    .iter()
                    .map(|way| Outcome::Failed(*way))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            of(&[Failed::Unreachable, Failed::Unreachable]),
            Some(Failed::Unreachable)
        );
        assert_eq!(of(&[Failed::Unreachable, Failed::Bad]), Some(Failed::Bad));
        assert_eq!(
            of(&[Failed::Bad, Failed::Late, Failed::Unreachable]),
            Some(Failed::Late)
        );
        let one = outcomes(|kind| match kind.code {
            6 => Ok(Sample::of(DOMAIN, 6).bytes()),
            _ => Err(Failed::Late),
        });
        assert_eq!(failure(&one), None);
    }

    #[test]
    fn sections_and_types_stand_in_their_order() {
        let outcomes = outcomes(|kind| {
            let sample = Sample::of(DOMAIN, kind.code)
                .additional(record("ns.example.com", 1, 9, &[192, 0, 2, 1]))
                .authority(record(DOMAIN, 46, 9, b"signed"))
                .authority(record(DOMAIN, 2, 9, b"\x02ns\0"));
            Ok(match kind.code {
                16 => sample.answer(record(DOMAIN, 16, 9, b"\x01t")),
                28 => sample.answer(record(DOMAIN, 28, 9, &[0; 16])),
                _ => sample,
            }
            .bytes())
        });
        let lookup = Lookup::of(
            DOMAIN,
            Provider::Google,
            &outcomes,
            Timestamp::from_unix_ms(0),
        );
        let order: Vec<(&str, Vec<&str>)> = lookup
            .sections
            .iter()
            .map(|section| {
                (
                    section.title,
                    section
                        .groups
                        .iter()
                        .map(|group| group.type_name.as_str())
                        .collect(),
                )
            })
            .collect();
        let expected = [
            ("Answer", vec!["AAAA", "TXT"]),
            ("Authority", vec!["NS", "TYPE46"]),
            ("Additional", vec!["A"]),
        ];
        assert_eq!(order, expected);
        assert_eq!(lookup.records.len(), 5);
    }

    #[test]
    fn no_answer_panics() {
        arbtest::arbtest(|u| {
            let kind = u.choose(&ASKED)?;
            let data: Vec<u8> = u.arbitrary()?;
            let owner = *u.choose(&[DOMAIN, "www.example.com", ""])?;
            let sample = Sample::of(DOMAIN, kind.code)
                .answer(record(owner, kind.code, 1, &data))
                .authority(data.clone());
            let mut bytes = sample.bytes();
            for _ in 0..u.int_in_range(0..=4)? {
                let place = u.choose_index(bytes.len())?;
                bytes[place] = u.arbitrary()?;
            }
            let outcomes = outcomes(|other| {
                if other.code == kind.code {
                    Ok(bytes.clone())
                } else {
                    Ok(data.clone())
                }
            });
            let lookup = Lookup::of(
                DOMAIN,
                Provider::Cloudflare,
                &outcomes,
                Timestamp::from_unix_ms(0),
            );
            assert!(serde_json::to_string(&lookup).is_ok());
            Ok(())
        });
    }
}
