//! What an answer without a registration says: nobody has the name, nobody may have it, or the server answers no more.
//!
//! Taking a refusal for "not registered" would be the worst mistake here, so refusals are looked for first, and what
//! says neither is unusable.

use super::lines::is_comment;
use crate::registration::Answer;

/// Characters of a line that can be a verdict; longer ones are terms of use.
const LINE_MAX: usize = 200;

const REFUSED: &[&str] = &[
    "exceeded",
    "quota",
    "interval is too short",
    "too many",
    "too fast",
    "maximum queries",
    "maximum number of",
    "queries per",
    "rate limit",
    "ratelimit",
    "rate-limit",
    "query limit",
    "limit reached",
    "slow down",
    "access control limit",
    "excessive",
    "blacklist",
    "blocked due",
    "has been blocked",
    "temporarily blocked",
    "throttl",
    "try again later",
    "please wait",
    "not permitted",
    "access denied",
    "permission denied",
    "connection refused",
    "temporarily unavailable",
    "server is busy",
    "server too busy",
    "maintenance",
];

const RESERVED: &[&str] = &[
    "cannot be registered",
    "can not be registered",
    "can't be registered",
    "not available for registration",
    "is reserved",
    "reserved name",
    "reserved by",
    "reserved domain",
    "name is blocked",
    "is prohibited",
    "is restricted",
    "not be registered because",
    "may not be registered",
];

const FREE: &[&str] = &[
    "no match",
    "not found",
    "no entries found",
    "no data found",
    "no data was found",
    "no se encuentra registrado",
    "não encontrado",
    "no object found",
    "no objects found",
    "nothing found",
    "no found",
    "not registered",
    "not been registered",
    "no matching record",
    "no records matching",
    "no record found",
    "no such domain",
    "does not exist",
    "doesn't exist",
    "not exist in",
    "no information available about domain",
    "not have an entry",
    "no entry found",
    "is free",
    "is available for",
    "available for registration",
    "available for purchase",
    "domain unknown",
    "unknown domain",
    "no information was found",
    "등록되어 있지 않",
];

/// Reads an answer that holds no registration of `domain`.
pub(super) fn read(text: &str, domain: &str) -> Answer {
    let lines = || text.lines().take(500).map(str::trim).filter(|line| !line.is_empty());
    if lines().next().is_none() {
        return Answer::Unusable("its answer is empty");
    }
    let names = [domain.to_owned(), idna::domain_to_unicode(domain).0];
    let said: Vec<String> = lines().filter_map(|line| verdict(line, &names)).collect();
    let says = |phrases: &[&str]| said.iter().any(|line| phrases.iter().any(|phrase| line.contains(phrase)));
    if says(REFUSED) {
        return Answer::Throttled;
    }
    if says(RESERVED) {
        return Answer::Reserved;
    }
    match says(FREE) {
        true => Answer::Free,
        false => Answer::Unusable("its answer says nothing of the domain"),
    }
}

/// The line in lower case and without the domain, whose own words judge nothing, where it can be a verdict. A remark is one
/// only where it names the domain or an error, or is nothing but the verdict; the other remarks are terms of use.
fn verdict(text: &str, names: &[String]) -> Option<String> {
    let lower = text.to_lowercase();
    let is_named = names.iter().any(|name| lower.contains(name));
    let line = names.iter().fold(lower, |line, name| line.replace(name, ""));
    let bare = line.trim_start_matches(['%', '#', '*', ';', '>', '-', ' ']).replace('_', " ");
    if bare.is_empty() || bare.chars().count() > LINE_MAX || bare.contains("rights reserved") {
        return None;
    }
    let short = bare.split(' ').count() <= 10;
    let about = is_named || bare.starts_with("error") || short && starts(&bare);
    (!is_comment(text) || about).then_some(bare)
}

fn starts(line: &str) -> bool {
    [REFUSED, RESERVED, FREE].iter().any(|phrases| {
        phrases.iter().any(|phrase| line.find(phrase).is_some_and(|at| line[..at].split(' ').count() <= 3))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, domain: &str, expected: Answer) {
        assert_eq!(read(text, domain), expected, "{text:?}");
    }

    #[test]
    fn the_domain_itself_is_no_verdict() {
        check("No match for blacklist.xx", "blacklist.xx", Answer::Free);
        check("% No match for \"QUOTA-EXCEEDED.COM\".", "quota-exceeded.com", Answer::Free);
        check("This name cannot be registered: throttle.xx", "throttle.xx", Answer::Reserved);
        check("blacklist.xx", "blacklist.xx", Answer::Unusable("its answer says nothing of the domain"));
        let international = idna::domain_to_ascii("quota-größe.xx").expect("a name");
        check("Not found: Quota-Größe.xx", &international, Answer::Free);
        check(&format!("Not found: {international}"), &international, Answer::Free);
        check("quota-exceeded.com: quota exceeded", "quota-exceeded.com", Answer::Throttled);
        check("No match for quota.xx: you are on a blacklist", "quota.xx", Answer::Throttled);
    }
}
