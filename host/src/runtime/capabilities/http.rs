//! `switchbay:http/client`: a plugin's requests, handed to the gate.
//!
//! Translates and counts; whether a request may leave is `egress`'s to say. Must not know of addresses or connections.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::{Accessor, HasSelf};

use super::bindings::switchbay::http::client::{self as wire, Host, HostWithStore};
use super::instance::{CallRefused, count_denial, refused_calls};
use super::{GrantedCapabilities, GuestState, LendingOrder, OnBehalf};
use crate::contract::tenant::Tenant;
use crate::egress::{
    Caps, EgressClient, EgressDenial, FetchError, Late, PluginRequest, Response, SizeExcess,
};
use crate::runtime::in_flight::ActPlace;

/// The interface in atoms.
const ATOM: &str = "http";
/// Requests and questions to resolvers of one call under way at once; the next is refused, because each holds its body here.
const IN_FLIGHT_MAX: usize = 32;

/// The way out, for whatever goes through the gate.
pub(super) fn lend(order: &mut LendingOrder<'_>) -> Option<EgressClient> {
    let secrets = std::mem::take(&mut order.secrets);
    let (egress, rights) = (&order.runtime.lendable.egress, order.rights.clone());
    Some(egress.door(order.plugin, order.number, rights, secrets))
}

refused_calls! {
    wire::Error => |told| Self::Denied(wire::Denial::NotGranted(told)),
}

/// The way out for one request, and its place among those of one call.
pub(super) struct AdmittedRequest {
    lent: Arc<GrantedCapabilities>,
    /// Who pays.
    pub(super) tenant: Tenant,
    _place: ActPlace,
}

impl AdmittedRequest {
    pub(super) fn door(&self) -> &EgressClient {
        self.lent
            .door
            .as_ref()
            .expect("it was there when this was made, and what is lent never changes")
    }
}

/// Admits one request by an interface, named as in atoms.
pub(super) fn admit<T: Send + 'static>(
    accessor: &Accessor<T, HasSelf<GuestState>>,
    interface: &str,
) -> Result<AdmittedRequest, CallRefused> {
    accessor.with(|mut access| {
        let state: &mut GuestState = access.get();
        let may = state.lent.door.is_some() && state.lent.rights.any_of(interface);
        let Some(OnBehalf { tenant, .. }) = state.on_behalf.as_ref().filter(|_| may) else {
            return Err(CallRefused::Ungranted(state.denied(interface)));
        };
        let tenant = tenant.clone();
        let place = state.in_flight.place(ATOM, IN_FLIGHT_MAX);
        Ok(AdmittedRequest {
            lent: Arc::clone(&state.lent),
            tenant,
            _place: place.ok_or(CallRefused::Busy)?,
        })
    })
}

impl Host for GuestState {}

impl<T: Send + 'static> HostWithStore<T> for HasSelf<GuestState> {
    async fn fetch(
        accessor: &Accessor<T, Self>,
        request: wire::Request,
    ) -> Result<wire::Response, wire::Error> {
        let admitted = admit(accessor, ATOM)?;
        let fetched = admitted
            .door()
            .fetch(&admitted.tenant, from_wire(request))
            .await;
        if let Err(FetchError::Denied(_) | FetchError::RedirectDenied(_)) = &fetched {
            count_denial(accessor);
        }
        fetched.map(answer).map_err(refusal)
    }

    async fn judge(
        accessor: &Accessor<T, Self>,
        method: String,
        url: String,
        at_most_ms: u32,
    ) -> Result<(), wire::Error> {
        let admitted = admit(accessor, ATOM)?;
        let request = PluginRequest {
            method,
            url,
            ..PluginRequest::default()
        };
        let judged = admitted
            .door()
            .judge_unsent(request, Duration::from_millis(u64::from(at_most_ms)))
            .await;
        if let Err(FetchError::Denied(_)) = &judged {
            count_denial(accessor);
        }
        judged.map_err(refusal)
    }
}

fn from_wire(request: wire::Request) -> PluginRequest {
    let caps = request.caps;
    let time = |ms: Option<u32>| ms.map(|ms| Duration::from_millis(u64::from(ms)));
    let caps = Caps {
        redirects: caps.redirects,
        response_bytes: caps
            .response_bytes
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        total: time(caps.total_ms),
        first_byte: time(caps.first_byte_ms),
        idle: time(caps.idle_ms),
    };
    PluginRequest {
        method: request.method,
        url: request.url,
        headers: request.headers,
        body: request.body,
        caps,
    }
}

fn answer(response: Response) -> wire::Response {
    wire::Response {
        status: response.status,
        url: response.url,
        headers: response.headers,
        body: response.body,
    }
}

fn refusal(error: FetchError) -> wire::Error {
    match error {
        FetchError::Denied(denial) => wire::Error::Denied(denied(denial)),
        FetchError::RedirectDenied(denial) => wire::Error::RedirectDenied(denied(denial)),
        FetchError::Invalid(rule) => wire::Error::InvalidRequest(format!("the request {rule}")),
        FetchError::Busy | FetchError::Full => wire::Error::Busy,
        FetchError::Unresolved => wire::Error::Unresolved,
        FetchError::Unreachable => wire::Error::Unreachable,
        FetchError::Late(Late::FirstByte) => wire::Error::FirstByteLate,
        FetchError::Late(Late::Idle) => wire::Error::Idle,
        FetchError::Late(Late::Total) => wire::Error::TotalLate,
        FetchError::TooLarge(SizeExcess::Headers) => wire::Error::HeadersTooLarge,
        FetchError::TooLarge(SizeExcess::Body) => wire::Error::BodyTooLarge,
        FetchError::TooManyRedirects(_) => wire::Error::TooManyRedirects,
        FetchError::BadAnswer(cause) => wire::Error::BadResponse(cause),
    }
}

fn denied(denial: EgressDenial) -> wire::Denial {
    let told = denial.to_string();
    match denial {
        EgressDenial::Ungranted { .. } => wire::Denial::NotGranted(told),
        EgressDenial::NotPublic(_) => wire::Denial::NotPublic(told),
        EgressDenial::Unacceptable(_) => wire::Denial::NotAcceptable(told),
    }
}
