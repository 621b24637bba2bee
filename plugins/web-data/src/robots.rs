//! What a site's robots.txt says to us (RFC 9309).
//!
//! It must know nothing of what is asked for and why. `wildcard` matches the patterns that have a `*` or a `$`, `fetch` asks
//! a site for its file.
//!
//! Our own and no library's: those that are kept read the rules by regular expressions, which is a megabyte of component, and
//! the others are years old. A test holds it against one of them.

mod fetch;
#[cfg(test)]
mod second_opinion;
#[cfg(test)]
mod tests;
mod wildcard;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use url::{Position, Url};

use crate::octets::{OneForm, one_form};
use wildcard::Wildcard;

pub(crate) use fetch::{Unreachable, fetch};

/// Our name in a robots.txt: the product of the user agent that the host sends.
const PRODUCT: &str = "switchbay";
/// Bytes that are read of a file; RFC 9309 (2.5) wants as many at least.
const BYTES_MAX: usize = 500 * 1024;
/// Patterns with a `*` or a `$` that a group may have. They are tried one by one, the others are not.
const WILDCARDS_MAX: usize = 1000;
/// Octets of all of these: each path is held against them, and a page may link to thousands.
const WILDCARD_OCTETS_MAX: usize = 32 * 1024;
/// Sitemaps that a file may name, and bytes of the address of each.
const SITEMAPS_MAX: usize = 100;
const SITEMAP_BYTES_MAX: usize = 2048;
/// The most that a crawl delay means.
const DELAY_SECONDS_MAX: f64 = 86_400.0;

/// What a site asks of us. The default asks nothing.
#[derive(Debug, Default)]
pub(crate) struct Robots {
    group: RobotRules,
    sitemaps: Vec<String>,
}

/// The rules of all groups that name the same robot.
#[derive(Debug, Default)]
struct RobotRules {
    /// A group names this robot, if only to say nothing of it.
    is_named: bool,
    /// Patterns that are the begin of a path, and whether it is allowed.
    prefixes: BTreeMap<Vec<u8>, bool>,
    /// The others, the most specific first, and of two alike the one that allows.
    wildcards: Vec<(Wildcard, bool)>,
    wildcard_octets: usize,
    delay: Option<Duration>,
}

impl Robots {
    /// Reads a file. What is no rule is passed over.
    pub(crate) fn read(file: &[u8]) -> Self {
        let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
        let mut reader = RobotsReader::default();
        for line in whole_lines(file).split(|byte| matches!(byte, b'\n' | b'\r')) {
            reader.line(line);
        }
        let mut group = if reader.ours.is_named {
            reader.ours
        } else {
            reader.everyones
        };
        group.wildcards.sort_by_key(|(wildcard, is_allowed)| {
            std::cmp::Reverse((wildcard.octets(), *is_allowed))
        });
        Self {
            group,
            sitemaps: reader.sitemaps,
        }
    }

    /// Whether the page may be asked for. The most specific rule that matches says, and where two are as specific, the one
    /// that allows.
    pub(crate) fn allows(&self, page: &Url) -> bool {
        let path = one_form(page[Position::BeforePath..Position::AfterQuery].as_bytes());
        if path == b"/robots.txt" {
            return true;
        }
        let (octets, is_allowed) = self.group.longest_prefix(&path).unwrap_or((0, true));
        let is_better = |(wildcard, allows): &&(Wildcard, bool)| {
            wildcard.octets() > octets || (wildcard.octets() == octets && *allows && !is_allowed)
        };
        let mut better = self.group.wildcards.iter().take_while(is_better);
        better
            .find(|(wildcard, _)| wildcard.matches(&path))
            .map_or(is_allowed, |(_, is_allowed)| *is_allowed)
    }

    /// How long to wait between two requests.
    pub(crate) fn crawl_delay(&self) -> Option<Duration> {
        self.group.delay
    }

    /// Where it says that sitemaps are, as they were written.
    pub(crate) fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }
}

impl RobotRules {
    fn add(&mut self, pattern: &[u8], is_allowed: bool) {
        let (pattern, is_anchored) = pattern
            .strip_suffix(b"$")
            .map_or((pattern, false), |pattern| (pattern, true));
        let mut form = OneForm::default();
        for (at, part) in pattern.split(|octet| *octet == b'*').enumerate() {
            if at > 0 {
                form.add_mark(b'*');
            }
            form.add(part);
        }
        let text = form.into_octets();
        if is_anchored || text.contains(&b'*') {
            if self.wildcards.len() < WILDCARDS_MAX
                && self.wildcard_octets + text.len() <= WILDCARD_OCTETS_MAX
            {
                self.wildcard_octets += text.len();
                self.wildcards
                    .push((Wildcard { text, is_anchored }, is_allowed));
            }
        } else if !text.is_empty() {
            *self.prefixes.entry(text).or_default() |= is_allowed;
        }
    }

    /// The longest pattern that the path begins with: its octets, and whether it allows.
    fn longest_prefix(&self, path: &[u8]) -> Option<(usize, bool)> {
        let mut path = path;
        loop {
            // Of all patterns up to the path, its longest prefix is the last: what stands behind a prefix of a text and is
            // none of its own is behind the text, or branches off before the prefix ends.
            let up_to = (Bound::Unbounded, Bound::Included(path));
            let (pattern, is_allowed) = self.prefixes.range::<[u8], _>(up_to).next_back()?;
            if path.starts_with(pattern) {
                return Some((pattern.len(), *is_allowed));
            }
            let shared = path
                .iter()
                .zip(pattern)
                .take_while(|(one, other)| one == other)
                .count();
            path = &path[..shared];
        }
    }
}

/// The lines of a file that stand wholly within its limit.
fn whole_lines(file: &[u8]) -> &[u8] {
    match file.get(..BYTES_MAX) {
        None => file,
        Some(head) => &head[..memchr::memrchr2(b'\n', b'\r', head).unwrap_or(0)],
    }
}

#[derive(Default)]
struct RobotsReader {
    ours: RobotRules,
    everyones: RobotRules,
    sitemaps: Vec<String>,
    /// The group that is being read is ours, and is everyone's.
    is_ours: bool,
    is_everyones: bool,
    /// It has a rule, so that the next name begins another group. Nothing but a rule ends the names of a group.
    has_rule: bool,
}

impl RobotsReader {
    fn line(&mut self, line: &[u8]) {
        let line = memchr::memchr(b'#', line)
            .map_or(line, |comment| &line[..comment])
            .trim_ascii();
        let Some((name, value)) = name_and_value(line) else {
            return;
        };
        // `user-agent`, `user agent` and `useragent` are one name, and so are the others' forms.
        let name: Vec<u8> = name
            .iter()
            .filter(|octet| !b"- _".contains(octet))
            .map(u8::to_ascii_lowercase)
            .collect();
        match &*name {
            b"useragent" => self.name(value),
            b"allow" => self.rule(value, true),
            // As Google's parser has them: who meant to forbid shall not be misread for a letter.
            b"disallow" | b"dissallow" | b"dissalow" | b"disalow" | b"diasllow" | b"disallaw" => {
                self.rule(value, false);
            }
            b"crawldelay" => self.delay(value),
            b"sitemap" => self.sitemap(value),
            _ => {}
        }
    }

    fn name(&mut self, value: &[u8]) {
        if std::mem::take(&mut self.has_rule) {
            (self.is_ours, self.is_everyones) = (false, false);
        }
        let product = value
            .iter()
            .position(|octet| !octet.is_ascii_alphabetic() && !b"-_".contains(octet));
        let product = &value[..product.unwrap_or(value.len())];
        match value {
            [b'*'] | [b'*', b' ' | b'\t', ..] => {
                self.is_everyones = true;
                self.everyones.is_named = true;
            }
            _ if product.eq_ignore_ascii_case(PRODUCT.as_bytes()) => {
                self.is_ours = true;
                self.ours.is_named = true;
            }
            _ => {}
        }
    }

    fn rule(&mut self, pattern: &[u8], is_allowed: bool) {
        self.has_rule = true;
        for group in self.groups() {
            group.add(pattern, is_allowed);
        }
    }

    fn delay(&mut self, value: &[u8]) {
        let seconds = std::str::from_utf8(value)
            .ok()
            .and_then(|value| value.parse::<f64>().ok());
        let Some(seconds) = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0) else {
            return;
        };
        for group in self.groups() {
            group
                .delay
                .get_or_insert(Duration::from_secs_f64(seconds.min(DELAY_SECONDS_MAX)));
        }
    }

    fn sitemap(&mut self, value: &[u8]) {
        let Ok(value) = std::str::from_utf8(value) else {
            return;
        };
        let is_new = !self.sitemaps.iter().any(|known| known == value);
        if is_new
            && !value.is_empty()
            && value.len() <= SITEMAP_BYTES_MAX
            && self.sitemaps.len() < SITEMAPS_MAX
        {
            self.sitemaps.push(value.to_owned());
        }
    }

    /// The groups that the line is of.
    fn groups(&mut self) -> impl Iterator<Item = &mut RobotRules> {
        let ours = self.is_ours.then_some(&mut self.ours);
        ours.into_iter()
            .chain(self.is_everyones.then_some(&mut self.everyones))
    }
}

/// The two sides of a line. Who forgets the colon is understood where there are two words alone.
fn name_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(colon) = memchr::memchr(b':', line) {
        return Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()));
    }
    let space = line.iter().position(u8::is_ascii_whitespace)?;
    let (name, value) = (&line[..space], line[space..].trim_ascii());
    (!value.iter().any(u8::is_ascii_whitespace)).then_some((name, value))
}
