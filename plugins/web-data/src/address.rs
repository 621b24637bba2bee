//! Addresses in a page, made absolute.
//!
//! It must know nothing of what they are used for.

use url::Url;

/// Bytes of an address that is written out.
const ADDRESS_BYTES_MAX: usize = 2048;

/// What a page's addresses are relative to: its own, or what its `<base>` names.
pub(crate) fn base(page: &str, declared: Option<&str>) -> Option<Url> {
    let page = Url::parse(page).ok()?;
    let declared = declared.and_then(|declared| page.join(declared).ok()).filter(is_web);
    Some(declared.unwrap_or(page))
}

/// Where a link leads: http, https or mail, without white space or parentheses.
pub(crate) fn link(base: Option<&Url>, written: &str) -> Option<String> {
    let url = resolve(base, written).filter(|url| is_web(url) || url.scheme() == "mailto")?;
    Some(plain(&url))
}

/// Where an image is: http or https, so no data URI.
pub(crate) fn image(base: Option<&Url>, written: &str) -> Option<String> {
    resolve(base, written).filter(is_web).map(|url| plain(&url))
}

/// Where the picture is that a reader sees, by the attributes of its element: scripts put it in place of an empty one.
pub(crate) fn picture<'a>(base: Option<&Url>, attribute: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let lazy = ["data-src", "data-lazy-src", "data-original", "data-srcset", "srcset", "src"];
    lazy.into_iter().find_map(|name| {
        let written = attribute(name)?;
        let written = match name.ends_with("srcset") {
            true => written.split_whitespace().next()?.trim_end_matches(','),
            false => written,
        };
        image(base, written)
    })
}

fn resolve(base: Option<&Url>, written: &str) -> Option<Url> {
    let written = written.trim();
    if written.is_empty() || written.len() > ADDRESS_BYTES_MAX {
        return None;
    }
    let url = match base {
        Some(base) => base.join(written).ok()?,
        None => Url::parse(written).ok()?,
    };
    (url.as_str().len() <= ADDRESS_BYTES_MAX).then_some(url)
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// As Markdown and HTML take it without an escape.
fn plain(url: &Url) -> String {
    url.as_str().replace('(', "%28").replace(')', "%29").replace('|', "%7C").replace('\\', "%5C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_absolute_or_are_left_out() {
        let base = base("https://example.com/a/b?c", Some("../d/"));
        let link = |written| link(base.as_ref(), written);
        assert_eq!(link("e f(1)"), Some("https://example.com/d/e%20f%281%29".to_owned()));
        assert_eq!(link("//other.example/x"), Some("https://other.example/x".to_owned()));
        assert_eq!(link("mailto:me@example.com"), Some("mailto:me@example.com".to_owned()));
        assert_eq!(link("#part"), Some("https://example.com/d/#part".to_owned()));
        for written in ["javascript:alert(1)", "data:text/html,hi", " ", "https://", "vbscript:x"] {
            assert_eq!(link(written), None, "{written}");
        }
        assert_eq!(image(base.as_ref(), "data:image/png;base64,AA"), None);
        assert_eq!(image(base.as_ref(), "mailto:me@example.com"), None);
    }
}
