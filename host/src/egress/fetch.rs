//! One request of a plugin's with its redirects.
//!
//! Each hop is judged as if the plugin had asked for it, because whoever answers chooses the next. The order is the design:
//! the verdict stands before the name is looked up, and that before anything is dialled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, header};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::net::TcpStream;

use super::audit::HopAudit;
use super::dialer::{DialRoute, Origin};
use super::message;
use super::message::{Caps, FetchError, Late, OutgoingRequest, PluginRequest, Response};
use super::overhead::ConnectionWatch;
use super::own;
use super::policy;
use super::policy::{Destination, DestinationUse, EgressDenial, Form, Host, PrivateTarget};
use super::resolver::LookupError;
use super::secret::Secret;
use super::{Egress, EgressClient, Instead};
use crate::base::address::Public;
use crate::contract::grants::Grants;
use crate::contract::tenant::Tenant;

/// Addresses of one name that are tried one after the other.
const TRIED_MAX: usize = 3;
/// Bodies that are searched for secrets where they were read, in bytes.
const REDACTED_AT_ONCE_BYTES_MAX: usize = 64 * 1024;
/// The longest that a request which is not made is judged for.
const JUDGED_MAX: Duration = Duration::from_secs(5);

impl EgressClient {
    /// Makes one request for a tenant.
    ///
    /// # Errors
    /// It was denied, before anything was looked up or dialled, or it came to no whole answer within its caps.
    pub(crate) async fn fetch(
        &self,
        tenant: &Tenant,
        request: PluginRequest,
    ) -> Result<Response, FetchError> {
        let total = request.caps.total();
        let fetched = tokio::time::timeout(total, self.walk(tenant, request)).await;
        fetched.unwrap_or(Err(FetchError::Late(Late::Total)))
    }

    async fn walk(&self, tenant: &Tenant, request: PluginRequest) -> Result<Response, FetchError> {
        let (caps, url) = (request.caps, request.url.clone());
        let mut outgoing = OutgoingRequest::read(request)?;
        let late = Instant::now() + caps.total();
        let mut audit = HopAudit::begin("request", self, late);
        audit.aimed(|| policy::aim(&url));
        let mut to = self.judge(Destination::read(&url), request_of(&outgoing), &mut audit)?;
        self.refuse_bound_names(&to, &outgoing)
            .inspect_err(|error| audit.failed(error))?;
        let share = self.traffic.share(tenant);
        let place = share.place(outgoing.body.len()).await;
        let _place = place.inspect_err(|error| audit.failed(error))?;
        // What is bound to where the plugin asked is no business of where it is sent.
        let mut is_at_home = true;
        for hop in 0..=caps.redirects() {
            let goes_along = |secret: &&Secret| is_at_home && secret.is_for(&to);
            let secrets: Vec<&Secret> = self.secrets.iter().filter(goes_along).collect();
            let answer = self.exchange(&to, &outgoing, &secrets, &caps, &mut audit);
            let answer = answer.await.map_err(|error| match error {
                FetchError::Denied(denial) if hop > 0 => FetchError::RedirectDenied(denial),
                error => error,
            });
            let answer = answer.inspect_err(|error| audit.failed(error))?;
            let (head, body) = answer.into_parts();
            audit.status = head.status.as_u16();
            message::check_head(&head.headers).inspect_err(|error| audit.failed(error))?;
            let location = head.headers.get(header::LOCATION);
            let is_followed = is_redirect(audit.status) && caps.redirects > 0;
            let Some(location) = location.filter(|_| is_followed) else {
                let body = message::read_body(&head.headers, body, &caps, &share).await;
                let body = body.inspect_err(|error| audit.failed(error))?;
                audit.ended(body.len());
                let response = Response {
                    status: head.status.as_u16(),
                    url: to.url().as_str().to_owned(),
                    headers: message::visible(&head.headers),
                    body,
                };
                return self.redacted(response).await;
            };
            let status = audit.status;
            audit.ended(0);
            audit = HopAudit::begin("request", self, late);
            let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
            let next = to.redirected(&location);
            audit.aimed(|| to.aim(&location));
            let leaves = |next: &Destination| next.url().origin() != to.url().origin();
            let elsewhere = next.as_ref().is_ok_and(leaves);
            outgoing.redirected(status, elsewhere);
            is_at_home &= !elsewhere;
            let next = next.and_then(|next| self.keep_secrets(next, &outgoing.headers, is_at_home));
            to = self
                .judge(next, request_of(&outgoing), &mut audit)
                .map_err(FetchError::RedirectDenied)?;
        }
        let error = FetchError::TooManyRedirects(caps.redirects());
        audit.failed(&error);
        Err(error)
    }

    /// The verdict on one hop, which the audit keeps whatever it is.
    pub(super) fn judge(
        &self,
        destination: Result<Destination, EgressDenial>,
        way: DestinationUse<'_>,
        audit: &mut HopAudit<'_>,
    ) -> Result<Destination, EgressDenial> {
        let judged = destination.and_then(|destination| {
            audit.to(&destination);
            self.permit(destination.host(), destination.port(), |rights| {
                destination.permit(way, rights)
            })?;
            Ok(destination)
        });
        judged.inspect_err(|denial| audit.denied(denial))
    }

    /// Asks this revision's rights, and where the operator sends what goes to this host and port into the operator's own
    /// network, those that name the host as well. For whoever has none of these the host is one that is not public.
    pub(super) fn permit(
        &self,
        host: &Host,
        port: u16,
        by: impl Fn(&Grants) -> Result<(), EgressDenial>,
    ) -> Result<(), EgressDenial> {
        by(&self.rights)?;
        match self.egress.instead(host, port) {
            Some(Instead { public: false, .. }) => {
                by(self.rights.named()).map_err(|_| PrivateTarget::Leads(host.to_string()).into())
            }
            None if self.egress.own.is_named(&host.to_string(), port) => {
                Err(PrivateTarget::Own(host.to_string()).into())
            }
            Some(Instead { public: true, .. }) | None => Ok(()),
        }
    }

    /// Sends the request to the first of the destination's addresses that takes it.
    pub(super) async fn exchange(
        &self,
        to: &Destination,
        outgoing: &OutgoingRequest,
        secrets: &[&Secret],
        caps: &Caps,
        audit: &mut HopAudit<'_>,
    ) -> Result<http::Response<Incoming>, FetchError> {
        let routes = self.egress.routes(to.host(), to.port()).await?;
        let (mut url, mut headers) = (to.url().clone(), outgoing.headers.clone());
        for secret in secrets {
            secret.add(&mut url, &mut headers);
        }
        let uri = to.uri_of(&url)?;
        for route in routes.into_iter().take(TRIED_MAX) {
            audit.route = Some(route);
            let origin = Origin {
                plugin: Arc::clone(&self.plugin),
                secure: to.is_secure(),
                host: to.host_text(),
                port: to.port(),
                route,
                versions: self.versions,
            };
            let mut request = http::Request::new(Full::new(outgoing.body.clone()));
            *request.method_mut() = outgoing.method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers.clone();
            let watch = ConnectionWatch::over(&mut request);
            let sending = self.egress.dialer.client(&origin).request(request);
            match tokio::time::timeout(caps.first_byte(), sending).await {
                Err(_) => return Err(FetchError::Late(Late::FirstByte)),
                // Nothing asks for another protocol.
                Ok(Ok(response)) if response.status().is_informational() => {
                    let why = "it is an informational response, not a final one";
                    return Err(FetchError::bad(why));
                }
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(_)) if watch.is_cut() => {
                    let why = "the server sent too much before its final response";
                    return Err(FetchError::bad(why));
                }
                Ok(Err(error)) if error.is_connect() => {
                    tracing::debug!(address = %route.address(), "no connection: {error:?}");
                }
                Ok(Err(error)) => return Err(unsent(&error)),
            }
        }
        Err(FetchError::Unreachable)
    }
}

impl EgressClient {
    /// Judges a request that is not made, with the lookup of its name within so long. It takes none of the plugin's places: what a
    /// call may judge at once is bounded as what it may fetch, and nothing of an answer is held.
    ///
    /// # Errors
    /// It would be denied, or nobody knows where its name leads.
    pub(crate) async fn judge_unsent(
        &self,
        request: PluginRequest,
        at_most: Duration,
    ) -> Result<(), FetchError> {
        let (at_most, url) = (at_most.min(JUDGED_MAX), request.url.clone());
        let outgoing = OutgoingRequest::read(request)?;
        let mut audit = HopAudit::begin("judgement", self, Instant::now() + at_most);
        let to = self.judge(Destination::read(&url), request_of(&outgoing), &mut audit)?;
        self.refuse_bound_names(&to, &outgoing)
            .inspect_err(|error| audit.failed(error))?;
        let routes = tokio::time::timeout(at_most, self.egress.routes(to.host(), to.port())).await;
        let routes = routes.unwrap_or(Err(FetchError::Late(Late::Total)));
        routes.inspect_err(|error| audit.failed(error))?;
        audit.came_to("permitted");
        Ok(())
    }

    /// A plugin that sets a name which the operator binds would send something else in the secret's place.
    fn refuse_bound_names(
        &self,
        to: &Destination,
        outgoing: &OutgoingRequest,
    ) -> Result<(), FetchError> {
        for secret in self.secrets.iter().filter(|secret| secret.is_for(to)) {
            if secret.is_taken(to.url(), &outgoing.headers) {
                let name = secret.name();
                let rule = format!("sets `{name}`, which the operator binds a secret to");
                return Err(FetchError::Invalid(rule));
            }
            if outgoing.headers.contains_key(header::RANGE) {
                let rule = "sets `range`, which is refused where the operator binds a secret";
                return Err(FetchError::Invalid(rule.to_owned()));
            }
        }
        Ok(())
    }

    /// A server that was told a secret may not send it on: not to anybody else, nor another one in its place.
    fn keep_secrets(
        &self,
        next: Destination,
        headers: &HeaderMap,
        is_at_home: bool,
    ) -> Result<Destination, EgressDenial> {
        let goes_along = |secret: &&Secret| is_at_home && secret.is_for(&next);
        let moves = |secret: &Secret| {
            if goes_along(&secret) {
                secret.is_taken(next.url(), headers)
            } else {
                secret.is_in(next.url().as_str())
            }
        };
        if self.secrets.iter().any(moves) {
            return Err(Form::Secret.into());
        }
        let has_range = headers.contains_key(header::RANGE);
        if has_range && self.secrets.iter().any(|secret| goes_along(&secret)) {
            return Err(Form::Range.into());
        }
        Ok(next)
    }

    /// What the plugin may see of an answer.
    async fn redacted(&self, response: Response) -> Result<Response, FetchError> {
        if self.secrets.is_empty() {
            return Ok(response);
        }
        let secrets = Arc::clone(&self.secrets);
        if response.body.len() <= REDACTED_AT_ONCE_BYTES_MAX {
            return Ok(redact(&secrets, response));
        }
        // A body of many MiB takes a while, so it is searched on a thread that may.
        let redacting = tokio::task::spawn_blocking(move || redact(&secrets, response));
        let failed = |_| FetchError::bad("searching it failed");
        redacting.await.map_err(failed)
    }
}

fn redact(secrets: &[Secret], mut response: Response) -> Response {
    for secret in secrets {
        let text =
            |text: String| String::from_utf8_lossy(&secret.redact(text.into_bytes())).into_owned();
        let headers = response.headers.into_iter();
        response.url = text(response.url);
        response.headers = headers
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        response.body = secret.redact(response.body);
    }
    response
}

impl Egress {
    /// A connection of its own to the first of the addresses that takes one.
    pub(super) async fn connect(
        &self,
        host: &Host,
        port: u16,
        audit: &mut HopAudit<'_>,
    ) -> Result<TcpStream, FetchError> {
        for route in self.routes(host, port).await?.into_iter().take(TRIED_MAX) {
            audit.route = Some(route);
            match self.dialer.connect(route).await {
                Ok(stream) => return Ok(stream),
                Err(error) => tracing::debug!(address = %route.address(), %error, "no connection"),
            }
        }
        Err(FetchError::Unreachable)
    }

    /// Where the operator sends what goes to this host and port, if that is named.
    fn instead(&self, host: &Host, port: u16) -> Option<Instead> {
        match host {
            Host::Name(name) => self.connect_to.get(&(name.clone(), port)).copied(),
            Host::Address(_) => None,
        }
    }

    /// Where requests for a host and a port may be dialled, best first.
    async fn routes(&self, host: &Host, port: u16) -> Result<Vec<DialRoute>, FetchError> {
        let denied = |target: PrivateTarget| FetchError::Denied(target.into());
        let name = match host {
            Host::Address(address) if own::is_of_this_machine(address.address()) => {
                return Err(denied(PrivateTarget::Own(host.to_string())));
            }
            Host::Address(address) => return Ok(vec![DialRoute::public(*address, port)]),
            Host::Name(name) => name,
        };
        if let Some(Instead { address, .. }) = self.instead(host, port) {
            return Ok(vec![DialRoute::named(address)]);
        }
        let mut addresses: Vec<Public> = match self.resolver.addresses(name).await {
            Ok(addresses) => addresses,
            Err(LookupError::NotPublic(refused)) => {
                tracing::debug!(host = name, %refused, "a name is refused for one of its addresses");
                return Err(denied(PrivateTarget::Leads(name.clone())));
            }
            Err(LookupError::NoAddress | LookupError::TooMany | LookupError::Late) => {
                return Err(FetchError::Unresolved);
            }
        };
        let is_own = |address: &Public| own::is_of_this_machine(address.address());
        if addresses.iter().any(is_own) {
            return Err(denied(PrivateTarget::Leads(name.clone())));
        }
        // More hosts have a way out over IPv4.
        addresses.sort_by_key(|address| address.address().is_ipv6());
        let route = |address| DialRoute::public(address, port);
        Ok(addresses.into_iter().map(route).collect())
    }
}

fn request_of(outgoing: &OutgoingRequest) -> DestinationUse<'_> {
    DestinationUse::Request {
        method: outgoing.method.as_str(),
    }
}

fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

fn unsent(error: &hyper_util::client::legacy::Error) -> FetchError {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<hyper::Error>() {
            return message::broken(cause);
        }
        source = cause.source();
    }
    FetchError::bad("the connection broke during the exchange")
}
