//! Which attributes are passed on, and with which values.
//!
//! An address is read as a browser reads it and written as it was read; it leads to a web page, and for a frame, a script or
//! a picture to a host of the provider's. Names that a page's own scripts would look up (`id`, `name`) are never kept.

use std::borrow::Cow;

use html5gum::StartTag;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use switchbay_sdk::schemars;
use url::Url;

use super::Rules;
use crate::networks::is_of;

/// The longest value, in bytes.
const VALUE_BYTES_MAX: usize = 4096;
/// Words that make code of a value wherever a script puts it.
const CODE: [&str; 3] = ["javascript:", "vbscript:", "data:"];

/// A script that the markup wants, which a page must add by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Script {
    /// Its URL.
    #[schemars(extend("format" = "uri"))]
    pub(crate) src: String,
    /// Present if the provider's markup sets it.
    #[serde(default, rename = "async", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(crate) is_async: Option<bool>,
    /// Present if the provider's markup sets it.
    #[serde(default, rename = "defer", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(crate) is_deferred: Option<bool>,
}

/// The attributes of one tag.
pub(super) struct Values<'t> {
    tag: &'t StartTag<()>,
    rules: &'t Rules,
    pictures: &'t [&'t str],
}

impl<'t> Values<'t> {
    pub(super) fn of(tag: &'t StartTag<()>, rules: &'t Rules, pictures: &'t [&'t str]) -> Self {
        Self {
            tag,
            rules,
            pictures,
        }
    }

    /// Whether an attribute is passed on.
    pub(super) fn has(&self, name: &str) -> bool {
        self.value(&String::from_utf8_lossy(&self.tag.name), name)
            .is_some()
    }

    /// The script that the tag wants, if it is the provider's.
    pub(super) fn script(&self) -> Option<Script> {
        let url = web(&self.said("src")?)
            .filter(|url| self.rules.scripts.iter().any(|known| fits(url, known)))?;
        let flag = |name: &str| self.said(name).map(|_| true);
        Some(Script {
            src: url.into(),
            is_async: flag("async"),
            is_deferred: flag("defer"),
        })
    }

    /// Writes all that are passed on, each with a space before it.
    pub(super) fn write(&self, element: &str, out: &mut String) {
        for name in self.tag.attributes.keys() {
            let name = String::from_utf8_lossy(name);
            if let Some(value) = self.value(element, &name) {
                out.push(' ');
                out.push_str(&name);
                out.push_str("=\"");
                escape(&value, out);
                out.push('"');
            }
        }
        // Whoever opens a link learns nothing of the page, and cannot reach it.
        if element == "a" {
            out.push_str(" rel=\"noopener noreferrer nofollow\"");
        }
    }

    /// The value that an attribute is passed on with.
    fn value(&self, element: &str, name: &str) -> Option<String> {
        let said = self.said(name)?;
        if said.len() > VALUE_BYTES_MAX {
            return None;
        }
        let value = match (element, name) {
            ("a", "href") | ("blockquote" | "q" | "del", "cite") => String::from(web(&said)?),
            ("iframe", "src") => {
                let url = web(&said)?;
                self.rules
                    .frames
                    .iter()
                    .any(|known| url.as_str().starts_with(known))
                    .then(|| url.into())?
            }
            ("img", "src") => {
                let url = web(&said)?;
                is_of(url.host_str()?, self.pictures).then(|| url.into())?
            }
            ("a", "target") => (said.as_ref() == "_blank").then(|| "_blank".to_owned())?,
            ("iframe", "allowfullscreen") => String::new(),
            ("iframe" | "img", "width" | "height") => said
                .bytes()
                .all(|b| b.is_ascii_digit())
                .then(|| said.into_owned())?,
            ("iframe", "scrolling") => {
                matches!(said.as_ref(), "no" | "yes" | "auto").then(|| said.into_owned())?
            }
            (_, "class" | "dir" | "lang" | "title") | ("img", "alt") | ("time", "datetime") => {
                said.into_owned()
            }
            (_, name)
                if self.rules.data.iter().any(|known| name.starts_with(known))
                    && is_plain(name) =>
            {
                said.into_owned()
            }
            _ => return None,
        };
        (!is_code(&value)).then_some(value)
    }

    fn said(&self, name: &str) -> Option<Cow<'t, str>> {
        self.tag
            .attributes
            .get(name.as_bytes())
            .map(|value| String::from_utf8_lossy(value))
    }
}

/// An address of a web page, by https. One without a scheme (`//host/`) is of the page that shows it.
fn web(text: &str) -> Option<Url> {
    let text = text.trim();
    let absolute = if text.starts_with("//") {
        Cow::Owned(format!("https:{text}"))
    } else {
        Cow::Borrowed(text)
    };
    let mut url = Url::parse(&absolute).ok()?;
    if url.scheme() == "http" {
        url.set_scheme("https").ok()?;
    }
    let is_plain = url.scheme() == "https" && url.username().is_empty() && url.password().is_none();
    (is_plain && url.port().is_none()).then_some(url)
}

/// Whether a script's address is a known one, in which a star stands for one segment. Behind it stand settings at most.
fn fits(url: &Url, known: &str) -> bool {
    let Ok(known) = Url::parse(known) else {
        return false;
    };
    let is_setting = |text: Option<&str>| {
        text.is_none_or(|text| {
            text.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"=&._-".contains(&b))
        })
    };
    let mut pairs = url.path().split('/').zip(known.path().split('/'));
    let is_same = url.path().matches('/').count() == known.path().matches('/').count();
    let is_segment = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let fits_star = |(said, known): (&str, &str)| said == known || known == "*" && is_segment(said);
    url.host() == known.host()
        && is_same
        && pairs.all(fits_star)
        && is_setting(url.query())
        && is_setting(url.fragment())
}

fn is_plain(name: &str) -> bool {
    name.bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Whether a value has a word of code in it, once what browsers skip is taken out.
fn is_code(value: &str) -> bool {
    let squeezed: String = value
        .chars()
        .filter(|c| !c.is_whitespace() && !c.is_control())
        .flat_map(char::to_lowercase)
        .collect();
    CODE.iter().any(|word| squeezed.contains(word))
}

/// Writes text so that it is text to every reader, between tags and in quotes.
pub(super) fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // A browser drops it or puts something in its place.
            '\0' => {}
            c => out.push(c),
        }
    }
}
