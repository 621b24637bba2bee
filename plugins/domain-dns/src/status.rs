//! What became of the queries: of each, and of the whole lookup.

use serde::Serialize;
use switchbay_sdk::schemars::{self, JsonSchema};

use crate::query::Outcome;

const NOERROR: u16 = 0;
const SERVFAIL: u16 = 2;
const NXDOMAIN: u16 = 3;
const REFUSED: u16 = 5;

/// Response codes that have a name here; the others are called by their number.
const NAMES: [&str; 6] = [
    "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED",
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Status {
    /// The DNS response code; 2 if there was no answer.
    code: u16,
    /// The code's name, such as `NOERROR`, `NXDOMAIN`, `SERVFAIL` or `REFUSED`, or `RCODE` and the number if it has none.
    name: String,
    /// A localization key: `dns.status.` and the name in lower case, or `dns.status.unreachable` if there was no answer.
    message: String,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusSummary {
    /// `NOERROR` if any query returned it, otherwise `NXDOMAIN` if any did, otherwise the most frequent status.
    status: String,
    /// A localization key: `dns.summary.` followed by `ok`, `no_records`, `nxdomain`, `partial`, `servfail` or `refused`.
    message: &'static str,
    /// False if the resolver reports that the name does not exist, otherwise true.
    domain_exists: bool,
}

impl Status {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let code = code(outcome);
        let name = name(code);
        let message = match outcome {
            Outcome::Answered(_) => format!("dns.status.{}", name.to_ascii_lowercase()),
            Outcome::Failed(_) => "dns.status.unreachable".to_owned(),
        };
        Self {
            code,
            name,
            message,
        }
    }
}

/// The summary of a lookup of a name, in lower case and without trailing dot, that at least one query was answered of.
pub(crate) fn summary(domain: &str, outcomes: &[Outcome]) -> StatusSummary {
    let codes: Vec<u16> = outcomes.iter().map(code).collect();
    let overall = overall(&codes);
    let answers = || outcomes.iter().filter_map(Outcome::answer);
    let owned = answers().any(|answer| answer.owns(domain));
    let message = match overall {
        NOERROR
            if codes
                .iter()
                .any(|code| *code != NOERROR && *code != NXDOMAIN) =>
        {
            "dns.summary.partial"
        }
        NOERROR if answers().all(|answer| answer.counts.answer == 0) => "dns.summary.no_records",
        NOERROR => "dns.summary.ok",
        NXDOMAIN => "dns.summary.nxdomain",
        REFUSED => "dns.summary.refused",
        _ => "dns.summary.servfail",
    };
    StatusSummary {
        status: name(overall),
        message,
        domain_exists: overall != NXDOMAIN || owned,
    }
}

fn code(outcome: &Outcome) -> u16 {
    match outcome {
        Outcome::Answered(answer) => answer.response_code,
        Outcome::Failed(_) => SERVFAIL,
    }
}

/// Of codes that are as frequent as each other, the lowest.
fn overall(codes: &[u16]) -> u16 {
    if let Some(first) = [NOERROR, NXDOMAIN]
        .into_iter()
        .find(|code| codes.contains(code))
    {
        return first;
    }
    let frequency = |code: &u16| codes.iter().filter(|other| *other == code).count();
    let most = codes
        .iter()
        .max_by_key(|code| (frequency(code), std::cmp::Reverse(**code)));
    most.copied().unwrap_or(SERVFAIL)
}

fn name(code: u16) -> String {
    NAMES
        .get(usize::from(code))
        .map_or_else(|| format!("RCODE{code}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::ASKED;
    use crate::query::Failed;
    use crate::sample::{Sample, record};

    /// The outcome of the query for A of example.com that has this status, and an answer record of this name if any.
    fn answered(code: u16, owner: Option<&str>) -> Outcome {
        let mut sample = Sample::of("example.com", 1).head(0x8180 | code);
        if let Some(owner) = owner {
            sample = sample.answer(record(owner, 5, 60, b"\x01b\0"));
        }
        Outcome::of(Ok(sample.bytes()), "example.com", &ASKED[0])
    }

    fn failed() -> Outcome {
        Outcome::Failed(Failed::Late)
    }

    #[track_caller]
    fn check(outcomes: &[Outcome], status: &str, message: &str, domain_exists: bool) {
        let told = summary("example.com", outcomes);
        let told = (told.status.as_str(), told.message, told.domain_exists);
        assert_eq!(
            told,
            (
                status,
                format!("dns.summary.{message}").as_str(),
                domain_exists
            )
        );
    }

    #[test]
    fn the_summary_tells_the_best_that_is_known() {
        let ours = Some("Example.com");
        check(
            &[answered(0, ours), answered(0, None)],
            "NOERROR",
            "ok",
            true,
        );
        check(
            &[answered(0, None), answered(0, None)],
            "NOERROR",
            "no_records",
            true,
        );
        check(
            &[answered(3, None), answered(3, None)],
            "NXDOMAIN",
            "nxdomain",
            false,
        );
        check(
            &[answered(3, Some("other.com")), answered(3, None)],
            "NXDOMAIN",
            "nxdomain",
            false,
        );
        check(
            &[answered(3, ours), answered(3, None)],
            "NXDOMAIN",
            "nxdomain",
            true,
        );
        check(
            &[answered(3, ours), answered(0, ours)],
            "NOERROR",
            "ok",
            true,
        );
        check(
            &[answered(0, ours), answered(2, None)],
            "NOERROR",
            "partial",
            true,
        );
        check(&[answered(0, None), failed()], "NOERROR", "partial", true);
        check(
            &[answered(3, None), failed()],
            "NXDOMAIN",
            "nxdomain",
            false,
        );
        check(
            &[answered(5, None), answered(5, None), answered(2, None)],
            "REFUSED",
            "refused",
            true,
        );
        check(
            &[answered(5, None), failed(), failed()],
            "SERVFAIL",
            "servfail",
            true,
        );
        check(
            &[answered(5, None), answered(2, None)],
            "SERVFAIL",
            "servfail",
            true,
        );
        check(&[answered(11, None)], "RCODE11", "servfail", true);
    }

    #[test]
    fn a_status_has_a_name_and_a_key() {
        let told = |outcome: Outcome| {
            let Status {
                code,
                name,
                message,
            } = Status::of(&outcome);
            (code, name, message)
        };
        let check = |outcome: Outcome, code: u16, name: &str, key: &str| {
            assert_eq!(
                told(outcome),
                (code, name.to_owned(), format!("dns.status.{key}"))
            );
        };
        check(answered(0, None), 0, "NOERROR", "noerror");
        check(answered(1, None), 1, "FORMERR", "formerr");
        check(answered(2, None), 2, "SERVFAIL", "servfail");
        check(answered(3, None), 3, "NXDOMAIN", "nxdomain");
        check(answered(4, None), 4, "NOTIMP", "notimp");
        check(answered(5, None), 5, "REFUSED", "refused");
        check(answered(9, None), 9, "RCODE9", "rcode9");
        check(failed(), 2, "SERVFAIL", "unreachable");
    }
}
