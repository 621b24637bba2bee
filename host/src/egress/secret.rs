//! Secrets that the operator binds to destinations. A plugin never holds one.
//!
//! A binding says which variable goes into which header or query name of requests to where. It is added when a request is
//! final, so a plugin can neither read nor move it; a request that sets the name itself is refused, and what comes back is
//! searched for the value. A secret stays with the origin that the plugin asked for.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use url::Url;

use super::message;
use super::policy::{Destination, Way};
use super::redact::{self, Forms};
use crate::registry::grants::Grants;

/// A shorter secret would be found in every answer.
const VALUE_BYTES_MIN: usize = redact::BYTES_MIN;
const VALUE_BYTES_MAX: usize = 4096;
/// The longest name of a variable, a header or a query parameter, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Secrets of one plugin.
pub(crate) const SECRETS_MAX: usize = 16;

/// Which secret goes where, as the operator wrote it. Holds no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenSecret", into = "WrittenSecret")]
pub(crate) struct Binding {
    env: String,
    place: SecretPlace,
    /// As an atom of `http` has it.
    target: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SecretPlace {
    Header(HeaderName),
    Query(String),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSecret {
    env: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    header: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    #[serde(rename = "for")]
    target: String,
}

/// A binding that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BindingError {
    #[error("the secret `{0}` is no name of a variable: A-Z, 0-9 and _, at most {NAME_BYTES_MAX}")]
    Variable(String),
    #[error("the secret `{env}` must have either `header` or `query`")]
    Place { env: String },
    #[error(
        "the secret `{env}` goes into `{name}`, which is no name of a header or a query parameter that it may have"
    )]
    Name { env: String, name: String },
    #[error("the secret `{env}` is for `{target}`, which is no target of one host: {rule}")]
    Target { env: String, target: String, rule: String },
}

/// A secret that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("its entry binds the secret `{env}`, which is no variable of this process")]
    Absent { env: String },
    #[error(
        "its entry binds the secret `{env}`, which must be {VALUE_BYTES_MIN} to {VALUE_BYTES_MAX} visible characters"
    )]
    Value { env: String },
}

impl TryFrom<WrittenSecret> for Binding {
    type Error = BindingError;

    fn try_from(written: WrittenSecret) -> Result<Self, BindingError> {
        let WrittenSecret { env, header, query, target } = written;
        let is_variable = env.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        if !is_variable || env.is_empty() || env.len() > NAME_BYTES_MAX {
            return Err(BindingError::Variable(env));
        }
        let place = match (header, query) {
            (Some(name), None) => match HeaderName::from_bytes(name.as_bytes()) {
                Ok(header) if name.len() <= NAME_BYTES_MAX && message::may_be_set(&header) => {
                    SecretPlace::Header(header)
                }
                _ => return Err(BindingError::Name { env, name }),
            },
            (None, Some(name)) if !name.is_empty() && name.len() <= NAME_BYTES_MAX => SecretPlace::Query(name),
            (None, Some(name)) => return Err(BindingError::Name { env, name }),
            (Some(_), Some(_)) | (None, None) => return Err(BindingError::Place { env }),
        };
        let refused =
            |rule: &str| BindingError::Target { env: env.clone(), target: target.clone(), rule: rule.to_owned() };
        if target.contains('*') || !target.contains("://") {
            return Err(refused("write a URL such as https://api.example.com/v1/"));
        }
        within(&target).map_err(|error| refused(&error.to_string()))?;
        Ok(Self { env, place, target })
    }
}

impl From<Binding> for WrittenSecret {
    fn from(binding: Binding) -> Self {
        let Binding { env, place, target } = binding;
        let (header, query) = match place {
            SecretPlace::Header(name) => (Some(name.as_str().to_owned()), None),
            SecretPlace::Query(name) => (None, Some(name)),
        };
        Self { env, header, query, target }
    }
}

/// The requests that a target covers, whatever their method: grants that are asked with GET.
fn within(target: &str) -> Result<Grants, crate::registry::grants::AtomError> {
    Grants::parse([format!("http:GET {target}")])
}

/// A binding with its value.
pub(crate) struct Secret {
    place: SecretPlace,
    requests: Grants,
    value: String,
    forms: Forms,
}

/// Says nothing of the value.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Secret {
    /// Takes the value of a binding from what the environment says.
    ///
    /// # Errors
    /// The variable is not there, or holds nothing that can be sent.
    pub(crate) fn bind(binding: &Binding, value: impl Fn(&str) -> Option<String>) -> Result<Self, SecretError> {
        let env = || binding.env.clone();
        let value = value(&binding.env).ok_or_else(|| SecretError::Absent { env: env() })?;
        let is_sendable = (VALUE_BYTES_MIN..=VALUE_BYTES_MAX).contains(&value.len())
            && value.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
            && value.trim() == value;
        let requests = within(&binding.target).ok().filter(|_| is_sendable);
        let requests = requests.ok_or_else(|| SecretError::Value { env: env() })?;
        Ok(Self { place: binding.place.clone(), requests, forms: Forms::of(&value), value })
    }

    /// Whether it belongs to a request there.
    pub(super) fn is_for(&self, to: &Destination) -> bool {
        to.permit(Way::Request { method: "GET" }, &self.requests).is_ok()
    }

    /// Whether the request sets the name that this goes by, to anything but this.
    pub(super) fn is_taken(&self, url: &Url, headers: &HeaderMap) -> bool {
        match &self.place {
            SecretPlace::Header(name) => headers.contains_key(name),
            SecretPlace::Query(name) => url.query_pairs().any(|(known, value)| known == *name && value != self.value),
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

    fn binding(toml: &str) -> Result<Binding, String> {
        toml::from_str(toml).map_err(|error| error.message().to_owned())
    }

    fn secret(toml: &str, value: &str) -> Result<Secret, SecretError> {
        Secret::bind(&binding(toml).expect("a binding"), |_| Some(value.to_owned()))
    }

    const QUERY: &str = "env = \"META_TOKEN\"\nquery = \"access_token\"\nfor = \"https://graph.example.com/v1/\"";

    #[test]
    fn a_binding_is_one_place_at_one_host() {
        let written = serde_json::to_string(&binding(QUERY).expect("a binding")).expect("JSON");
        assert_eq!(written, r#"{"env":"META_TOKEN","query":"access_token","for":"https://graph.example.com/v1/"}"#);
        assert_eq!(serde_json::from_str::<Binding>(&written).expect("the same"), binding(QUERY).expect("a binding"));
        let refused = [
            ("env = \"token\"\nquery = \"a\"\nfor = \"https://x.org/\"", "the secret `token` is no name of a variable"),
            ("env = \"T\"\nfor = \"https://x.org/\"", "the secret `T` must have either"),
            ("env = \"T\"\nquery = \"a\"\nheader = \"b\"\nfor = \"https://x.org/\"", "the secret `T` must have either"),
            ("env = \"T\"\nheader = \"host\"\nfor = \"https://x.org/\"", "the secret `T` goes into `host`"),
            ("env = \"T\"\nheader = \"a b\"\nfor = \"https://x.org/\"", "the secret `T` goes into `a b`"),
            ("env = \"T\"\nquery = \"\"\nfor = \"https://x.org/\"", "the secret `T` goes into ``"),
            ("env = \"T\"\nquery = \"a\"\nfor = \"public\"", "the secret `T` is for `public`"),
            ("env = \"T\"\nquery = \"a\"\nfor = \"https://*.x.org/\"", "the secret `T` is for `https://*.x.org/`"),
            ("env = \"T\"\nquery = \"a\"\nfor = \"https://127.0.0.1/\"", "the secret `T` is for `https://127.0.0.1/`"),
        ];
        for (toml, expected) in refused {
            let told = binding(toml).expect_err(toml);
            assert!(told.starts_with(expected), "{toml}: {told}");
        }
    }

    #[test]
    fn a_value_must_be_there_and_sendable() {
        assert!(secret(QUERY, "long enough").is_ok());
        for value in ["", "short", "with\nnewline", "nicht ascii: ä", " space before"] {
            let told = secret(QUERY, value).expect_err(value).to_string();
            assert!(told.starts_with("its entry binds the secret `META_TOKEN`, which must be 8"), "{told}");
        }
        let absent = Secret::bind(&binding(QUERY).expect("a binding"), |_| None).expect_err("it is not there");
        assert_eq!(absent.to_string(), "its entry binds the secret `META_TOKEN`, which is no variable of this process");
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
        let (mut url, mut headers) = (to("https://graph.example.com/v1/me?a=%20b").url().clone(), HeaderMap::new());
        secret.add(&mut url, &mut headers);
        assert_eq!(url.as_str(), "https://graph.example.com/v1/me?a=%20b&access_token=p%26ss%2Fw%25rd");
        assert!(headers.is_empty());
        let taken = |url: &str| secret.is_taken(to(url).url(), &HeaderMap::new());
        assert!(taken("https://graph.example.com/v1/?access_token=mine"));
        assert!(taken("https://graph.example.com/v1/?access%5Ftoken"));
        assert!(!taken("https://graph.example.com/v1/?access_tokens=mine#access_token=x"));
    }

    #[test]
    fn what_a_server_says_again_is_taken_out() {
        let secret = secret(QUERY, "p&ss/w%rd").expect("a secret");
        let said = b"p&ss/w%rd, p%26ss%2Fw%25rd, p%26ss%2fw%25rd and p&ss\\/w%rd, but not p&ss/w".to_vec();
        let redacted = String::from_utf8(secret.redact(said)).expect("text");
        assert_eq!(redacted, "[secret], [secret], [secret] and [secret], but not p&ss/w");
        assert!(secret.is_in("x?p%26ss%2Fw%25rd") && !secret.is_in("p&ss"));
        assert!(!format!("{secret:?}").contains("ss/w"));
    }
}
