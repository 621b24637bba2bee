//! Our verdicts against those of another implementation (`texting_robots`), over files made by chance.
//!
//! The files hold what both read alike. Where they differ it is written in RFC 9309, and `tests` has an example of each:
//! - a name with a version (`switchbay/1.0`): the product counts alone (2.2.1), there the whole text;
//! - rules before any name: they are of no group (2.2), there of all;
//! - `Disallow:` without a pattern: it matches nothing (2.2.2), there it allows everything, and so wins over `Disallow: /`;
//! - `Crawl-delay` between two names: it must not end them (2.2.4), there it does;
//! - `$` elsewhere than at the end: itself (2.2.3), there the end;
//! - encoded octets that need no encoding, `%2A` and `%24`: compared decoded (2.2.2), there as they are written;
//! - bytes that are no UTF-8: compared encoded, there the rule is dropped.

use arbtest::arbitrary::{Result, Unstructured};
use texting_robots::Robot;
use url::Url;

use super::{PRODUCT, Robots};

#[test]
fn verdicts_are_those_of_another_implementation() {
    arbtest::arbtest(|u| {
        let file = file(u)?;
        let ours = Robots::read(file.as_bytes());
        let other = Robot::new(PRODUCT, file.as_bytes()).expect("the other reads it");
        for _ in 0..20 {
            let path = format!("/{}", text(u, &PATH, 8)?);
            let page = Url::parse(&format!("https://a.example{path}")).expect("a URL");
            assert_eq!(
                ours.allows(&page),
                other.allowed(page.as_str()),
                "{path} by {file}"
            );
        }
        Ok(())
    })
    .budget_ms(3000);
}

/// Few, so that patterns meet paths.
const PATH: [&str; 7] = ["a", "a", "b", "/", "?", "ü", "."];
const PATTERN: [&str; 9] = ["a", "a", "b", "/", "?", "ü", ".", "*", "*"];

fn file(u: &mut Unstructured<'_>) -> Result<String> {
    let end = *u.choose(&["\n", "\r\n", "\r"])?;
    let mut file = String::new();
    for _ in 0..u.int_in_range(1..=4)? {
        for _ in 0..u.int_in_range(1..=3)? {
            let name = u.choose(&["switchbay", "SwitchBay", "other", "*", "switchbay-images"])?;
            file.push_str(&format!(
                "{}: {name}{end}",
                u.choose(&["User-agent", "USER-AGENT ", "useragent"])?
            ));
            file.push_str(noise(u)?);
            file.push_str(end);
        }
        for _ in 0..u.int_in_range(1..=6)? {
            let field = u.choose(&["Allow", "Disallow", "disallow", "disalow"])?;
            let pattern = text(u, &PATTERN, 6)?;
            let anchor = u.choose(&["", "", "$"])?;
            let first = u.choose(&["/", "/", "/", "*", "a"])?;
            file.push_str(&format!(
                "{field}: {first}{pattern}{anchor}{end}{}{end}",
                noise(u)?
            ));
        }
    }
    Ok(file)
}

/// What ends no group.
fn noise(u: &mut Unstructured<'_>) -> Result<&'static str> {
    u.choose(&[
        "",
        "",
        "# a: b",
        "Sitemap: https://a.example/s.xml",
        "Host: a.example",
        "nonsense",
    ])
    .copied()
}

fn text(u: &mut Unstructured<'_>, pieces: &[&str], most: usize) -> Result<String> {
    (0..u.int_in_range(0..=most)?)
        .map(|_| u.choose(pieces).copied())
        .collect()
}
