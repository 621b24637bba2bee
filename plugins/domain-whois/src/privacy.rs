//! The property that no person's data is told, wherever a registry puts it.
//!
//! In every answer of the corpora, each value in turn is replaced by a name, an address of mail, a number, a street or
//! a handle of a made-up person, and nothing of it may be in what is told. The name of a registrar is told by its
//! nature: in its place alone a name is not tried.

use std::time::Duration;

use arbtest::arbitrary::{Result, Unstructured};
use arbtest::arbtest;
use serde_json::Value;

use crate::corpus::{Case, cases};
use crate::registration::Answer;
use crate::{rdap, text};

/// The data of one made-up person.
#[derive(Clone, Debug)]
struct Person {
    given: String,
    family: String,
    digits: String,
}

/// What of a person a value is replaced by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seed {
    Name,
    Reversed,
    Estate,
    Care,
    /// All in capitals, and the end is a legal form too.
    Capitals,
    /// A part of the name, and nothing else of it anywhere.
    Family,
    /// The whole name in one word of capitals.
    Word,
    /// Two persons of one family.
    Couple,
    Mail,
    Phone,
    Street,
    Handle,
}

const SEEDS: [Seed; 12] = [
    Seed::Name,
    Seed::Reversed,
    Seed::Estate,
    Seed::Care,
    Seed::Capitals,
    Seed::Family,
    Seed::Word,
    Seed::Couple,
    Seed::Mail,
    Seed::Phone,
    Seed::Street,
    Seed::Handle,
];

impl Seed {
    fn is_name(self) -> bool {
        !matches!(self, Seed::Mail | Seed::Phone | Seed::Street | Seed::Handle)
    }
}

impl Person {
    fn seed(&self, seed: Seed) -> String {
        let Self {
            given,
            family,
            digits,
        } = self;
        match seed {
            Seed::Name => format!("{given} {family}"),
            Seed::Reversed => format!("{}, {}", family.to_uppercase(), given.to_uppercase()),
            Seed::Estate => format!("Estate of {given} {family}"),
            Seed::Care => format!("care of {given} {family}"),
            Seed::Capitals => format!("{} SE", given.to_uppercase()),
            Seed::Family => family.clone(),
            Seed::Word => format!("{given}{family}").to_uppercase(),
            Seed::Couple => format!("{family}, {given} & Mary"),
            Seed::Mail => format!("{given}.{family}@mail.example"),
            Seed::Phone => format!("+1.202{digits}"),
            Seed::Street => format!("{digits} {family} Street"),
            Seed::Handle => format!("{}{digits}-NIC", family.to_uppercase()),
        }
    }

    fn is_in(&self, told: &str) -> bool {
        let told = told.to_lowercase();
        [&self.given, &self.family, &self.digits]
            .iter()
            .any(|part| told.contains(&part.to_lowercase()))
    }
}

/// Names that no registry's answer has: each begins with letters that stand together nowhere else.
fn any_person(u: &mut Unstructured<'_>) -> Result<Person> {
    let letters = |u: &mut Unstructured<'_>, most: usize| -> Result<String> {
        let length = u.int_in_range(2..=most)?;
        let letter = |_| u.int_in_range(b'a'..=b'z').map(char::from);
        (0..length).map(letter).collect()
    };
    let start = *u.choose(&["Qx", "Zq", "Ëq", "Xj"])?;
    Ok(Person {
        given: format!("{start}{}", letters(u, 7)?),
        family: format!("Vq{}", letters(u, 9)?),
        digits: format!(
            "8{:03}7{:02}",
            u.int_in_range(0..=999)?,
            u.int_in_range(0..=99)?
        ),
    })
}

/// What is told of an answer.
fn told(answer: &Answer) -> String {
    match answer {
        Answer::Registered { registration, .. } => {
            serde_json::to_string(registration).expect("it has a JSON form")
        }
        Answer::Free | Answer::Reserved | Answer::Throttled | Answer::Unusable(_) => String::new(),
    }
}

fn check(case: &Case, person: &Person, seed: Seed, place: &str, answer: &Answer) {
    let told = told(answer);
    assert!(
        !person.is_in(&told),
        "{} {}: {seed:?} at {place} is in {told}",
        case.registry,
        case.domain
    );
}

/// Each line's value in turn.
fn lines(case: &Case, person: &Person) {
    let lines: Vec<&str> = case.answer.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let about_registrar = lines[at.saturating_sub(3)..=at].iter().any(|line| {
            let line = line.to_lowercase();
            ["registrar", "agency", "provider"]
                .iter()
                .any(|word| line.contains(word))
        });
        let value = line
            .find([':', ']'])
            .map_or(line.len() - line.trim_start().len(), |colon| colon + 1);
        for seed in SEEDS {
            if about_registrar && seed.is_name() {
                continue;
            }
            let replaced = format!("{} {}", &line[..value], person.seed(seed));
            let mut lines = lines.clone();
            lines[at] = &replaced;
            check(
                case,
                person,
                seed,
                line,
                &text::read(lines.join("\n").as_bytes(), &case.domain),
            );
        }
    }
}

/// Each text of a JSON document in turn.
fn members(case: &Case, body: &str, person: &Person) {
    let document: Value = serde_json::from_str(body).expect("JSON");
    let mut places = Vec::new();
    collect(&document, String::new(), &mut places);
    for place in places {
        for seed in SEEDS {
            let mut document = document.clone();
            let value = document.pointer_mut(&place).expect("it was found there");
            *value = Value::String(person.seed(seed));
            let entity = place.split('/').take(3).collect::<Vec<_>>().join("/");
            let registrar = document
                .pointer(&format!("{entity}/roles/0"))
                .is_some_and(|role| role == "registrar");
            if registrar && seed.is_name() {
                continue;
            }
            check(
                case,
                person,
                seed,
                &place,
                &rdap::read(200, "", document.to_string().as_bytes(), &case.domain),
            );
        }
    }
}

fn collect(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::String(_) => places.push(at),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, item)| collect(item, format!("{at}/{n}"), places));
        }
        Value::Object(all) => all
            .iter()
            .for_each(|(name, item)| collect(item, format!("{at}/{name}"), places)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn nothing_of_a_person_is_told_wherever_it_stands() {
    let all: Vec<Case> = ["port43", "held-out"].into_iter().flat_map(cases).collect();
    // One person is tried in some hundred thousand places, which takes longer than any budget.
    let once = Duration::from_millis(1);
    arbtest(|u| {
        let person = any_person(u)?;
        for case in &all {
            lines(case, &person);
        }
        for case in cases("rdap")
            .iter()
            .filter(|case| case.answer.starts_with("HTTP 200"))
        {
            let (_, body) = case.answer.split_once('\n').expect("a body");
            members(case, body, &person);
        }
        Ok(())
    })
    .size_min(128)
    .budget(once);
}
