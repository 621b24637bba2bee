//! What the keys of port-43 answers mean: rules over words, not a table for each registry. Knows nothing of values.

use crate::words::listed;

/// Where an entry stands: which thing the answer is speaking of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Domain,
    Registrar,
    Holder,
    /// Persons whose data is never told.
    Contact,
    Servers,
    Keys,
}

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Domain,
    /// A registrar's name, with what it is worth: a company's name over a short one.
    Registrar(u8),
    Organization,
    /// A name that may be a person's.
    Holder,
    /// A name that is a person's, for all that is known; it is never told.
    Person,
    /// Whether the holder is a person.
    HolderKind,
    Created,
    Updated,
    Expires,
    /// The end of what the registrar sold; it counts where the registry tells none.
    RegistrarExpires,
    Status,
    Dnssec,
    /// Key material: where it is, the delegation is signed.
    SigningKey,
    Server,
    Referral,
}

/// A key in lower case, its words one space apart, without what stands in brackets.
pub(super) fn normal(key: &str) -> String {
    let key = key.split('(').next().unwrap_or_default().to_lowercase();
    let words: Vec<&str> = key
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

/// The room that a heading opens, if its words name one.
pub(super) fn room(heading: &str) -> Option<Room> {
    let has = |wanted: &str| heading.split(' ').any(|word| listed(wanted, word));
    let starts = |wanted: &str| {
        let begins = |word: &str| wanted.split(' ').any(|start| word.starts_with(start));
        heading.split(' ').any(begins)
    };
    if has("whois") {
        return Some(Room::Contact);
    }
    if has("nameserver nameservers nserver nservers nsset dns servers") || server_words(heading) {
        return Some(Room::Servers);
    }
    if has("keys keyset dnskey dsrecord dsrecords") {
        return Some(Room::Keys);
    }
    if has("registrar registrars registrar's") && !starts("abuse") {
        return Some(Room::Registrar);
    }
    if has("registrant holder owner registrants") {
        return Some(Room::Holder);
    }
    let contact = starts("admin tech billing abuse contact onsite reseller");
    (contact || has("person role zone nic")).then_some(Room::Contact)
}

/// Takes the room's word from the front of a flat key: `registrant organization` stands in the holder's room as
/// `organization`.
pub(super) fn prefixed(key: &str) -> Option<(Room, &str)> {
    let (first, rest) = key.strip_prefix("domain ").unwrap_or(key).split_once(' ')?;
    match first {
        "registrar" => Some((Room::Registrar, rest)),
        "registrant" | "holder" | "owner" => Some((Room::Holder, rest)),
        "admin" | "administrative" | "tech" | "technical" | "billing" | "abuse" | "reseller"
        | "onsite" | "zone" => Some((Room::Contact, rest.strip_prefix("contact ").unwrap_or(rest))),
        _ => None,
    }
}

/// Whether a paragraph that begins with this key is about something else than the domain.
pub(super) fn opens(key: &str) -> Option<Room> {
    match key {
        "nsset" => Some(Room::Servers),
        "keyset" => Some(Room::Keys),
        "nic hdl" | "nic hdl br" | "person" | "role" | "contact" | "irt" => Some(Room::Contact),
        _ => room(key).filter(|room| matches!(room, Room::Registrar | Room::Contact)),
    }
}

/// What a key says in its room. The key of a bare line is empty, and only the first one of a room is a name.
pub(super) fn field(room: Room, key: &str) -> Option<Field> {
    let organization = organization(key);
    match room {
        Room::Domain => of_domain(key),
        Room::Registrar => match key {
            "name" | "registrar name" | "" => Some(Field::Registrar(2)),
            "registrar" | "authorised registrar" | "authorized registrar" => {
                Some(Field::Registrar(1))
            }
            "whois server" | "whois" => Some(Field::Referral),
            "registration expiration date" => Some(Field::RegistrarExpires),
            _ => organization.then_some(Field::Registrar(3)),
        },
        Room::Holder => match key {
            "name" | "contact" | "" | "holder" | "registrant" | "owner" | "full name" => {
                Some(Field::Holder)
            }
            "contact name" | "attention" | "person" | "responsible" | "first name"
            | "last name" => Some(Field::Person),
            "type" | "registrant type" | "kind" => Some(Field::HolderKind),
            _ if organization => Some(Field::Organization),
            _ => beside(key),
        },
        Room::Contact => match key {
            "name" | "person" | "contact" | "contact name" | "role" | "attention" | "" => {
                Some(Field::Person)
            }
            _ => beside(key),
        },
        Room::Servers => {
            let server = server_words(key)
                || matches!(key, "" | "name" | "host name" | "hostname" | "host" | "dns");
            server.then_some(Field::Server)
        }
        Room::Keys => Some(Field::SigningKey),
    }
}

/// Whether a key names an organisation's name: `org`, `company name`, `organisation english name`.
fn organization(key: &str) -> bool {
    let is = |word: &str| matches!(word, "organization" | "organisation" | "org" | "company");
    key.split(' ').any(is)
        && key
            .split(' ')
            .all(|word| is(word) || matches!(word, "name" | "english"))
}

/// What is said of the domain among what is said of a person: persons do not expire, and some keys name the domain.
fn beside(key: &str) -> Option<Field> {
    of_domain(key).filter(|field| {
        *field == Field::Expires
            || key.starts_with("domain") && matches!(field, Field::Created | Field::Updated)
    })
}

/// Keys of the domain that are known as a whole.
fn whole(key: &str) -> Option<Field> {
    Some(match key {
        "domain" | "domain name" | "domainname" => Field::Domain,
        "registrar"
        | "sponsoring registrar"
        | "authorized agency"
        | "provider"
        | "current registrar"
        | "registrar name" => Field::Registrar(1),
        "registrant" | "owner" | "holder" | "domain holder" | "descr" => Field::Holder,
        "person" | "responsible" => Field::Person,
        "dnssec" | "signed" | "dnssec signed" => Field::Dnssec,
        "ds" | "ds record" | "dsrecord" | "ds rdata" | "dnskey" | "signing key" | "keyset"
        | "dnssec ds data" | "ds data" => Field::SigningKey,
        "paid till" | "renewal date" | "valid until" | "valid till" | "validity" | "renewal" => {
            Field::Expires
        }
        _ => return None,
    })
}

/// Words that may stand around the one that says what a date is.
const AROUND: &str =
    "domain record registry registration date dates time on at last first name of initial";

/// What one word of a key says by how it begins, and the words that may stand around it. The first that fits counts.
const SAID: [(Field, &str, &str); 4] = [
    (Field::Expires, "expir exp", AROUND),
    (Field::Updated, "updat modif change", AROUND),
    (
        Field::Status,
        "status state eppstatus flags domaintype",
        "domain registration epp name",
    ),
    (
        Field::Created,
        "creat registered registration activated commencement",
        AROUND,
    ),
];

fn of_domain(key: &str) -> Option<Field> {
    if let Some(field) = whole(key) {
        return Some(field);
    }
    if organization(key) {
        return Some(Field::Organization);
    }
    if server_words(key) {
        return Some(Field::Server);
    }
    // `key1-tag`, `DS key tag 1`: the numbers of what a delegation is signed with.
    let without_digits: String = key.chars().filter(|c| !c.is_ascii_digit()).collect();
    if without_digits.trim().trim_start_matches("ds ") == "key tag" {
        return Some(Field::SigningKey);
    }
    // One word says what it is, and none of the others that it is something else's.
    let words: Vec<&str> = key.split(' ').collect();
    let said = |stems: &str, others: &str| {
        let is = |word: &&str| stems.split(' ').any(|stem| word.starts_with(stem));
        words.iter().any(is) && words.iter().all(|word| is(word) || listed(others, word))
    };
    SAID.iter()
        .find(|(_, stems, others)| said(stems, others))
        .map(|(field, ..)| *field)
}

/// Whether a key names name servers: `nserver`, `name server 1`, `domain nameservers`, `primary name server`.
pub(super) fn server_words(key: &str) -> bool {
    let squeezed = key.replace("name server", "nameserver");
    let mut servers = 0;
    let all = squeezed.split(' ').all(|word| {
        let stem = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let server = listed("nameserver nameservers nserver nservers ns", stem);
        servers += usize::from(server);
        const BESIDE: &str = "domain primary secondary in listed order hostname dns information";
        server || stem.is_empty() || listed(BESIDE, stem)
    });
    all && servers > 0
}
