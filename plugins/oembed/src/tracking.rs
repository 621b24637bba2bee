//! Query parameters that tell who shared a link, and nothing of the post.
//!
//! What identifies a post is built anew from its path, so this list matters for `originalUrl` alone, and a parameter that it
//! does not know does no harm.

use switchbay_sdk::tracking;
use url::Url;

/// Takes them out of a URL. What stays is as it was written.
pub(crate) fn remove(url: &mut Url, own: &[&str]) {
    let Some(query) = url.query() else { return };
    let kept = tracking::kept_query(query, |name| is_known(name, own));
    url.set_query(kept.as_deref());
}

/// Whether a parameter is one of them, by its name as it is written.
fn is_known(name: &str, own: &[&str]) -> bool {
    let decoded = form_urlencoded::parse(name.as_bytes()).next();
    decoded
        .is_some_and(|(name, _)| tracking::is_tracking(&name) || tracking::matches_any(&name, own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, own: &[&str], expected: Option<&str>) {
        let mut url = Url::parse(&format!("https://x.com/a?{query}")).expect("a URL");
        remove(&mut url, own);
        assert_eq!(url.query(), expected, "{query}");
    }

    #[test]
    fn known_parameters_go_and_others_stay_as_they_were_written() {
        check(
            "utm_source=a&UTM_source=b&b=%20c&fbclid",
            &[],
            Some("UTM_source=b&b=%20c"),
        );
        check("s=20&t=abc", &["s", "t"], None);
        check("s=20&ss=1", &["s"], Some("ss=1"));
        check(
            "__cft__[0]=x&__cft__%5B0%5D=y&a",
            &["__cft__[0]"],
            Some("a"),
        );
        check("hc_ref=1&hc=2", &["hc_*"], Some("hc=2"));
        check("&&", &[], None);
    }
}
