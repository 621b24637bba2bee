//! The way to an answer: what is kept, then the registry by RDAP, then by port 43, then what is kept but old.
//!
//! The only module that reaches out. It never sees what the caller is; what it keeps is what may be told to anyone.

use serde::{Deserialize, Serialize};
use switchbay_sdk::cache::{self, Ages};
use switchbay_sdk::{Deadline, config, http, line_query};

use crate::registration::{Answer, Registration};
use crate::servers::{self, Services};
use crate::{Meta, rdap, text};

/// All of a lookup.
const BUDGET_MS: u32 = 10_000;
/// Each of its parts at most, in milliseconds.
const LIST_MS: u32 = 2_000;
const RDAP_MS: u32 = 6_000;
const LINE_MS: u32 = 4_000;
const REFERRAL_MS: u32 = 2_500;
/// With less than this left, nothing more is asked.
const LEFT_MIN_MS: u32 = 250;

/// Where IANA publishes which RDAP services there are.
const LIST_URL: &str = "https://data.iana.org/rdap/dns.json";
/// The setting that names another place; an empty one stays with the list that the plugin was built with.
const LIST_SETTING: &str = "bootstrap_url";

const LIST_BYTES: u32 = 1 << 20;
const RDAP_BYTES: u32 = 512 << 10;
const LINE_BYTES: u32 = 64 << 10;
const REDIRECTS: u32 = 3;
const LINE_PORT: u16 = 43;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
/// How long what is no longer fresh is kept, for when the registry fails.
const STALE_MS: u64 = 30 * DAY_MS;
const REGISTERED: Ages = Ages::fresh(DAY_MS).then_stale(STALE_MS);
const FREE: Ages = Ages::fresh(10 * MINUTE_MS).then_stale(STALE_MS);
const LIST: Ages = Ages::fresh(DAY_MS).then_stale(STALE_MS);
/// While the list is fetched, and after it could not be, another try waits this long.
const LIST_FAILED: Ages = Ages::fresh(10 * MINUTE_MS).then_stale(STALE_MS);
const LIST_KEY: &str = "rdap services";

/// When to ask a registry again that refused without saying when.
const THROTTLED_MS: u32 = 30_000;
/// The longest wait that a registry can ask for.
const THROTTLED_MAX_S: u32 = 3_600;

/// What is known of a domain, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) registered: bool,
    pub(crate) registration: Registration,
}

/// A record, and where it was.
pub(crate) struct Found {
    pub(crate) record: Record,
    pub(crate) meta: Meta,
}

/// Why nothing is known, the least telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    /// Nobody answers for the top-level domain.
    Unsupported,
    Unreachable,
    Unusable(&'static str),
    Throttled {
        retry_after_ms: u32,
    },
    Late,
}

/// Looks up a registrable domain.
pub(crate) async fn lookup(domain: &str, force_refresh: bool) -> Result<Found, Trouble> {
    let key = format!("domain {domain}");
    // Without a cache every lookup asks.
    let found = if force_refresh {
        cache::make_anew(&key, ask(domain), ages).await?
    } else {
        cache::get_or_make(&key, ask(domain), ages).await?
    };
    let meta = Meta {
        cached: found.age_ms.is_some(),
        stale: found.stale,
    };
    Ok(Found {
        record: found.value,
        meta,
    })
}

/// How long a record is kept.
fn ages(record: &Record) -> Ages {
    if record.registered { REGISTERED } else { FREE }
}

/// Milliseconds for the next part, at most so many.
fn part(deadline: Deadline, most: u32) -> Result<u32, Trouble> {
    deadline.part_ms(LEFT_MIN_MS..=most).ok_or(Trouble::Late)
}

async fn ask(domain: &str) -> Result<Record, Trouble> {
    let deadline = Deadline::in_ms(BUDGET_MS);
    let mut trouble = Trouble::Unsupported;
    if let Some(url) = services(deadline).await.url(domain) {
        match by_rdap(&url, domain, deadline).await {
            Ok(record) => return Ok(record),
            Err(met) => trouble = trouble.max(met),
        }
    }
    if let Some(server) = servers::whois(domain) {
        match by_line(server, domain, deadline).await {
            Ok(record) => return Ok(record),
            Err(met) => trouble = trouble.max(met),
        }
    }
    Err(trouble)
}

/// The RDAP services: those kept, or fetched anew once a day, or those that the plugin was built with.
async fn services(deadline: Deadline) -> Services {
    let kept = cache::get(LIST_KEY).unwrap_or(None);
    let (kept, is_fresh) = kept.map_or((None, false), |kept| {
        (Services::of_bytes(kept.value), !kept.stale)
    });
    let known = match kept {
        Some(services) if is_fresh => return services,
        kept => kept.unwrap_or_else(Services::snapshot),
    };
    // One lookup fetches the list, and those beside it go by what is known. Where it cannot be kept nobody does, or every
    // lookup would.
    if cache::put(LIST_KEY, known.bytes(), LIST_FAILED).is_err() {
        return known;
    }
    match list(deadline).await {
        Some(fetched) => {
            cache::put(LIST_KEY, fetched.bytes(), LIST).ok();
            fetched
        }
        None => known,
    }
}

async fn list(deadline: Deadline) -> Option<Services> {
    let url = config::get(LIST_SETTING).unwrap_or_else(|| LIST_URL.to_owned());
    if url.is_empty() {
        return None;
    }
    let request = http::get(url)
        .header("accept", "application/json")
        .redirects(REDIRECTS);
    let response = request
        .response_bytes(LIST_BYTES)
        .total_ms(part(deadline, LIST_MS).ok()?)
        .send()
        .await
        .ok()?;
    response
        .is_success()
        .then(|| Services::of_registry(&response.json().ok()?))?
}

async fn by_rdap(url: &str, domain: &str, deadline: Deadline) -> Result<Record, Trouble> {
    let (answer, retry_after_ms) = rdap(url, domain, part(deadline, RDAP_MS)?).await?;
    let (mut record, referral) = settled(answer, retry_after_ms)?;
    let missing = record.registered && record.registration.organization.is_none();
    // The registry's word stands, whatever becomes of the registrar's.
    if let (true, Some(referral), Ok(ms)) = (
        missing,
        referral.filter(|other| other != url),
        part(deadline, REFERRAL_MS),
    ) && let Ok((Answer::Registered { registration, .. }, _)) = rdap(&referral, domain, ms).await
    {
        complete(&mut record.registration, registration);
    }
    Ok(record)
}

async fn by_line(server: &str, domain: &str, deadline: Deadline) -> Result<Record, Trouble> {
    let answer = line(server, domain, part(deadline, LINE_MS)?).await?;
    let (mut record, referral) = settled(answer, THROTTLED_MS)?;
    let missing = record.registered && record.registration.organization.is_none();
    if let (true, Some(referral), Ok(ms)) = (
        missing,
        referral.filter(|host| host != server),
        part(deadline, REFERRAL_MS),
    ) && let Ok(Answer::Registered { registration, .. }) = line(&referral, domain, ms).await
    {
        complete(&mut record.registration, registration);
    }
    Ok(record)
}

/// An RDAP service's answer, and when to come back where it is that the service is asked too often.
async fn rdap(url: &str, domain: &str, ms: u32) -> Result<(Answer, u32), Trouble> {
    let request = http::get(url)
        .header("accept", "application/rdap+json, application/json;q=0.9")
        .redirects(REDIRECTS);
    let response = request
        .response_bytes(RDAP_BYTES)
        .total_ms(ms)
        .send()
        .await
        .map_err(of_http)?;
    let wait = response.retry_after_s().map_or(THROTTLED_MS, |seconds| {
        u32::try_from(seconds).map_or(THROTTLED_MAX_S, |s| s.clamp(1, THROTTLED_MAX_S)) * 1000
    });
    let media_type = response.header("content-type").unwrap_or_default();
    Ok((
        rdap::read(response.status(), media_type, response.bytes(), domain),
        wait,
    ))
}

async fn line(server: &str, domain: &str, ms: u32) -> Result<Answer, Trouble> {
    let question = servers::question(server, domain);
    let request = line_query::Request {
        response_bytes: Some(LINE_BYTES),
        total_ms: Some(ms),
        idle_ms: Some(ms),
        ..line_query::Request::new(server, LINE_PORT, question)
    };
    let answer = line_query::query(request).await.map_err(of_line)?;
    Ok(text::read(&answer, domain))
}

/// What an answer settles, and who may know more.
fn settled(answer: Answer, retry_after_ms: u32) -> Result<(Record, Option<String>), Trouble> {
    let record = |registered, registration| Record {
        registered,
        registration,
    };
    match answer {
        Answer::Registered {
            registration,
            referral,
        } => Ok((record(true, registration), referral)),
        Answer::Free => Ok((record(false, Registration::default()), None)),
        Answer::Reserved => {
            let mut registration = Registration::default();
            registration.add_status("reserved");
            Ok((record(false, registration), None))
        }
        Answer::Throttled => Err(Trouble::Throttled { retry_after_ms }),
        Answer::Unusable(why) => Err(Trouble::Unusable(why)),
    }
}

/// Takes from the registrar what the registry does not tell.
fn complete(registration: &mut Registration, other: Registration) {
    let fill = |place: &mut Option<String>, other: Option<String>| {
        if place.is_none() {
            *place = other;
        }
    };
    fill(&mut registration.organization, other.organization);
    fill(&mut registration.registrar, other.registrar);
    fill(&mut registration.creation_date, other.creation_date);
    fill(&mut registration.expiration_date, other.expiration_date);
}

/// What the errors of both protocols have in common.
const FORBIDDEN: Trouble = Trouble::Unusable("it leads to a destination that may not be queried");
const TOO_LARGE: Trouble = Trouble::Unusable("its answer is too large");
const BROKEN: Trouble = Trouble::Unusable("its answer is incomplete or malformed");

fn of_http(error: http::Error) -> Trouble {
    use http::Error;
    match error {
        Error::FirstByteLate | Error::Idle | Error::TotalLate => Trouble::Late,
        Error::Busy | Error::Unresolved | Error::Unreachable => Trouble::Unreachable,
        Error::Denied(_) | Error::RedirectDenied(_) | Error::InvalidRequest(_) => FORBIDDEN,
        Error::HeadersTooLarge | Error::BodyTooLarge => TOO_LARGE,
        Error::TooManyRedirects => Trouble::Unusable("it redirects too many times"),
        Error::BadResponse(_) => BROKEN,
    }
}

fn of_line(error: line_query::Error) -> Trouble {
    use line_query::Error;
    match error {
        Error::Late => Trouble::Late,
        Error::Busy | Error::Unresolved | Error::Unreachable => Trouble::Unreachable,
        Error::Denied(_) | Error::InvalidRequest(_) => FORBIDDEN,
        Error::TooLarge => TOO_LARGE,
        Error::Broken(_) => BROKEN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ages: cache::Ages, fresh_ms: u64) {
        assert_eq!(
            (ages.fresh_ms, ages.stale_ms),
            (fresh_ms, 30 * 24 * 3_600_000)
        );
    }

    #[test]
    fn a_registration_is_fresh_for_a_day_and_its_absence_for_10_minutes() {
        let kept = |answer| ages(&settled(answer, 0).expect("it is settled").0);
        check(
            kept(Answer::Registered {
                registration: Registration::default(),
                referral: None,
            }),
            24 * 3_600_000,
        );
        check(kept(Answer::Free), 600_000);
        check(kept(Answer::Reserved), 600_000);
    }

    #[test]
    fn the_list_is_fetched_once_a_day_and_tried_again_after_10_minutes() {
        check(LIST, 24 * 3_600_000);
        check(LIST_FAILED, 600_000);
    }
}
