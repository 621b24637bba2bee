//! Registry statuses to the names of EPP (RFC 5731, RFC 3915), and the two words for DNSSEC.
//!
//! A list of what may be told, not of what may not: a text that no row knows is left out, because registries put
//! remarks of every kind where statuses stand.

use crate::words::listed;

/// Every name that a result can hold.
const EPP: &str = "\
    ok inactive addPeriod autoRenewPeriod renewPeriod transferPeriod redemptionPeriod pendingCreate \
    pendingDelete pendingRenew pendingRestore pendingTransfer pendingUpdate clientDeleteProhibited \
    clientHold clientRenewProhibited clientTransferProhibited clientUpdateProhibited \
    serverDeleteProhibited serverHold serverRenewProhibited serverTransferProhibited \
    serverUpdateProhibited reserved";

/// What registries write in words of their own, letters alone, by what it means.
const WORDS: &[(&str, &str)] = &[
    (
        "ok",
        "active activated connect connected delegated registered published paidandinzone \
        registereduntilexpirydate inuse granted registeredanddelegated normal",
    ),
    (
        "inactive",
        "notdelegated notinzone paidandnotinzone failed deactivated disabled",
    ),
    (
        "serverTransferProhibited",
        "sponsoringregistrarchangeforbidden locked transferlocked transferprohibited",
    ),
    (
        "serverUpdateProhibited",
        "registrantchangeforbidden updateprohibited",
    ),
    (
        "serverDeleteProhibited",
        "deletionforbidden deleteprohibited",
    ),
    (
        "autoRenewPeriod",
        "expired graceperiod renewalgraceperiod renewalrequired",
    ),
    (
        "pendingDelete",
        "nolongerrequired tobesuspended pendingdeletion tobedeleted deleted",
    ),
    (
        "redemptionPeriod",
        "redemption quarantine inquarantine redemptiongraceperiod redemptionnoprovider",
    ),
    (
        "serverHold",
        "suspended suspendedbyregistry blocked hold onhold",
    ),
    ("serverRenewProhibited", "renewprohibited"),
];

/// What a status says of whether a name is registered at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Anyone may register it.
    Free,
    /// The registry keeps it from being registered.
    Reserved,
}

/// The EPP names in a status as it is written: URLs and what stands in brackets are left out, and one line may hold
/// several statuses between commas.
pub(crate) fn read(text: &str) -> Vec<&'static str> {
    let text = text.split(['(', '[', '<']).next().unwrap_or_default();
    let text = text.split("http").next().unwrap_or_default();
    text.split([',', ';', '|', '/']).filter_map(one).collect()
}

fn one(text: &str) -> Option<&'static str> {
    let word = letters(text);
    let epp = EPP.split(' ').find(|name| name.eq_ignore_ascii_case(&word));
    let own = || WORDS.iter().find(|(_, known)| listed(known, &word));
    epp.or_else(|| own().map(|(name, _)| *name))
}

/// What a status says of a name that nobody has.
pub(crate) fn standing(text: &str) -> Option<Standing> {
    match letters(text).as_str() {
        "free" | "available" | "notregistered" | "unregistered" | "nomatch" | "notfound"
        | "nonexistent" => Some(Standing::Free),
        "reserved" | "notavailable" | "unavailable" | "forbidden" | "unassignable"
        | "prohibited" | "restricted" => Some(Standing::Reserved),
        _ => None,
    }
}

/// `signedDelegation` or `unsigned`, where a text says one of them.
pub(crate) fn dnssec(text: &str) -> Option<&'static str> {
    match letters(text.split([',', '(']).next().unwrap_or_default()).as_str() {
        "yes" | "y" | "signed" | "signeddelegation" | "delegationsigned" | "active" | "on"
        | "true" | "enabled" | "ok" | "secure" => Some("signedDelegation"),
        "no" | "n" | "unsigned" | "unsigneddelegation" | "inactive" | "off" | "false"
        | "disabled" | "none" | "notsigned" | "insecure" | "nodnssec" => Some("unsigned"),
        _ => None,
    }
}

fn letters(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphabetic())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_become_those_of_epp() {
        let rows: [(&str, &[&str]); 11] = [
            (
                "clientTransferProhibited https://icann.org/epp#clientTransferProhibited",
                &["clientTransferProhibited"],
            ),
            ("client transfer prohibited", &["clientTransferProhibited"]),
            ("serverHold (https://www.example.com/)", &["serverHold"]),
            ("active", &["ok"]),
            ("OK", &["ok"]),
            ("REGISTERED, DELEGATED, VERIFIED", &["ok", "ok"]),
            ("Connected (2025/03/31)", &["ok"]),
            ("Registered until expiry date.", &["ok"]),
            ("auto renew period", &["autoRenewPeriod"]),
            ("in quarantine", &["redemptionPeriod"]),
            ("call Jane Doe on +1.2025550100", &[]),
        ];
        for (text, expected) in rows {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_status_may_say_that_nobody_has_the_name() {
        assert_eq!(standing("free"), Some(Standing::Free));
        assert_eq!(standing("AVAILABLE"), Some(Standing::Free));
        assert_eq!(standing("NOT AVAILABLE"), Some(Standing::Reserved));
        assert_eq!(standing("connect"), None);
    }

    #[test]
    fn dnssec_is_one_of_two_words() {
        for (text, expected) in [
            ("signedDelegation", Some("signedDelegation")),
            ("Signed delegation", Some("signedDelegation")),
            ("Y", Some("signedDelegation")),
            ("Unsigned delegation", Some("unsigned")),
            ("no", Some("unsigned")),
            ("미서명", None),
        ] {
            assert_eq!(dnssec(text), expected, "{text}");
        }
    }
}
