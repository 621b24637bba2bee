//! Types of records: their names, their numbers, and what the data of each is made of.
//!
//! This file is data; `rdata` reads by it. A type that is not here is shown as RFC 3597 says.

use Field::{
    Address4, Address6, Base64, CaaTag, CaaValue, Domain, Hex, Params, Text, Texts, U8, U16, U32,
};

/// A type of record.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) code: u16,
    pub(crate) name: &'static str,
    /// The parts of its data, in their order on the wire.
    pub(crate) fields: &'static [Field],
}

/// A part of a record's data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field {
    U8,
    U16,
    U32,
    Address4,
    Address6,
    Domain,
    /// One character-string.
    Text,
    /// Character-strings up to the end, one at least.
    Texts,
    /// A length and so many letters and digits.
    CaaTag,
    /// Text up to the end.
    CaaValue,
    /// Bytes up to the end, in hexadecimal digits.
    Hex,
    /// Bytes up to the end, in Base64.
    Base64,
    /// Service parameters up to the end (RFC 9460).
    Params,
}

/// What a lookup asks for, in the order in which everything is published.
pub(crate) static ASKED: [Kind; 16] = [
    kind(1, "A", &[Address4]),
    kind(28, "AAAA", &[Address6]),
    kind(5, "CNAME", &[Domain]),
    kind(15, "MX", &[U16, Domain]),
    kind(2, "NS", &[Domain]),
    kind(12, "PTR", &[Domain]),
    kind(33, "SRV", &[U16, U16, U16, Domain]),
    kind(6, "SOA", &[Domain, Domain, U32, U32, U32, U32, U32]),
    kind(16, "TXT", &[Texts]),
    kind(257, "CAA", &[U8, CaaTag, CaaValue]),
    kind(43, "DS", &[U16, U8, U8, Hex]),
    kind(48, "DNSKEY", &[U16, U8, U8, Base64]),
    kind(52, "TLSA", &[U8, U8, U8, Hex]),
    kind(35, "NAPTR", &[U16, U16, Text, Text, Text, Domain]),
    kind(65, "HTTPS", &[U16, Domain, Params]),
    kind(64, "SVCB", &[U16, Domain, Params]),
];

/// What else an answer may hold that is worth a name: a DNAME stands before the CNAME that it causes.
static ALSO: [Kind; 1] = [kind(39, "DNAME", &[Domain])];

const fn kind(code: u16, name: &'static str, fields: &'static [Field]) -> Kind {
    Kind { code, name, fields }
}

/// The row of a type, if it has one.
pub(crate) fn of(code: u16) -> Option<&'static Kind> {
    ASKED.iter().chain(&ALSO).find(|kind| kind.code == code)
}

/// A type's name, by RFC 3597 where it has no row.
pub(crate) fn name(code: u16) -> String {
    of(code).map_or_else(|| format!("TYPE{code}"), |kind| kind.name.to_owned())
}

/// Where a type stands among the published: the asked ones in their order, then the others by number.
pub(crate) fn rank(code: u16) -> usize {
    ASKED
        .iter()
        .position(|kind| kind.code == code)
        .unwrap_or(ASKED.len() + usize::from(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_called_by_its_name_or_its_number() {
        assert_eq!(
            (name(1), name(257), name(39)),
            ("A".to_owned(), "CAA".to_owned(), "DNAME".to_owned())
        );
        assert_eq!(
            (name(46), name(65535)),
            ("TYPE46".to_owned(), "TYPE65535".to_owned())
        );
    }

    #[test]
    fn the_asked_types_stand_first_and_in_their_order() {
        let ranks: Vec<usize> = ASKED.iter().map(|kind| rank(kind.code)).collect();
        assert_eq!(ranks, (0..16).collect::<Vec<_>>());
        assert!(rank(64) < rank(0) && rank(39) < rank(46));
    }
}
