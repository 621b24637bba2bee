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

/// A query without the parameters that `drops` takes out by their names as they are written, and without empty ones; the
/// others stay as they were written. `None` if nothing stays.
pub fn kept_query(query: &str, drops: impl Fn(&str) -> bool) -> Option<String> {
    let is_kept = |pair: &&str| {
        let (name, _) = pair.split_once('=').unwrap_or((pair, ""));
        !pair.is_empty() && !drops(name)
    };
    let kept: Vec<&str> = query.split('&').filter(is_kept).collect();
    (!kept.is_empty()).then(|| kept.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_go_by_their_names_and_others_stay_as_they_were_written() {
        let kept = |query| kept_query(query, is_tracking);
        let query = "utm_source=a=b&UTM_source=b&&b=%20c&fbclid&=x";
        assert_eq!(kept(query).as_deref(), Some("UTM_source=b&b=%20c&=x"));
        for query in ["", "&&", "gclid", "gclid=1&utm_a=2"] {
            assert_eq!(kept(query), None, "{query}");
        }
    }

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
