//! Whom searches are asked of, as the operator says it in the table `search` of the plugin's `config`.
//!
//! `config = { search = { provider = "searxng", base_url = "https://searx.example.com/" } }` in the manifest. Keys are no
//! settings: the operator binds them as secrets, and the plugin never sees one.

use serde::Deserialize;
use switchbay_sdk::public_url::web_url;
use switchbay_sdk::{config, log};
use url::Url;

use super::trouble::Trouble;
use super::{brave, tavily};
use crate::Format;

/// For all that one search asks, by default and at most, in milliseconds: what is left of the budget is for the answer.
const TIMEOUT_MS: u32 = 20_000;

/// What is meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) provider: Provider,
    pub(super) timeout_ms: u32,
}

/// Whom to ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Provider {
    /// At a URL whose path ends with a slash.
    Searxng {
        base: Url,
    },
    Brave,
    Tavily {
        content: ContentSetting,
    },
}

/// Whether a provider is asked for the content of what it found, and how that is written.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum ContentSetting {
    #[default]
    None,
    Markdown,
    Text,
}

impl ContentSetting {
    pub(super) fn format(self) -> Option<Format> {
        match self {
            Self::None => None,
            Self::Markdown => Some(Format::Markdown),
            Self::Text => Some(Format::Text),
        }
    }
}

/// What was written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSettings {
    provider: Option<Name>,
    base_url: Option<String>,
    content: Option<ContentSetting>,
    timeout_ms: Option<u32>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Name {
    Searxng,
    Brave,
    Tavily,
}

impl Settings {
    /// What holds now.
    ///
    /// # Errors
    /// Nobody is named, or what is written cannot be used; the log says why.
    pub(super) fn read() -> Result<Self, Trouble> {
        let Some(text) = config::get("search") else {
            return Err(Trouble::Unset);
        };
        Self::parse(&text).map_err(|(trouble, why)| {
            log::error(&format!("the search settings cannot be used: {why}"));
            trouble
        })
    }

    /// Reads the table as JSON text, as a plugin gets it.
    fn parse(text: &str) -> Result<Self, (Trouble, String)> {
        let wrong = |setting: &'static str, why: &str| {
            (Trouble::Setting(setting), format!("`{setting}` {why}"))
        };
        let written: WrittenSettings =
            serde_json::from_str(text).map_err(|error| wrong("search", &error.to_string()))?;
        let WrittenSettings {
            provider,
            base_url,
            content,
            timeout_ms,
        } = written;
        let Some(name) = provider else {
            return Err((Trouble::Unset, "`search.provider` is missing".to_owned()));
        };
        let provider = match (name, &base_url, content) {
            (Name::Searxng, Some(base), None) => Provider::Searxng {
                base: base_url_of(base).ok_or_else(|| {
                    wrong(
                        "search.base_url",
                        "must be an http or https URL without credentials, query or fragment",
                    )
                })?,
            },
            (Name::Searxng, None, None) => {
                return Err(wrong("search.base_url", "is missing; SearXNG requires it"));
            }
            (Name::Brave, None, None) => Provider::Brave,
            (Name::Tavily, None, content) => Provider::Tavily {
                content: content.unwrap_or_default(),
            },
            (Name::Brave | Name::Tavily, Some(_), _) => {
                return Err(wrong("search.base_url", "applies only to SearXNG"));
            }
            (Name::Searxng | Name::Brave, _, Some(_)) => {
                return Err(wrong("search.content", "applies only to Tavily"));
            }
        };
        let timeout_ms = timeout_ms.unwrap_or(TIMEOUT_MS);
        if (1..=TIMEOUT_MS).contains(&timeout_ms) {
            Ok(Self {
                provider,
                timeout_ms,
            })
        } else {
            Err(wrong("search.timeout_ms", "must be from 1 to 20000"))
        }
    }
}

fn base_url_of(written: &str) -> Option<Url> {
    let mut url = web_url(written)?;
    let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if !is_plain || url.fragment().is_some() {
        return None;
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Some(url)
}

/// Whether a URL that a caller names, or a page leads to, is a provider's. Such a request would be made with the operator's
/// key, and reach a SearXNG that is nobody else's: it is no page to read.
pub(crate) fn is_provider(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let Some(host) = name_of(&url) else {
        return false;
    };
    let own = config::get("search").and_then(|text| Settings::parse(&text).ok());
    match own.map(|settings| settings.provider) {
        _ if matches!(host, brave::HOST | tavily::HOST) => true,
        Some(Provider::Searxng { base }) => name_of(&base) == Some(host),
        Some(Provider::Brave | Provider::Tavily { .. }) | None => false,
    }
}

/// A URL's host, which a dot at its end makes no other one.
fn name_of(url: &Url) -> Option<&str> {
    url.host_str()
        .map(|host| host.strip_suffix('.').unwrap_or(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(text: &str) -> Provider {
        Settings::parse(text)
            .unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"))
            .provider
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let (trouble, why) = Settings::parse(text).expect_err(text);
        assert!(why.starts_with(expected), "{text}: {why}");
        assert!(
            matches!(trouble, Trouble::Setting(_) | Trouble::Unset),
            "{text}: {trouble:?}"
        );
    }

    #[test]
    fn a_provider_is_named_with_what_it_needs() {
        let searxng = |base: &str| Provider::Searxng {
            base: Url::parse(base).expect("a URL"),
        };
        let at = |base: &str| {
            provider(&format!(
                "{{\"provider\": \"searxng\", \"base_url\": \"{base}\"}}"
            ))
        };
        assert_eq!(at("http://a.example"), searxng("http://a.example/"));
        assert_eq!(
            at("https://a.example/searx"),
            searxng("https://a.example/searx/")
        );
        assert_eq!(provider(r#"{"provider": "brave"}"#), Provider::Brave);
        assert_eq!(
            provider(r#"{"provider": "tavily"}"#),
            Provider::Tavily {
                content: ContentSetting::None
            }
        );
        let text = r#"{"provider": "tavily", "content": "text", "timeout_ms": 9}"#;
        let expected = Settings {
            provider: Provider::Tavily {
                content: ContentSetting::Text,
            },
            timeout_ms: 9,
        };
        assert_eq!(Settings::parse(text).expect("settings"), expected);
    }

    #[test]
    fn what_cannot_be_used_is_told_by_its_setting() {
        refused("{}", "`search.provider` is missing");
        refused(
            r#"{"provider": "google"}"#,
            "`search` unknown variant `google`",
        );
        refused(
            r#"{"provider": "brave", "key": "x"}"#,
            "`search` unknown field `key`",
        );
        refused(r#""brave""#, "`search` invalid type");
        refused(r#"{"provider": "searxng"}"#, "`search.base_url` is missing");
        for base in [
            "a.example",
            "ftp://a.example",
            "http://me@a.example",
            "http://a.example/?q=",
            "http://a.example/#a",
        ] {
            refused(
                &format!("{{\"provider\": \"searxng\", \"base_url\": \"{base}\"}}"),
                "`search.base_url` must be an http",
            );
        }
        refused(
            r#"{"provider": "brave", "base_url": "https://a.example/"}"#,
            "`search.base_url` applies only to SearXNG",
        );
        refused(
            r#"{"provider": "brave", "content": "text"}"#,
            "`search.content` applies only to Tavily",
        );
        refused(
            r#"{"provider": "brave", "timeout_ms": 0}"#,
            "`search.timeout_ms` must be",
        );
        refused(
            r#"{"provider": "brave", "timeout_ms": 20001}"#,
            "`search.timeout_ms` must be",
        );
    }
}
