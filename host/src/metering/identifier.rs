//! The name that a caller gives to one call, so that it is not paid for twice.

use http::HeaderMap;

use crate::contract::error::Refusal;

/// The header that names one call of a self-service key (docs/api.md, "Repeating a call").
pub(crate) const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

const IDENTIFIER_BYTES_MAX: usize = 80;

/// What a caller calls its operation by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Identifier {
    Absent,
    Given(String),
    /// Not of the pattern, or given in more than one way.
    Unusable,
}

impl Identifier {
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
        let is_name = |text: &&str| {
            (1..=IDENTIFIER_BYTES_MAX).contains(&text.len())
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        };
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => value
                .to_str()
                .ok()
                .filter(is_name)
                .map_or(Self::Unusable, |text| Self::Given(text.to_owned())),
            (Some(_), Some(_)) => Self::Unusable,
        }
    }

    /// Refuses one that cannot be used.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Absent | Self::Given(_) => Ok(()),
            Self::Unusable => Err(Refusal::invalid(
                Some(IDEMPOTENCY_KEY),
                "must be 1 to 80 characters of A-Z, a-z, 0-9, _ and -",
            )),
        }
    }

    pub(crate) fn given(&self) -> Option<&str> {
        match self {
            Self::Given(text) => Some(text),
            Self::Absent | Self::Unusable => None,
        }
    }
}
