//! Secrets that the operator binds to destinations. A plugin never holds one.
//!
//! A binding says which variable goes into which header or query name of requests to where. It is added when a request is
//! final, so a plugin can neither read nor move it; a request that sets the name itself is refused, and what comes back is
//! searched for the value. A secret stays with the origin that the plugin asked for.

use std::fmt;

use http::{HeaderMap, HeaderValue};
use url::Url;

use super::policy::{Destination, DestinationUse};
use super::redact;
use super::redact::SecretForms;
use crate::contract::grants::Grants;
use crate::contract::secret_binding::{SecretBinding, SecretPlace};

/// A shorter secret would be found in every answer.
const VALUE_BYTES_MIN: usize = redact::BYTES_MIN;
const VALUE_BYTES_MAX: usize = 4096;

/// A secret that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SecretError {
    #[error(
        "its entry binds the secret `{env}`, which is not set in the environment of this process"
    )]
    Absent { env: String },
    #[error(
        "its entry binds the secret `{env}`, which must be {VALUE_BYTES_MIN} to {VALUE_BYTES_MAX} visible characters"
    )]
    Value { env: String },
}

/// A binding with its value.
pub(crate) struct Secret {
    place: SecretPlace,
    requests: Grants,
    value: String,
    forms: SecretForms,
}

/// Says nothing of the value.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl Secret {
    /// Takes the value of a binding from what the environment says.
    ///
    /// # Errors
    /// The variable is not there, or holds nothing that can be sent.
    pub(crate) fn bind(
        binding: &SecretBinding,
        value: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SecretError> {
        let env = || binding.env.clone();
        let value = value(&binding.env).ok_or_else(|| SecretError::Absent { env: env() })?;
        let is_sendable = (VALUE_BYTES_MIN..=VALUE_BYTES_MAX).contains(&value.len())
            && value.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
            && value.trim() == value;
        let requests = binding.requests().ok().filter(|_| is_sendable);
        let requests = requests.ok_or_else(|| SecretError::Value { env: env() })?;
        Ok(Self {
            place: binding.place.clone(),
            requests,
            forms: SecretForms::of(&value),
            value,
        })
    }

    /// Whether it belongs to a request there.
    pub(super) fn is_for(&self, to: &Destination) -> bool {
        to.permit(DestinationUse::Request { method: "GET" }, &self.requests)
            .is_ok()
    }

    /// Whether the request sets the name that this goes by, to anything but this.
    pub(super) fn is_taken(&self, url: &Url, headers: &HeaderMap) -> bool {
        match &self.place {
            SecretPlace::Header(name) => headers.contains_key(name),
            SecretPlace::Query(name) => url
                .query_pairs()
                .any(|(known, value)| known == *name && value != self.value),
        }
    }

    /// The name that it goes by.
    pub(super) fn name(&self) -> &str {
        match &self.place {
            SecretPlace::Header(name) => name.as_str(),
            SecretPlace::Query(name) => name,
        }
    }

    /// Puts it in.
    pub(super) fn add(&self, url: &mut Url, headers: &mut HeaderMap) {
        match &self.place {
            SecretPlace::Header(name) => {
                if let Ok(mut value) = HeaderValue::from_str(&self.value) {
                    value.set_sensitive(true);
                    headers.insert(name.clone(), value);
                }
            }
            // A redirect of its own server may have it already.
            SecretPlace::Query(name) if !url.query_pairs().any(|(known, _)| known == *name) => {
                url.query_pairs_mut().append_pair(name, &self.value);
            }
            SecretPlace::Query(_) => {}
        }
    }

    /// Whether a text holds it, in any form in which a server may say it again.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.forms.are_in(text.as_bytes())
    }

    /// Takes it out of what a server says.
    pub(super) fn redact(&self, text: Vec<u8>) -> Vec<u8> {
        self.forms.redact(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(toml: &str) -> Result<SecretBinding, String> {
        toml::from_str(toml).map_err(|error| error.message().to_owned())
    }

    fn secret(toml: &str, value: &str) -> Result<Secret, SecretError> {
        Secret::bind(&binding(toml).expect("a binding"), |_| {
            Some(value.to_owned())
        })
    }

    const QUERY: &str =
        "env = \"META_TOKEN\"\nquery = \"access_token\"\nfor = \"https://graph.example.com/v1/\"";

    #[test]
    fn a_binding_is_one_place_at_one_host() {
        let written = serde_json::to_string(&binding(QUERY).expect("a binding")).expect("JSON");
        assert_eq!(
            written,
            r#"{"env":"META_TOKEN","query":"access_token","for":"https://graph.example.com/v1/"}"#
        );
        assert_eq!(
            serde_json::from_str::<SecretBinding>(&written).expect("the same"),
            binding(QUERY).expect("a binding")
        );
        let refused = [
            (
                "env = \"token\"\nquery = \"a\"\nfor = \"https://x.org/\"",
                "the secret `token` is not a valid variable name",
            ),
            (
                "env = \"T\"\nfor = \"https://x.org/\"",
                "the secret `T` must have either",
            ),
            (
                "env = \"T\"\nquery = \"a\"\nheader = \"b\"\nfor = \"https://x.org/\"",
                "the secret `T` must have either",
            ),
            (
                "env = \"T\"\nheader = \"host\"\nfor = \"https://x.org/\"",
                "the secret `T` goes into `host`",
            ),
            (
                "env = \"T\"\nheader = \"a b\"\nfor = \"https://x.org/\"",
                "the secret `T` goes into `a b`",
            ),
            (
                "env = \"T\"\nquery = \"\"\nfor = \"https://x.org/\"",
                "the secret `T` goes into ``",
            ),
            (
                "env = \"T\"\nquery = \"a\"\nfor = \"public\"",
                "the secret `T` is for `public`",
            ),
            (
                "env = \"T\"\nquery = \"a\"\nfor = \"https://*.x.org/\"",
                "the secret `T` is for `https://*.x.org/`",
            ),
            (
                "env = \"T\"\nquery = \"a\"\nfor = \"https://127.0.0.1/\"",
                "the secret `T` is for `https://127.0.0.1/`",
            ),
        ];
        for (toml, expected) in refused {
            let told = binding(toml).expect_err(toml);
            assert!(told.starts_with(expected), "{toml}: {told}");
        }
    }

    #[test]
    fn a_value_must_be_there_and_sendable() {
        assert!(secret(QUERY, "long enough").is_ok());
        for value in [
            "",
            "short",
            "with\nnewline",
            "nicht ascii: ä",
            " space before",
        ] {
            let told = secret(QUERY, value).expect_err(value).to_string();
            assert!(
                told.starts_with("its entry binds the secret `META_TOKEN`, which must be 8"),
                "{told}"
            );
        }
        let absent = Secret::bind(&binding(QUERY).expect("a binding"), |_| None)
            .expect_err("it is not there");
        assert_eq!(
            absent.to_string(),
            "its entry binds the secret `META_TOKEN`, which is not set in the environment of this process"
        );
    }

    #[test]
    fn it_goes_where_it_is_bound_and_nowhere_near() {
        let secret = secret(QUERY, "p&ss/w%rd").expect("a secret");
        let to = |url: &str| Destination::read(url).expect("it is public");
        assert!(secret.is_for(&to("https://graph.example.com/v1/me?fields=id")));
        for near in [
            "https://graph.example.com/v2/",
            "http://graph.example.com/v1/",
            "https://graph.example.com:80/v1/",
            "https://graph.example.com.evil.org/v1/",
            "https://graph.example.com/v1/..%2f..%2fv2",
            "https://93.184.215.14/v1/",
        ] {
            assert!(!secret.is_for(&to(near)), "{near}");
        }
        let (mut url, mut headers) = (
            to("https://graph.example.com/v1/me?a=%20b").url().clone(),
            HeaderMap::new(),
        );
        secret.add(&mut url, &mut headers);
        assert_eq!(
            url.as_str(),
            "https://graph.example.com/v1/me?a=%20b&access_token=p%26ss%2Fw%25rd"
        );
        assert!(headers.is_empty());
        let taken = |url: &str| secret.is_taken(to(url).url(), &HeaderMap::new());
        assert!(taken("https://graph.example.com/v1/?access_token=mine"));
        assert!(taken("https://graph.example.com/v1/?access%5Ftoken"));
        assert!(!taken(
            "https://graph.example.com/v1/?access_tokens=mine#access_token=x"
        ));
    }

    #[test]
    fn what_a_server_says_again_is_taken_out() {
        let secret = secret(QUERY, "p&ss/w%rd").expect("a secret");
        let said =
            b"p&ss/w%rd, p%26ss%2Fw%25rd, p%26ss%2fw%25rd and p&ss\\/w%rd, but not p&ss/w".to_vec();
        let redacted = String::from_utf8(secret.redact(said)).expect("text");
        assert_eq!(
            redacted,
            "[secret], [secret], [secret] and [secret], but not p&ss/w"
        );
        assert!(secret.is_in("x?p%26ss%2Fw%25rd") && !secret.is_in("p&ss"));
        assert!(!format!("{secret:?}").contains("ss/w"));
    }
}
