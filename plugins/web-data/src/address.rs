//! Addresses in a page, made absolute.
//!
//! It must know nothing of what they are used for.

use std::fmt::Write as _;

use switchbay_sdk::public_url::is_web;
use url::Url;

/// Bytes of an address that is written out.
const ADDRESS_BYTES_MAX: usize = 2048;
/// Addresses of a page that are made absolute.
const ADDRESSES_MAX: usize = 20_000;

/// What a page's addresses are relative to: its own, or what its `<base>` names.
pub(crate) fn base(page: &str, declared: Option<&str>) -> Option<Url> {
    let page = Url::parse(page).ok()?;
    let declared = declared
        .and_then(|declared| page.join(declared).ok())
        .filter(is_web);
    Some(declared.unwrap_or(page))
}

/// The addresses of one page while it is written. Making one absolute costs as much as the page's own address is long, so
/// they are counted: content of the greatest length has no room for more.
#[derive(Debug)]
pub(crate) struct Addresses<'a> {
    base: Option<&'a Url>,
    left: usize,
}

impl<'a> Addresses<'a> {
    /// Addresses of a page that are relative to `base`.
    pub(crate) fn new(base: Option<&'a Url>) -> Self {
        Self {
            base,
            left: ADDRESSES_MAX,
        }
    }

    /// Where a link leads, as [`link`] has it.
    pub(crate) fn link(&mut self, written: &str) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        link(self.base, written)
    }

    /// Where a picture is, as [`picture`] has it.
    pub(crate) fn picture<'b>(
        &mut self,
        attribute: impl Fn(&str) -> Option<&'b str>,
    ) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        picture(self.base, attribute)
    }
}

/// Where a link leads: http, https or mail, without what would be markup.
fn link(base: Option<&Url>, written: &str) -> Option<String> {
    let url = resolve(base, written).filter(|url| is_web(url) || url.scheme() == "mailto")?;
    Some(plain(&url))
}

/// Where an image is: http or https, so no data URI.
pub(crate) fn image(base: Option<&Url>, written: &str) -> Option<String> {
    resolve(base, written).filter(is_web).map(|url| plain(&url))
}

/// Where the picture is that a reader sees, by the attributes of its element: scripts put it in place of an empty one.
fn picture<'a>(base: Option<&Url>, attribute: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let lazy = [
        "data-src",
        "data-lazy-src",
        "data-original",
        "data-srcset",
        "srcset",
        "src",
    ];
    lazy.into_iter().find_map(|name| {
        let written = attribute(name)?;
        let written = if name.ends_with("srcset") {
            written.split_whitespace().next()?.trim_end_matches(',')
        } else {
            written
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

/// As Markdown and HTML take it without an escape. What a URL may hold depends on its scheme and on where in it: a path of
/// `mailto` may have spaces and `<`, a query a backtick, which would begin code.
fn plain(url: &Url) -> String {
    let mut plain = String::with_capacity(url.as_str().len());
    for c in url.as_str().chars() {
        match c {
            ' ' | '"' | '<' | '>' | '(' | ')' | '\\' | '`' | '|' => {
                let _ = write!(plain, "%{:02X}", u32::from(c));
            }
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_absolute_or_are_left_out() {
        let base = base("https://example.com/a/b?c", Some("../d/"));
        let link = |written| link(base.as_ref(), written);
        assert_eq!(
            link("e f(1)"),
            Some("https://example.com/d/e%20f%281%29".to_owned())
        );
        assert_eq!(
            link("//other.example/x"),
            Some("https://other.example/x".to_owned())
        );
        assert_eq!(
            link("mailto:me@example.com"),
            Some("mailto:me@example.com".to_owned())
        );
        assert_eq!(
            link("mailto:\"a b\"<i>@example.com?subject=`x`\\"),
            Some("mailto:%22a%20b%22%3Ci%3E@example.com?subject=%60x%60%5C".to_owned())
        );
        assert_eq!(
            link("?a=`b`&c=[d]"),
            Some("https://example.com/d/?a=%60b%60&c=[d]".to_owned())
        );
        assert_eq!(
            link("#part"),
            Some("https://example.com/d/#part".to_owned())
        );
        for written in [
            "javascript:alert(1)",
            "data:text/html,hi",
            " ",
            "https://",
            "vbscript:x",
        ] {
            assert_eq!(link(written), None, "{written}");
        }
        assert_eq!(image(base.as_ref(), "data:image/png;base64,AA"), None);
        assert_eq!(image(base.as_ref(), "mailto:me@example.com"), None);
    }
}
