//! `switchbay:dns/resolver`: a plugin's questions to DNS resolvers, handed to the gate.
//!
//! Translates and counts; whether a question may leave, and what answers it, is `egress`'s to say. Must not know of endpoints
//! or messages.

use std::time::Duration;

use wasmtime::component::{Accessor, HasSelf};

use super::GuestState;
use super::bindings::switchbay::dns::resolver::{self as wire, Host, HostWithStore};
use super::http::admit;
use super::instance::{CallRefused, count_denial, refused_calls};
use crate::egress::{EgressDenial, FetchError, QueryError, Question};

refused_calls! {
    wire::Error => |told| Self::Denied(wire::Denial::NotGranted(told)),
}

impl Host for GuestState {}

impl<T: Send + 'static> HostWithStore<T> for HasSelf<GuestState> {
    async fn query(
        accessor: &Accessor<T, Self>,
        question: wire::Question,
    ) -> Result<Vec<u8>, wire::Error> {
        let admitted = admit(accessor, "dns")?;
        let answer = admitted
            .door()
            .query(&admitted.tenant, from_wire(question))
            .await
            .map_err(refusal);
        if let Err(wire::Error::Denied(_)) = &answer {
            count_denial(accessor);
        }
        answer
    }
}

fn from_wire(question: wire::Question) -> Question {
    let time = |ms| Duration::from_millis(u64::from(ms));
    Question {
        resolver: question.resolver,
        name: question.name,
        record_type: question.record_type,
        timeout: question.timeout_ms.map(time),
    }
}

fn refusal(error: QueryError) -> wire::Error {
    let told = error.to_string();
    match error {
        QueryError::Ungranted => wire::Error::Denied(wire::Denial::NotGranted(told)),
        QueryError::Unknown => wire::Error::Denied(wire::Denial::NotAcceptable(told)),
        QueryError::Invalid(_) => wire::Error::InvalidRequest(told),
        QueryError::Status(_)
        | QueryError::MediaType
        | QueryError::TooLarge
        | QueryError::Mismatch(_) => wire::Error::BadResponse(told),
        QueryError::Fetch(error) => unanswered(error),
    }
}

fn unanswered(error: FetchError) -> wire::Error {
    let told = error.to_string();
    match error {
        FetchError::Denied(EgressDenial::Ungranted { .. }) => {
            wire::Error::Denied(wire::Denial::NotGranted(told))
        }
        FetchError::Denied(EgressDenial::NotPublic(_)) => {
            wire::Error::Denied(wire::Denial::NotPublic(told))
        }
        FetchError::Denied(EgressDenial::Unacceptable(_)) => {
            wire::Error::Denied(wire::Denial::NotAcceptable(told))
        }
        FetchError::Busy | FetchError::Full => wire::Error::Busy,
        FetchError::Unresolved | FetchError::Unreachable => wire::Error::Unreachable,
        FetchError::Late(_) => wire::Error::Late,
        FetchError::BadAnswer(cause) => wire::Error::BadResponse(cause),
        FetchError::Invalid(_) => wire::Error::InvalidRequest(told),
        FetchError::RedirectDenied(_)
        | FetchError::TooLarge(_)
        | FetchError::TooManyRedirects(_) => wire::Error::BadResponse(told),
    }
}
