//! What an answer without a registration says: nobody has the name, nobody may have it, or the server answers no more.
//!
//! Taking a refusal for "not registered" would be the worst mistake here. A plain statement about the name counts first, where no
//! refusal stands before it: terms of use, which tell of limits and blacklists, stand below it or are prose. Without one,
//! whatever speaks of a refusal is one, and what says neither is unusable.

use super::lines::is_comment;
use crate::registration::Answer;
use crate::words::phrases;

/// Characters of a line that can be a verdict; longer ones are terms of use.
const LINE_MAX: usize = 200;
/// Lines of an answer that are read.
const LINES_MAX: usize = 500;
/// Words of a statement before what it states.
const WORDS_BEFORE_MAX: usize = 3;
/// Words of a line that can be a statement without naming the domain.
const WORDS_MAX: usize = 12;
/// Words of a line that may be one of several of a sentence.
const PROSE_WORDS_MIN: usize = 6;

const REFUSED: &str = "\
    exceeded, quota, interval is too short, too many, too fast, maximum queries, maximum number of, \
    queries per, rate limit, ratelimit, rate-limit, query limit, limit reached, slow down, \
    access control limit, excessive, blacklist, blocked due, has been blocked, temporarily blocked, \
    throttl, try again later, please wait, not permitted, access denied, permission denied, \
    connection refused, temporarily unavailable, server is busy, server too busy, maintenance";

/// Of those, what tells of this question, and not of the rules for all.
const REFUSED_NOW: &str = "\
    limit exceeded, quota exceeded, queries exceeded, has exceeded, have exceeded, \
    interval is too short, too many, too fast, limit reached, slow down, are blacklisted, \
    on a blacklist, been blacklisted, has been blocked, have been blocked, temporarily blocked, \
    try again later, please wait, access denied, permission denied, connection refused, \
    temporarily unavailable, server is busy, server too busy";

const RESERVED: &str = "\
    cannot be registered, can not be registered, can't be registered, not available for registration, \
    is reserved, reserved name, reserved by, reserved domain, name is blocked, is prohibited, \
    is restricted, not be registered because, may not be registered";

const FREE: &str = "\
    no match, not found, no entries found, no data found, no data was found, no se encuentra registrado, \
    não encontrado, no object found, no objects found, nothing found, no found, not registered, \
    not been registered, no matching record, no records matching, no record found, no such domain, \
    does not exist, doesn't exist, not exist in, no information available about domain, \
    not have an entry, no entry found, is free, is available for, available for registration, \
    available for purchase, domain unknown, unknown domain, no information was found, 등록되어 있지 않";

/// What terms of use say of much else, so that it is a statement about the name only beside the name.
const ONLY_NAMED: &str = "\
    is free, is available for, available for registration, available for purchase, is reserved, \
    is prohibited, is restricted";

/// Reads an answer that holds no registration of `domain`.
pub(super) fn read(text: &str, domain: &str) -> Answer {
    let lines = || {
        text.lines()
            .take(LINES_MAX)
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    if lines().next().is_none() {
        return Answer::Unusable("its answer is empty");
    }
    let names = [domain.to_owned(), idna::domain_to_unicode(domain).0];
    if let Some(stated) = stated(&statements(text, &names)) {
        return stated;
    }
    let said: Vec<String> = lines().filter_map(|line| verdict(line, &names)).collect();
    let any = |list: &str| said.iter().any(|line| says(line, list));
    match (any(REFUSED), any(RESERVED), any(FREE)) {
        (true, ..) => Answer::Throttled,
        (false, true, _) => Answer::Reserved,
        (false, false, true) => Answer::Free,
        (false, false, false) => Answer::Unusable("its answer says nothing about the domain"),
    }
}

fn says(line: &str, list: &str) -> bool {
    phrases(list).any(|phrase| line.contains(phrase))
}

/// A line that is no part of a longer sentence, unless it names the domain.
struct Statement {
    /// In lower case and without the domain.
    text: String,
    is_named: bool,
}

fn statements(text: &str, names: &[String]) -> Vec<Statement> {
    let lines: Vec<(String, bool)> = text
        .lines()
        .take(LINES_MAX)
        .map(|line| bare(line, names))
        .collect();
    let words = |line: &str| line.split_whitespace().count();
    // A banner such as `>>> Last update … <<<` ends a paragraph as a blank line does.
    let ends = |line: &str| {
        line.is_empty() || line.ends_with(['.', ':', '!', '?', '<', ')', '-', '=', '*'])
    };
    let runs_on = |at: usize| {
        let prose = |line: &str| !ends(line) && words(line) >= PROSE_WORDS_MIN;
        let before = at
            .checked_sub(1)
            .is_some_and(|before| prose(&lines[before].0));
        let (line, next) = (&lines[at].0, lines.get(at + 1).map_or("", |next| &next.0));
        before || prose(line) && !next.is_empty() && !next.ends_with('<')
    };
    let alone = |at: usize| lines[at].1 || words(&lines[at].0) <= WORDS_MAX && !runs_on(at);
    let kept = (0..lines.len()).filter(|&at| lines[at].0.chars().count() <= LINE_MAX && alone(at));
    kept.map(|at| Statement {
        text: lines[at].0.clone(),
        is_named: lines[at].1,
    })
    .collect()
}

/// What the first statement about the name says, where no refusal stands before it or in it.
fn stated(statements: &[Statement]) -> Option<Answer> {
    let about = |statement: &Statement, list: &str| {
        let text = &statement.text;
        let begins = |at: usize| text[..at].split_whitespace().count() <= WORDS_BEFORE_MAX;
        let says = |phrase: &str| match text.find(phrase) {
            Some(at) if begins(at) => {
                statement.is_named || phrases(ONLY_NAMED).all(|only| only != phrase)
            }
            found => statement.is_named && found.is_some(),
        };
        !self::says(text, REFUSED) && phrases(list).any(says)
    };
    for statement in statements {
        if says(&statement.text, REFUSED_NOW) {
            return Some(Answer::Throttled);
        }
        if about(statement, RESERVED) {
            return Some(Answer::Reserved);
        }
        if about(statement, FREE) {
            return Some(Answer::Free);
        }
    }
    None
}

/// A line in lower case, without the marks of a remark and without the domain, whose own words judge nothing; and whether it
/// named that.
fn bare(line: &str, names: &[String]) -> (String, bool) {
    let lower = line.trim().to_lowercase();
    let is_named = names.iter().any(|name| lower.contains(name));
    let line = names
        .iter()
        .fold(lower, |line, name| line.replace(name, ""));
    (
        line.trim_start_matches(['%', '#', '*', ';', '>', '-', ' '])
            .replace('_', " "),
        is_named,
    )
}

/// The line in lower case and without the domain, whose own words judge nothing, where it can be a verdict. A remark is one
/// only where it names the domain or an error, or is nothing but the verdict; the other remarks are terms of use.
fn verdict(text: &str, names: &[String]) -> Option<String> {
    let (bare, is_named) = bare(text, names);
    if bare.is_empty() || bare.chars().count() > LINE_MAX || bare.contains("rights reserved") {
        return None;
    }
    let short = bare.split(' ').count() <= WORDS_MAX;
    let about = is_named || bare.starts_with("error") || short && starts(&bare);
    (!is_comment(text) || about).then_some(bare)
}

fn starts(line: &str) -> bool {
    let begins = |phrase: &str| {
        line.find(phrase)
            .is_some_and(|at| line[..at].split(' ').count() <= 3)
    };
    [REFUSED, RESERVED, FREE]
        .into_iter()
        .flat_map(phrases)
        .any(begins)
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
        check(
            "% No match for \"QUOTA-EXCEEDED.COM\".",
            "quota-exceeded.com",
            Answer::Free,
        );
        check(
            "This name cannot be registered: throttle.xx",
            "throttle.xx",
            Answer::Reserved,
        );
        check(
            "blacklist.xx",
            "blacklist.xx",
            Answer::Unusable("its answer says nothing about the domain"),
        );
        let international = idna::domain_to_ascii("quota-größe.xx").expect("a name");
        check("Not found: Quota-Größe.xx", &international, Answer::Free);
        check(
            &format!("Not found: {international}"),
            &international,
            Answer::Free,
        );
        check(
            "quota-exceeded.com: quota exceeded",
            "quota-exceeded.com",
            Answer::Throttled,
        );
        check(
            "No match for quota.xx: you are on a blacklist",
            "quota.xx",
            Answer::Throttled,
        );
    }
    #[test]
    fn terms_of_use_refuse_nothing_and_free_nothing() {
        let free = "No match for example.xx\n\nQueries are rate limited. Whoever exceeds the quota is blacklisted.";
        check(free, "example.xx", Answer::Free);
        check(
            "NOT FOUND\n\nAccess denied to whoever sends too many queries.",
            "example.xx",
            Answer::Free,
        );
        check(
            "Queries are rate limited.\n\nExample.xx is reserved.\n",
            "example.xx",
            Answer::Reserved,
        );
        let refused = "% Queries are rate limited.\n\n%% Your address is blacklisted, no object is not found for it.";
        check(refused, "example.xx", Answer::Throttled);
        // A refusal of its own stands before what it leaves to be said.
        check(
            "Number of allowed queries exceeded.\n\nNo match for example.xx",
            "example.xx",
            Answer::Throttled,
        );
        let prose = "The registry tells who holds a name, and where that name is\nnot found in the database it may be taken\n\
                     by whoever comes first. More queries are not permitted.";
        check(prose, "example.xx", Answer::Throttled);
        let prose = "This information is available for personal use only.\nIt is not permitted to use it otherwise.";
        check(prose, "example.xx", Answer::Throttled);
    }
}
