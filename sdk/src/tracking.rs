//! Query parameters that tell who shared or clicked a link, and nothing of what it leads to.
//!
//! A plugin that compares or shows addresses leaves them out. One that the list does not know does no harm.

/// A star at the end stands for any end.
const NAMES: &[&str] = &[
    "utm_*", "mtm_*", "mc_*", "fbclid", "gclid", "dclid", "msclkid", "yclid", "twclid", "_ga",
    "_gl", "spm", "igsh", "igshid",
];

/// Whether the parameter of this name, decoded, is one of them.
pub fn is_tracking(name: &str) -> bool {
    matches_any(name, NAMES)
}

/// Whether a name is one of these, in which a star at the end stands for any end.
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
