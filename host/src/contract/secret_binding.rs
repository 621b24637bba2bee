//! Which secret of the operator's goes where. Holds names alone: the value is read where it is sent.

use http::HeaderName;
use serde::{Deserialize, Serialize};

use super::grants::{AtomError, Grants};
use super::request_headers::may_be_set;

/// The longest name of a variable, a header or a query parameter, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Secrets of one plugin.
pub(crate) const SECRETS_MAX: usize = 16;

/// Which secret goes where, as the operator wrote it. Holds no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenSecret", into = "WrittenSecret")]
pub(crate) struct SecretBinding {
    pub(crate) env: String,
    pub(crate) place: SecretPlace,
    /// As an atom of `http` has it.
    target: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretPlace {
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
    #[error(
        "the secret `{0}` is not a valid variable name: use A-Z, 0-9 and _, at most {NAME_BYTES_MAX} characters"
    )]
    Variable(String),
    #[error("the secret `{env}` must have either `header` or `query`")]
    Place { env: String },
    #[error(
        "the secret `{env}` goes into `{name}`, which is not a header or query parameter that a secret may set"
    )]
    Name { env: String, name: String },
    #[error("the secret `{env}` is for `{target}`, which is not a target on one host: {rule}")]
    Target {
        env: String,
        target: String,
        rule: String,
    },
}

impl TryFrom<WrittenSecret> for SecretBinding {
    type Error = BindingError;

    fn try_from(written: WrittenSecret) -> Result<Self, BindingError> {
        let WrittenSecret {
            env,
            header,
            query,
            target,
        } = written;
        let is_variable = env
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        if !is_variable || env.is_empty() || env.len() > NAME_BYTES_MAX {
            return Err(BindingError::Variable(env));
        }
        let place = match (header, query) {
            (Some(name), None) => match HeaderName::from_bytes(name.as_bytes()) {
                Ok(header) if name.len() <= NAME_BYTES_MAX && may_be_set(&header) => {
                    SecretPlace::Header(header)
                }
                _ => return Err(BindingError::Name { env, name }),
            },
            (None, Some(name)) => {
                if !name.is_empty() && name.len() <= NAME_BYTES_MAX {
                    SecretPlace::Query(name)
                } else {
                    return Err(BindingError::Name { env, name });
                }
            }
            (Some(_), Some(_)) | (None, None) => return Err(BindingError::Place { env }),
        };
        let refused = |rule: &str| BindingError::Target {
            env: env.clone(),
            target: target.clone(),
            rule: rule.to_owned(),
        };
        if target.contains('*') || !target.contains("://") {
            return Err(refused("write a URL such as https://api.example.com/v1/"));
        }
        within(&target).map_err(|error| refused(&error.to_string()))?;
        Ok(Self { env, place, target })
    }
}

impl From<SecretBinding> for WrittenSecret {
    fn from(binding: SecretBinding) -> Self {
        let SecretBinding { env, place, target } = binding;
        let (header, query) = match place {
            SecretPlace::Header(name) => (Some(name.as_str().to_owned()), None),
            SecretPlace::Query(name) => (None, Some(name)),
        };
        Self {
            env,
            header,
            query,
            target,
        }
    }
}

impl SecretBinding {
    /// The requests that it goes with, whatever their method: grants that are asked with GET.
    pub(crate) fn requests(&self) -> Result<Grants, AtomError> {
        within(&self.target)
    }
}

/// The requests that a target covers, whatever their method: grants that are asked with GET.
fn within(target: &str) -> Result<Grants, AtomError> {
    Grants::parse([format!("http:GET {target}")])
}
