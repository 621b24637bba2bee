//! Query parameters that tell who shared or clicked a link, but not where it leads.
//!
//! A plugin that compares or shows URLs removes them. Parameters that are missing from the list do no
//! harm.

/// A star at the end matches any ending.
const NAMES: &[&str] = &[
    "utm_*", "mtm_*", "mc_*", "fbclid", "gclid", "dclid", "msclkid", "yclid", "twclid", "_ga",
    "_gl", "spm", "igsh", "igshid",
];

/// Whether the parameter with this decoded name is a tracking parameter.
pub fn is_tracking(name: &str) -> bool {
    matches_any(name, NAMES)
}

/// Whether a name is in the list, in which a star at the end of a name matches any ending.
pub fn matches_any(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_whole_or_by_their_begin() {
        for name in ["utm_source", "utm_", "fbclid", "mc_eid"] {
            assert!(is_tracking(name), "{name}");
        }
        for name in ["UTM_source", "utm", "fbclid2", "id", ""] {
            assert!(!is_tracking(name), "{name}");
        }
    }
}
