//! The laws of atoms and of their sets, over random ones.

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;

use super::atom;
use crate::contract::grants::difference::GrantDifference;
use crate::contract::grants::{Atom, Grants};

const METHODS: [&str; 7] = [
    "GET",
    "POST",
    "DELETE",
    "GET,POST",
    "GET,DELETE",
    "POST,DELETE",
    "GET,POST,DELETE",
];
const HOSTS: [&str; 6] = [
    "x.org",
    "a.x.org",
    "b.a.x.org",
    "*.x.org",
    "*.a.x.org",
    "y.net",
];
const PATHS: [&str; 6] = ["/", "/a", "/a/", "/a/b", "/a/b/", "/ab"];

fn chosen<'c>(u: &mut Unstructured<'_>, of: &[&'c str]) -> Result<&'c str> {
    u.choose(of).copied()
}

/// An atom of few words, so that many overlap.
fn any_atom(u: &mut Unstructured<'_>) -> Result<Atom> {
    let text = match u.int_in_range(0..=8)? {
        0..=3 => {
            let methods = chosen(u, &METHODS)?;
            if u.ratio(1, 7)? {
                format!("http:{methods} public")
            } else {
                let (scheme, host) = (chosen(u, &["https", "http"])?, chosen(u, &HOSTS)?);
                let (port, path) = (chosen(u, &["", ":8443"])?, chosen(u, &PATHS)?);
                format!("http:{methods} {scheme}://{host}{port}{path}")
            }
        }
        4..=5 => {
            // An odd number of a unit is in its one spelling.
            let (number, interface) = (
                u.int_in_range(0..=4095)? * 2 + 1,
                chosen(u, &["cache", "state"])?,
            );
            format!(
                "{interface}:{number}{}",
                chosen(u, &["", "KiB", "MiB", "GiB"])?
            )
        }
        6..=7 => {
            let host = if u.ratio(1, 4)? {
                "*"
            } else {
                chosen(u, &HOSTS)?
            };
            format!("line-query:{host}:{}", chosen(u, &["43", "4343"])?)
        }
        _ => chosen(u, &["config", "jobs", "dns:a", "dns:b", "features:a.b"])?.to_owned(),
    };
    Ok(atom(&text))
}

fn any_grants(u: &mut Unstructured<'_>) -> Result<Grants> {
    let length = u.int_in_range(0..=7)?;
    (0..length).map(|_| any_atom(u)).collect()
}

fn any_text(u: &mut Unstructured<'_>, of: &[char], length_max: usize) -> Result<String> {
    let length = u.int_in_range(0..=length_max)?;
    (0..length).map(|_| u.choose(of).copied()).collect()
}

#[test]
fn what_is_taken_is_spelled_as_it_was_written() {
    let printable: Vec<char> = (' '..='~').chain(['ä']).collect();
    let begins = [
        "",
        "http:GET ",
        "http:GET https://",
        "http:GET http://",
        "line-query:",
        "cache:",
        "dns:",
    ];
    arbtest(|u| {
        let text = format!("{}{}", chosen(u, &begins)?, any_text(u, &printable, 24)?);
        if let Ok(atom) = Atom::parse(&text) {
            assert_eq!(atom.to_string(), text);
        }
        Ok(())
    });
}

#[test]
fn a_target_is_what_a_client_of_the_url_would_ask_for() {
    let (host, path) = (
        ['a', 'b', 'c', '.'],
        ['a', 'b', 'c', '.', '%', '2', 'e', '/'],
    );
    arbtest(|u| {
        let port = if u.arbitrary()? {
            format!(":{}", u.int_in_range(0..=999)?)
        } else {
            String::new()
        };
        let target = format!(
            "https://{}.org{port}/{}",
            any_text(u, &host, 8)?,
            any_text(u, &path, 12)?
        );
        if Atom::parse(&format!("http:GET {target}")).is_ok() {
            assert_eq!(url::Url::parse(&target).expect("a URL").as_str(), target);
        }
        Ok(())
    });
}

#[test]
fn parsing_undoes_display() {
    arbtest(|u| {
        let one = any_atom(u)?;
        assert_eq!(Atom::parse(&one.to_string()), Ok(one));
        Ok(())
    });
}

#[test]
fn covering_is_reflexive_and_transitive() {
    arbtest(|u| {
        let (one, two, three) = (any_atom(u)?, any_atom(u)?, any_atom(u)?);
        assert!(one.covers(&one));
        assert!(
            !(one.covers(&two) && two.covers(&three)) || one.covers(&three),
            "{one} {two} {three}"
        );
        assert!(
            !(one.covers(&two) && two.covers(&one)) || one == two,
            "{one} {two}"
        );
        Ok(())
    });
}

#[test]
fn a_meet_is_what_both_cover_and_no_less() {
    arbtest(|u| {
        let (one, two, three) = (any_atom(u)?, any_atom(u)?, any_atom(u)?);
        let meet = one.meet(&two);
        assert_eq!(meet, two.meet(&one));
        assert!(
            meet.as_ref()
                .is_none_or(|meet| one.covers(meet) && two.covers(meet)),
            "{one} {two}"
        );
        let within_both = one.covers(&three) && two.covers(&three);
        assert_eq!(
            within_both,
            meet.is_some_and(|meet| meet.covers(&three)),
            "{one} {two} {three}"
        );
        Ok(())
    });
}

#[test]
fn the_effective_rights_exceed_neither_side() {
    arbtest(|u| {
        let (granted, wanted, asked) = (any_grants(u)?, any_grants(u)?, any_atom(u)?);
        let effective = granted.effective(&wanted);
        for atom in effective.iter() {
            assert!(granted.covers(atom) && wanted.covers(atom), "{atom}");
        }
        assert_eq!(
            effective.covers(&asked),
            granted.covers(&asked) && wanted.covers(&asked)
        );
        assert_eq!(effective, wanted.effective(&granted));
        let lacks_nothing = granted.uncovered(&wanted).iter().count() == 0;
        assert_eq!(
            lacks_nothing,
            wanted.iter().all(|atom| effective.covers(atom))
        );
        Ok(())
    });
}

#[test]
fn a_difference_accounts_for_every_atom() {
    arbtest(|u| {
        let (before, after) = (any_grants(u)?, any_grants(u)?);
        assert!(GrantDifference::between(&before, &before).is_empty());
        assert!(!GrantDifference::between(&before, &before).widens);
        let difference = GrantDifference::between(&before, &after);
        assert_eq!(difference.is_empty(), before == after);
        assert_eq!(
            difference.widens,
            before.uncovered(&after).iter().count() > 0
        );
        let told = serde_json::to_value(&difference).expect("JSON");
        let count = |member: &str| told[member].as_array().map_or(0, Vec::len);
        let resized = count("widened") + count("narrowed");
        assert_eq!(
            count("kept") + count("removed") + resized,
            before.iter().count()
        );
        assert_eq!(
            count("kept") + count("added") + resized,
            after.iter().count()
        );
        let lines = difference.to_string().lines().count();
        assert_eq!(lines, count("added") + count("removed") + resized);
        Ok(())
    });
}
