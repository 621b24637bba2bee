//! What an operation may refuse a call with: the host's codes that can come on it, and its own.
//!
//! One list for the OpenAPI document and the developer guide, so that they cannot disagree. Knows nothing of how either is
//! written.

use http::StatusCode;

use crate::contract::error::Code;
use crate::contract::operation::{Consumed, IdempotencySource, Operation};

/// A code, with everything that it is said to mean here.
pub(crate) struct DocumentedRefusal<'o> {
    pub(crate) status: StatusCode,
    pub(crate) code: &'o str,
    pub(crate) when: Vec<&'o str>,
    /// Whether the operation declares it.
    pub(crate) is_declared: bool,
}

impl DocumentedRefusal<'_> {
    /// Whether it may come of a call that was admitted, so that the caller's limits are told with it.
    pub(crate) fn is_metered(&self) -> bool {
        let before = [
            Code::Unauthorized,
            Code::Forbidden,
            Code::NotFound,
            Code::MethodNotAllowed,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
        ];
        self.is_declared || !before.iter().any(|code| code.name() == self.code)
    }

    /// Whether it may say when to try again.
    pub(crate) fn may_tell_when(&self) -> bool {
        let waits = [
            Code::RateLimited.status(),
            Code::ServiceUnavailable.status(),
        ];
        waits.contains(&self.status) || (self.is_declared && self.status.is_server_error())
    }
}

/// The codes of every operation.
pub(crate) const COMMON: [Code; 9] = [
    Code::ValidationError,
    Code::Unauthorized,
    Code::Forbidden,
    Code::RequestTimeout,
    Code::PayloadTooLarge,
    Code::UnsupportedMediaType,
    Code::RateLimited,
    Code::InternalError,
    Code::ServiceUnavailable,
];

/// Those that only some operations' terms let come.
pub(crate) const OF_TERMS: [Code; 6] = [
    Code::UsageReservationConflict,
    Code::UsageReservationExpired,
    Code::MonthlyQuotaExceeded,
    Code::ApiCreditsExceeded,
    Code::UsageConcurrencyExceeded,
    Code::UpstreamTimeout,
];

/// The host's codes that can come on this operation beside the common ones.
pub(crate) fn of_terms(operation: &Operation) -> Vec<Code> {
    let terms = &operation.terms;
    let (by_key, pays) = (
        terms.idempotency == IdempotencySource::Key,
        terms.consumes(Consumed::Credits),
    );
    let is_late = operation.on_deadline.code == Code::UpstreamTimeout.name();
    let come = [
        by_key,
        by_key,
        terms.consumes(Consumed::Month),
        pays,
        pays || by_key,
        is_late,
    ];
    OF_TERMS
        .into_iter()
        .zip(come)
        .filter(|(_, comes)| *comes)
        .map(|(code, _)| code)
        .collect()
}

/// All of an operation's, by status, each code once.
pub(crate) fn of(operation: &Operation) -> Vec<DocumentedRefusal<'_>> {
    let mut refused: Vec<DocumentedRefusal<'_>> = Vec::new();
    for error in &operation.errors {
        let when = vec![error.when.as_str()];
        refused.push(DocumentedRefusal {
            status: error.status,
            code: &error.code,
            when,
            is_declared: true,
        });
    }
    for code in COMMON.into_iter().chain(of_terms(operation)) {
        match refused.iter_mut().find(|known| known.code == code.name()) {
            // What the operation says of a missed deadline says it all.
            Some(_) if code == Code::UpstreamTimeout => {}
            Some(known) => known.when.insert(0, code.when()),
            None => {
                let when = vec![code.when()];
                refused.push(DocumentedRefusal {
                    status: code.status(),
                    code: code.name(),
                    when,
                    is_declared: false,
                });
            }
        }
    }
    refused.sort_by_key(|one| (one.status.as_u16(), one.is_declared));
    refused
}
