//! What the value of a `Content-Type` says, whoever sent it. Pure.

/// Whether it says this type; parameters such as a charset do not matter.
pub(crate) fn is(value: &str, essence: &str) -> bool {
    value
        .split(';')
        .next()
        .is_some_and(|said| said.trim().eq_ignore_ascii_case(essence))
}

#[cfg(test)]
mod tests {
    use super::is;

    #[test]
    fn case_space_and_parameters_do_not_matter() {
        for same in [
            "application/json",
            "Application/JSON",
            " application/json ; charset=utf-8",
            "application/json;",
        ] {
            assert!(is(same, "application/json"), "{same}");
        }
        for other in [
            "",
            "application/jsonp",
            "text/json",
            "application",
            "charset=utf-8; application/json",
        ] {
            assert!(!is(other, "application/json"), "{other}");
        }
    }
}
