//! The laws of atoms and of their sets, over random ones.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::atom;
use crate::contract::grants::difference::Difference;
use crate::contract::grants::{Atom, Grants};

/// Atoms of few words, so that many overlap.
fn atoms() -> impl Strategy<Value = Atom> {
    let methods = subsequence(vec!["GET", "POST", "DELETE"], 1..=3);
    let hosts = select(vec![
        "x.org",
        "a.x.org",
        "b.a.x.org",
        "*.x.org",
        "*.a.x.org",
        "y.net",
    ]);
    let (schemes, ports) = (select(vec!["https", "http"]), select(vec!["", ":8443"]));
    let paths = select(vec!["/", "/a", "/a/", "/a/b", "/a/b/", "/ab"]);
    let origin = (schemes, hosts.clone(), ports, paths)
        .prop_map(|(s, h, p, path)| format!("{s}://{h}{p}{path}"));
    let target = prop_oneof![1 => Just("public".to_owned()), 6 => origin];
    let http = (methods, target)
        .prop_map(|(methods, target)| format!("http:{} {target}", methods.join(",")));
    // An odd number of a unit is in its one spelling.
    let units = select(vec!["", "KiB", "MiB", "GiB"]);
    let interfaces = select(vec!["cache", "state"]);
    let size = (interfaces, 0..4096_u64, units)
        .prop_map(|(i, number, unit)| format!("{i}:{}{unit}", number * 2 + 1));
    let place = prop_oneof![1 => Just("*"), 3 => hosts];
    let line = (place, select(vec![43, 4343]))
        .prop_map(|(host, port)| format!("line-query:{host}:{port}"));
    let other =
        select(vec!["config", "jobs", "dns:a", "dns:b", "features:a.b"]).prop_map(str::to_owned);
    prop_oneof![4 => http, 2 => size, 2 => line, 1 => other].prop_map(|text| atom(&text))
}

fn sets() -> impl Strategy<Value = Grants> {
    proptest::collection::vec(atoms(), 0..8).prop_map(Grants::from_iter)
}

proptest! {
    #[test]
    fn what_is_taken_is_spelled_as_it_was_written(text in r"(http:GET (https?://)?|line-query:|cache:|dns:)?[ -~ä]{0,24}") {
        if let Ok(atom) = Atom::parse(&text) {
            prop_assert_eq!(atom.to_string(), text);
        }
    }

    #[test]
    fn a_target_is_what_a_client_of_the_url_would_ask_for(rest in r"[a-c.]{1,8}\.org(:[0-9]{1,3})?(/[a-c.%2e]{0,4}){0,3}") {
        let target = format!("https://{rest}");
        if Atom::parse(&format!("http:GET {target}")).is_ok() {
            let url = url::Url::parse(&target).expect("a URL");
            prop_assert_eq!(url.as_str(), target);
        }
    }

    #[test]
    fn parsing_undoes_display(one in atoms()) {
        prop_assert_eq!(Atom::parse(&one.to_string()), Ok(one));
    }

    #[test]
    fn covering_is_reflexive_and_transitive(one in atoms(), two in atoms(), three in atoms()) {
        prop_assert!(one.covers(&one));
        prop_assert!(!(one.covers(&two) && two.covers(&three)) || one.covers(&three));
        prop_assert!(!(one.covers(&two) && two.covers(&one)) || one == two);
    }

    #[test]
    fn a_meet_is_what_both_cover_and_no_less(one in atoms(), two in atoms(), three in atoms()) {
        let meet = one.meet(&two);
        prop_assert_eq!(&meet, &two.meet(&one));
        prop_assert!(meet.as_ref().is_none_or(|meet| one.covers(meet) && two.covers(meet)));
        let within_both = one.covers(&three) && two.covers(&three);
        prop_assert_eq!(within_both, meet.is_some_and(|meet| meet.covers(&three)));
    }

    #[test]
    fn the_effective_rights_exceed_neither_side(granted in sets(), wanted in sets(), asked in atoms()) {
        let effective = granted.effective(&wanted);
        for atom in effective.iter() {
            prop_assert!(granted.covers(atom) && wanted.covers(atom), "{atom}");
        }
        prop_assert_eq!(effective.covers(&asked), granted.covers(&asked) && wanted.covers(&asked));
        prop_assert_eq!(&effective, &wanted.effective(&granted));
        prop_assert_eq!(granted.uncovered(&wanted).iter().count() == 0, wanted.iter().all(|atom| effective.covers(atom)));
    }

    #[test]
    fn a_difference_accounts_for_every_atom(before in sets(), after in sets()) {
        prop_assert!(Difference::between(&before, &before).is_empty());
        prop_assert!(!Difference::between(&before, &before).widens);
        let difference = Difference::between(&before, &after);
        prop_assert_eq!(difference.is_empty(), before == after);
        prop_assert_eq!(difference.widens, before.uncovered(&after).iter().count() > 0);
        let told = serde_json::to_value(&difference).expect("JSON");
        let count = |member: &str| told[member].as_array().map_or(0, Vec::len);
        let resized = count("widened") + count("narrowed");
        prop_assert_eq!(count("kept") + count("removed") + resized, before.iter().count());
        prop_assert_eq!(count("kept") + count("added") + resized, after.iter().count());
        prop_assert_eq!(difference.to_string().lines().count(), count("added") + count("removed") + resized);
    }
}
