//! Query parameters that tell who shared a link, and nothing of the post.
//!
//! What identifies a post is built anew from its path, so this list matters for `originalUrl` alone, and a parameter that it
//! does not know does no harm.

use switchbay_sdk::tracking;
use url::Url;

/// Takes them out of a URL. What stays is as it was written.
pub(crate) fn remove(url: &mut Url, own: &[&str]) {
    let Some(query) = url.query() else { return };
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| !pair.is_empty() && !is_known(pair, own))
        .collect();
    let kept = kept.join("&");
    url.set_query((!kept.is_empty()).then_some(&kept));
}

fn is_known(pair: &str, own: &[&str]) -> bool {
    let Some((name, _)) = form_urlencoded::parse(pair.as_bytes()).next() else {
        return false;
    };
    tracking::is_tracking(&name) || tracking::matches_any(&name, own)
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
