//! The promise that the record exists for, over random lives: rights never widen without an approval or an edit of the
//! manifest; and what every life keeps to.

use std::collections::BTreeMap;

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;

use super::*;
use crate::contract::description::Want;
use crate::contract::manifest::{InstanceMode, PluginLimits, Settings};

/// Atoms that are within one another, overlap, or have nothing to do with each other.
const ATOMS: [&str; 9] = [
    "config",
    "logging",
    "cache:16MiB",
    "cache:64MiB",
    "http:GET https://a.example.com/",
    "http:GET https://a.example.com/v1/",
    "http:GET,POST https://a.example.com/v1/",
    "http:GET public",
    "line-query:*:43",
];

#[derive(Clone, Debug)]
enum Step {
    Upgrade {
        wants: Vec<&'static str>,
        goes_live: bool,
    },
    Fail {
        wants: Vec<&'static str>,
    },
    Approve {
        of: AnyOf,
        looked_at: Option<Vec<&'static str>>,
    },
    Reject {
        of: AnyOf,
    },
    Activate {
        of: AnyOf,
    },
    Rollback {
        to: Option<AnyOf>,
    },
    Edit {
        grants: Vec<&'static str>,
    },
    Revoke {
        atom: AnyOf,
    },
    Drained {
        of: AnyOf,
    },
    Disable,
    Enable,
    Restart,
}

/// Picks one of however many there are.
#[derive(Clone, Copy, Debug)]
struct AnyOf(usize);

impl AnyOf {
    fn index(self, of: usize) -> usize {
        self.0 % of
    }

    fn get<T>(self, of: &[T]) -> &T {
        &of[self.index(of.len())]
    }
}

fn any_of_all(u: &mut Unstructured<'_>) -> Result<AnyOf> {
    u.arbitrary().map(AnyOf)
}

/// Two sizes of one thing in one list are refused when it is read, long before a life.
fn any_atoms(u: &mut Unstructured<'_>) -> Result<Vec<&'static str>> {
    let mut atoms = Vec::new();
    for atom in ATOMS {
        let is_second_size =
            atom.starts_with("cache:") && atoms.iter().any(|one: &&str| one.starts_with("cache:"));
        if !is_second_size && u.ratio(1, 3)? {
            atoms.push(atom);
        }
    }
    Ok(atoms)
}

fn any_step(u: &mut Unstructured<'_>) -> Result<Step> {
    Ok(match u.int_in_range(0..=24)? {
        0..=4 => Step::Upgrade {
            wants: any_atoms(u)?,
            goes_live: u.arbitrary()?,
        },
        5 => Step::Fail {
            wants: any_atoms(u)?,
        },
        6..=8 => Step::Approve {
            of: any_of_all(u)?,
            looked_at: if u.arbitrary()? {
                Some(any_atoms(u)?)
            } else {
                None
            },
        },
        9 => Step::Reject { of: any_of_all(u)? },
        10..=12 => Step::Activate { of: any_of_all(u)? },
        13..=15 => Step::Rollback {
            to: if u.arbitrary()? {
                Some(any_of_all(u)?)
            } else {
                None
            },
        },
        16..=17 => Step::Edit {
            grants: any_atoms(u)?,
        },
        18..=19 => Step::Revoke {
            atom: any_of_all(u)?,
        },
        20..=21 => Step::Drained { of: any_of_all(u)? },
        22 => Step::Disable,
        23 => Step::Enable,
        _ => Step::Restart,
    })
}

fn mark() -> OperatorNote {
    OperatorNote {
        at: 1,
        by: "test".to_owned(),
        why: String::new(),
    }
}

fn grants(atoms: &[&str]) -> Grants {
    Grants::parse(atoms).expect("atoms")
}

fn settings() -> Settings {
    let limits = PluginLimits {
        memory_bytes: 1 << 20,
        cpu: std::time::Duration::from_secs(1),
        wall: std::time::Duration::from_secs(1),
        concurrency: 1,
        owner_concurrency: None,
        warm_growth_bytes: None,
        response_bytes: 1024,
    };
    Settings {
        instances: InstanceMode::Fresh,
        limits,
        config: BTreeMap::new(),
        secrets: Vec::new(),
    }
}

fn begin(life: &mut PluginRecord) -> Result<u64, LifeError> {
    let fetched = Fetched {
        digest: "digest".to_owned(),
        bytes: 1,
        source: "upload".to_owned(),
        settings: settings(),
        goes_live: false,
    };
    life.begin(fetched, mark())
}

fn describe(life: &mut PluginRecord, number: u64, wants: &[&str]) -> Result<(), LifeError> {
    for state in [
        RevisionState::Verified,
        RevisionState::Compiled,
        RevisionState::Linked,
    ] {
        life.advance(number, state, mark())?;
    }
    let why = "it is needed".to_owned();
    let wants = grants(wants)
        .iter()
        .map(|atom| Want {
            atom: atom.clone(),
            why: why.clone(),
            optional: is_optional(atom),
        })
        .collect();
    life.describe(
        number,
        Described {
            version: "1".to_owned(),
            summary: String::new(),
            wants,
        },
        mark(),
    )
}

/// One of the atoms is a wish that a revision does without.
fn is_optional(atom: &Atom) -> bool {
    *atom == Atom::parse(ATOMS[8]).expect("an atom")
}

fn any_of(life: &PluginRecord, index: AnyOf) -> u64 {
    match life.revisions() {
        [] => 1,
        revisions => index.get(revisions).number,
    }
}

/// Takes a step on a copy, as the registry does: a refused step leaves the record as it was.
fn take(life: &PluginRecord, step: &Step) -> Result<PluginRecord, LifeError> {
    let mut next = life.clone();
    match step {
        Step::Upgrade { wants, goes_live } => {
            let number = begin(&mut next)?;
            describe(&mut next, number, wants)?;
            next.advance(number, RevisionState::Compared, mark())?;
            if next.stage(number, mark())? == RevisionState::Staged && *goes_live {
                next.activate(number, mark())?;
            }
        }
        Step::Fail { wants } => {
            let number = begin(&mut next)?;
            describe(&mut next, number, wants)?;
            next.reject(number, mark())?;
        }
        Step::Approve { of, looked_at } => {
            let looked_at = looked_at.as_deref().map(grants);
            next.approve(any_of(life, *of), looked_at.as_ref(), mark())?;
        }
        Step::Reject { of } => next.reject(any_of(life, *of), mark())?,
        Step::Activate { of } => next.activate(any_of(life, *of), mark())?,
        Step::Rollback { to } => {
            let number = next.before(to.map(|index| any_of(life, index)))?;
            next.activate(number, mark())?;
        }
        Step::Edit { grants: edited } => {
            next.edit(&grants(edited), mark());
        }
        Step::Revoke { atom } => {
            next.revoke(
                &grants(&[*atom.get(&ATOMS[..])])
                    .iter()
                    .next()
                    .expect("one")
                    .clone(),
                mark(),
            )?;
        }
        Step::Drained { of } => {
            next.drained(any_of(life, *of), mark());
        }
        Step::Disable => next.disable(mark())?,
        Step::Enable => next.enable(mark())?,
        Step::Restart => {
            let stored = serde_json::to_vec(&next).expect("JSON");
            next = serde_json::from_slice(&stored).expect("the record that was written");
            next.recover(&mark());
        }
    }
    Ok(next)
}

fn rights(life: &PluginRecord) -> Rights {
    life.active()
        .map(|active| life.rights(active))
        .unwrap_or_default()
}

fn check_shape(life: &PluginRecord) {
    let count = |states: &[RevisionState]| {
        life.revisions()
            .iter()
            .filter(|record| states.contains(&record.state))
            .count()
    };
    assert!(count(&[RevisionState::Active]) <= 1, "two revisions serve");
    assert!(
        count(&[RevisionState::Staged, RevisionState::AwaitingApproval]) <= 1,
        "two candidates"
    );
    assert!(
        count(&[RevisionState::Retained]) <= RETAINED_MAX
            && count(&[RevisionState::Rejected]) <= REJECTED_MAX
    );
    if let Some(candidate) = life.candidate() {
        assert_eq!(
            life.lacking(candidate).is_empty(),
            candidate.state == RevisionState::Staged,
            "a candidate waits for nothing"
        );
    }
    let mut numbers: Vec<u64> = life
        .revisions()
        .iter()
        .map(|record| record.number)
        .collect();
    let all = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), all, "a number is used twice");
}

#[test]
fn rights_widen_by_an_approval_or_an_edit_alone() {
    arbtest(|u| {
        let mut life = PluginRecord::new("probe");
        // Kept apart from the record: what an operator has granted by either way, and not taken back.
        let (mut edited, mut approved) = (Grants::default(), Vec::<Grants>::new());
        for _ in 0..u.int_in_range(1..=59)? {
            let step = any_step(u)?;
            let before = life.clone();
            let Ok(next) = take(&life, &step) else {
                continue;
            };
            life = next;
            check_shape(&life);
            match &step {
                Step::Edit { grants: now } => edited = grants(now),
                Step::Approve { of, looked_at } => {
                    let wanted = before.missing(
                        before
                            .revision(any_of(&before, *of))
                            .expect("it was approved"),
                    );
                    if let Some(looked_at) = looked_at {
                        assert!(
                            grants(looked_at).uncovered(&wanted).is_empty(),
                            "more was granted than looked at"
                        );
                    }
                    approved.push(wanted);
                }
                Step::Revoke { atom } => {
                    let gone = grants(&[*atom.get(&ATOMS[..])]);
                    approved = approved
                        .into_iter()
                        .map(|set| {
                            set.iter()
                                .filter(|atom| !gone.iter().any(|g| g == *atom))
                                .cloned()
                                .collect()
                        })
                        .collect();
                }
                _ => {
                    let known = before.granted();
                    assert!(
                        known.uncovered(&life.granted()).is_empty(),
                        "{step:?} granted something"
                    );
                }
            }
            let allowed: Grants = edited
                .iter()
                .chain(approved.iter().flat_map(Grants::iter))
                .cloned()
                .collect();
            let beyond = allowed.uncovered(&rights(&life));
            assert!(beyond.is_empty(), "{step:?} gave {beyond:?}");
            let serves = |life: &PluginRecord| life.active().map(|active| active.number);
            if serves(&life) != serves(&before) {
                let active = life.active().expect("something serves");
                assert!(
                    life.lacking(active).is_empty(),
                    "{step:?} made serve what is not granted"
                );
            }
        }
        Ok(())
    })
    .budget_ms(1_000);
}

#[test]
fn a_second_rollback_goes_back_further() {
    let mut life = PluginRecord::new("probe");
    for _ in 0..5 {
        life = take(
            &life,
            &Step::Upgrade {
                wants: Vec::new(),
                goes_live: true,
            },
        )
        .expect("it goes live");
    }
    let mut seen = Vec::new();
    while let Ok(next) = take(&life, &Step::Rollback { to: None }) {
        life = next;
        seen.push(life.active().expect("active").number);
    }
    assert_eq!(
        seen,
        [4, 3, 2, 1],
        "they all drain, and none is forgotten while it does"
    );
    let refused = life.before(None).expect_err("nothing is older");
    assert_eq!(
        refused.to_string(),
        "plugin `probe` has no revision to roll back to: none that served before revision 1 is kept"
    );
}

#[test]
fn three_that_served_last_are_kept() {
    let mut life = PluginRecord::new("probe");
    for number in 1..=6 {
        life = take(
            &life,
            &Step::Upgrade {
                wants: Vec::new(),
                goes_live: true,
            },
        )
        .expect("it goes live");
        life.drained(number - 1, mark());
    }
    let kept: Vec<(u64, RevisionState)> = life
        .revisions()
        .iter()
        .map(|record| (record.number, record.state))
        .collect();
    assert_eq!(
        kept,
        [
            (3, RevisionState::Retained),
            (4, RevisionState::Retained),
            (5, RevisionState::Retained),
            (6, RevisionState::Active)
        ]
    );
}

#[test]
fn what_was_half_way_is_discarded_by_a_restart() {
    let mut life = PluginRecord::new("probe");
    life = take(
        &life,
        &Step::Upgrade {
            wants: Vec::new(),
            goes_live: true,
        },
    )
    .expect("it goes live");
    let number = begin(&mut life).expect("it begins");
    assert!(matches!(
        begin(&mut life.clone()),
        Err(LifeError::UnderWay { number: 2, .. })
    ));
    life = take(&life, &Step::Restart).expect("it restarts");
    let record = life.revision(number).expect("its record is kept");
    assert_eq!(record.state, RevisionState::Rejected);
    assert_eq!(
        record.changed.why,
        "the process ended while the revision was fetched"
    );
    assert_eq!(life.active().map(|active| active.number), Some(1));
}
