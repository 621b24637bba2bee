//! Public suffixes of the ICANN section: below which of its names a domain is registered.
//!
//! Suffixes that companies keep (`github.io`, `uk.com`) do not count: a registry knows only what they stand below. The
//! table is searched as it stands, because an instance that parsed it would pay for a thousand lookups.

const TABLE: &str = include_str!("../tables/suffixes.txt");

/// How many of a domain's last labels are its public suffix. `domain` is in A-labels and lower case, without a dot at
/// its end. By the list's default rule it is one where the table says nothing, so unlisted top-level domains have one
/// too.
pub(crate) fn labels(domain: &str) -> usize {
    let Some((below, top)) = domain.rsplit_once('.') else {
        return 1;
    };
    let mut longest = 1;
    for rule in rules(top) {
        let (exception, rule) = rule
            .strip_prefix('!')
            .map_or((false, rule), |rest| (true, rest));
        let count = rule.split('.').count();
        match (matches(rule, below), exception) {
            // An exception names what may be registered itself: its suffix is what it stands below.
            (true, true) => return count,
            (true, false) => longest = longest.max(count + 1),
            (false, _) => {}
        }
    }
    longest
}

fn rules(top: &str) -> impl Iterator<Item = &'static str> {
    let row = TABLE
        .lines()
        .find_map(|line| line.strip_prefix(top)?.strip_prefix(' '));
    row.unwrap_or_default()
        .split(' ')
        .filter(|rule| !rule.is_empty())
}

/// Whether the labels of a rule are the last ones of `below`.
fn matches(rule: &str, below: &str) -> bool {
    let mut labels = below.rsplit('.');
    rule.rsplit('.').all(|wanted| {
        labels
            .next()
            .is_some_and(|label| wanted == "*" || wanted == label)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The registrable domain, or nothing where the name is a suffix itself.
    fn registrable(name: &str) -> Option<String> {
        let name = idna::domain_to_ascii(name).ok()?;
        let all: Vec<&str> = name.split('.').collect();
        let first = all.len().checked_sub(labels(&name) + 1)?;
        Some(all[first..].join("."))
    }

    /// The list's own vectors (public domain), a row for each answer: the answer, and the names that have it. What the
    /// list calls null input and leading dots never comes here. `uk.com` is of the private section, and so registrable.
    const VECTORS: &[(&str, &str)] = &[
        (
            "",
            "COM example biz com mm c.mm jp ac.jp kyoto.jp ide.kyoto.jp c.kobe.jp ck test.ck us ak.us k12.ak.us",
        ),
        ("", "公司.cn 中国 xn--55qx5d.cn xn--fiqs8s"),
        (
            "example.com",
            "example.COM WwW.example.COM example.com b.example.com a.b.example.com",
        ),
        (
            "example.example",
            "example.example b.example.example a.b.example.example",
        ),
        ("domain.biz", "domain.biz b.domain.biz a.b.domain.biz"),
        (
            "uk.com",
            "uk.com example.uk.com b.example.uk.com a.b.example.uk.com",
        ),
        ("test.ac", "test.ac"),
        ("b.c.mm", "b.c.mm a.b.c.mm"),
        ("test.jp", "test.jp www.test.jp"),
        ("test.ac.jp", "test.ac.jp www.test.ac.jp"),
        ("test.kyoto.jp", "test.kyoto.jp"),
        ("b.ide.kyoto.jp", "b.ide.kyoto.jp a.b.ide.kyoto.jp"),
        ("b.c.kobe.jp", "b.c.kobe.jp a.b.c.kobe.jp"),
        ("city.kobe.jp", "city.kobe.jp www.city.kobe.jp"),
        ("b.test.ck", "b.test.ck a.b.test.ck"),
        ("www.ck", "www.ck www.www.ck"),
        ("test.us", "test.us www.test.us"),
        ("test.ak.us", "test.ak.us www.test.ak.us"),
        ("test.k12.ak.us", "test.k12.ak.us www.test.k12.ak.us"),
        ("xn--85x722f.com.cn", "食狮.com.cn xn--85x722f.com.cn"),
        (
            "xn--85x722f.xn--55qx5d.cn",
            "食狮.公司.cn www.食狮.公司.cn xn--85x722f.xn--55qx5d.cn www.xn--85x722f.xn--55qx5d.cn",
        ),
        (
            "shishi.xn--55qx5d.cn",
            "shishi.公司.cn shishi.xn--55qx5d.cn",
        ),
        (
            "xn--85x722f.xn--fiqs8s",
            "食狮.中国 www.食狮.中国 xn--85x722f.xn--fiqs8s www.xn--85x722f.xn--fiqs8s",
        ),
        ("shishi.xn--fiqs8s", "shishi.中国 shishi.xn--fiqs8s"),
    ];

    #[test]
    fn the_lists_own_vectors_hold() {
        for (expected, names) in VECTORS {
            for name in names.split(' ') {
                assert_eq!(registrable(name).unwrap_or_default(), *expected, "{name}");
            }
        }
    }

    #[test]
    fn suffixes_that_companies_keep_do_not_count() {
        for (name, expected) in [
            ("foo.github.io", "github.io"),
            ("x.vercel.app", "vercel.app"),
            ("foo.blogspot.co.uk", "blogspot.co.uk"),
        ] {
            assert_eq!(registrable(name).as_deref(), Some(expected), "{name}");
        }
    }
}
