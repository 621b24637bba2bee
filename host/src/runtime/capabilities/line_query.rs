//! `switchbay:line-query/client`: a plugin's queries of one line, handed to the gate.
//!
//! Translates and counts; whether a query may leave is `egress`'s to say. Must not know of addresses or connections.

use std::time::Duration;

use wasmtime::component::{Accessor, HasSelf};

use super::GuestState;
use super::bindings::switchbay::line_query::client::{self as wire, Host, HostWithStore};
use super::http::admit;
use super::instance::{CallRefused, count_denial, refused_calls};
use crate::egress::{EgressDenial, FetchError, LineQuery};

refused_calls! {
    wire::Error => |told| Self::Denied(wire::Denial::NotGranted(told)),
}

impl Host for GuestState {}

impl<T: Send + 'static> HostWithStore<T> for HasSelf<GuestState> {
    async fn query(
        accessor: &Accessor<T, Self>,
        request: wire::Request,
    ) -> Result<Vec<u8>, wire::Error> {
        let admitted = admit(accessor, "line-query")?;
        let answer = admitted
            .door()
            .query_line(&admitted.tenant, from_wire(request))
            .await;
        if let Err(FetchError::Denied(_)) = &answer {
            count_denial(accessor);
        }
        answer.map_err(refusal)
    }
}

fn from_wire(request: wire::Request) -> LineQuery {
    let time = |ms: Option<u32>| ms.map(|ms| Duration::from_millis(u64::from(ms)));
    let bytes = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
    LineQuery {
        host: request.host,
        port: request.port,
        line: request.line,
        response_bytes: request.response_bytes.map(bytes),
        total: time(request.total_ms),
        idle: time(request.idle_ms),
    }
}

fn refusal(error: FetchError) -> wire::Error {
    match error {
        FetchError::Denied(denial) | FetchError::RedirectDenied(denial) => {
            wire::Error::Denied(denied(denial))
        }
        FetchError::Invalid(rule) => wire::Error::InvalidRequest(format!("the request {rule}")),
        FetchError::Busy | FetchError::Full => wire::Error::Busy,
        FetchError::Unresolved => wire::Error::Unresolved,
        FetchError::Unreachable => wire::Error::Unreachable,
        FetchError::Late(_) => wire::Error::Late,
        FetchError::TooLarge(_) => wire::Error::TooLarge,
        FetchError::BadAnswer(_) | FetchError::TooManyRedirects(_) => {
            wire::Error::Broken(error.to_string())
        }
    }
}

fn denied(denial: EgressDenial) -> wire::Denial {
    match denial {
        EgressDenial::Ungranted { .. } => wire::Denial::NotGranted(denial.to_string()),
        EgressDenial::NotPublic(_) => wire::Denial::NotPublic(denial.to_string()),
        EgressDenial::Unacceptable(form) => {
            wire::Denial::NotAcceptable(format!("the request {form}"))
        }
    }
}
