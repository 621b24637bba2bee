//! Reading port-43 answers (RFC 3912), which have no format: general rules over their shapes and words.
//!
//! `charset` makes text of bytes, `lines` entries of text, `keys` says what an entry's key means, and here the values
//! are taken. What says nothing of a registration goes to `verdict`.

mod charset;
mod keys;
mod lines;
mod verdict;

use crate::name::host_name;
use crate::registration::{Answer, Registration};
use crate::{dates, public, status};

use keys::Field;
use lines::Entry;

/// Registries whose times have no zone and are not in UTC: hours east of it.
const LOCAL_TIMES: &[(&str, i32)] = &[("cn", 8), ("xn--fiqs8s", 8), ("xn--fiqz9s", 8)];

/// Reads an answer about `domain`, which is in A-labels.
pub(crate) fn read(bytes: &[u8], domain: &str) -> Answer {
    let text = charset::decode(bytes, domain);
    let entries = lines::entries(&text);
    let named = |value: &str| value.split_whitespace().next().and_then(host_name);
    let names: Vec<String> = values(&entries, Field::Domain).filter_map(named).collect();
    let is_named = names.iter().any(|name| name == domain);
    let of_another = !names.is_empty() && !is_named;
    let registration = registration(&entries, domain);
    if let Some(nobodys) = registration.of_nobody(values(&entries, Field::Status)) {
        return nobodys;
    }
    // A bare echo of the name is no registration; with a date, a status, a registrar or a server it is.
    match (registration.is_empty(), of_another) {
        (false, false) if is_named || registration.creation_date.is_some() => {
            let referral = values(&entries, Field::Referral).find_map(referral);
            Answer::Registered {
                registration,
                referral,
            }
        }
        (false, true) => Answer::Unusable("its answer describes another domain"),
        (true, _) | (false, false) => verdict::read(&text, domain),
    }
}

fn field(entry: &Entry<'_>) -> Option<Field> {
    keys::field(entry.room, &entry.key)
}

/// What the entries with this field say.
fn values<'t>(entries: &[Entry<'t>], wanted: Field) -> impl Iterator<Item = &'t str> {
    let is = move |entry: &&Entry<'_>| field(entry) == Some(wanted);
    entries.iter().filter(is).map(|entry| entry.value)
}

/// The host that a registrar answers at, however it is written.
fn referral(value: &str) -> Option<String> {
    let host = value.split("://").last()?.split(['/', ' ']).next()?;
    host_name(host).filter(|host| host.contains('.'))
}

fn registration(entries: &[Entry<'_>], domain: &str) -> Registration {
    let top = domain.rsplit('.').next().unwrap_or_default();
    let assumed = LOCAL_TIMES
        .iter()
        .find(|(known, _)| *known == top)
        .map_or(0, |(_, hours)| *hours);
    let mut registration = Registration::default();
    let (mut registrar_expires, mut registrar) = (None, (0, None));
    for entry in entries {
        let date = || dates::read(entry.value, assumed);
        match field(entry) {
            Some(Field::Created) => fill(&mut registration.creation_date, date),
            // Objects with a history tell each of their changes.
            Some(Field::Updated) => {
                registration.updated_date = registration.updated_date.take().max(date());
            }
            Some(Field::Expires) => fill(&mut registration.expiration_date, date),
            Some(Field::RegistrarExpires) => fill(&mut registrar_expires, date),
            Some(Field::Status) => registration.add_status(entry.value),
            Some(Field::Dnssec) => fill(&mut registration.dnssec, || dnssec(entry.value)),
            Some(Field::SigningKey) if !entry.value.is_empty() => {
                registration.dnssec = Some("signedDelegation".to_owned());
            }
            Some(Field::Server) => servers(&mut registration, entry.value),
            Some(Field::Registrar(worth)) => better(&mut registrar, worth, entry.value),
            Some(
                Field::SigningKey
                | Field::Domain
                | Field::Organization
                | Field::Holder
                | Field::Person
                | Field::HolderKind
                | Field::Referral,
            )
            | None => {}
        }
    }
    registration.registrar = registrar.1;
    registration.organization = organization(entries);
    registration.expiration_date = registration.expiration_date.or(registrar_expires);
    registration
}

/// The first value that can be read stays.
fn fill(place: &mut Option<String>, read: impl FnOnce() -> Option<String>) {
    if place.is_none() {
        *place = read();
    }
}

fn dnssec(value: &str) -> Option<String> {
    status::dnssec(value).map(str::to_owned)
}

/// A line may hold several servers, each with its addresses.
fn servers(registration: &mut Registration, value: &str) {
    for word in value
        .split([' ', '\t', ',', ';'])
        .filter(|word| !word.starts_with(['[', '(']))
    {
        registration.add_name_server(word);
    }
}

/// Keeps the name that is worth most; a short name in capitals is worth less than any other.
fn better(best: &mut (u8, Option<String>), worth: u8, value: &str) {
    let short = !value.contains(' ') && !value.contains(char::is_lowercase) && value.contains('-');
    let worth = if short { 1 } else { worth + 1 };
    if let Some(name) = public::registrar(value).filter(|_| worth > best.0) {
        *best = (worth, Some(name));
    }
}

fn organization(entries: &[Entry<'_>]) -> Option<String> {
    let kind = values(entries, Field::HolderKind).next();
    let kind = kind.unwrap_or_default().to_lowercase();
    let persons = ["person", "individual", "private"];
    if persons.iter().any(|word| kind.contains(word)) {
        return None;
    }
    let mut named = values(entries, Field::Organization).chain(values(entries, Field::Holder));
    named.find_map(public::organization)
}
