//! What one plugin may have under way at the gate, and how much of it one tenant may.
//!
//! Of each resource a tenant has a share, and a quarter is kept for tenants that hold none of it: so whoever waits for slow
//! sites waits behind its own requests, and somebody else's first request does not. Must not know what a request asks for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::message::{FetchError, REQUEST_BYTES_MAX, RESPONSE_BYTES};
use crate::auth::tenant::Tenant;
use crate::metering::LineRate;

/// The beginning of a body that a request's own place has room for, in bytes. Most pages of the web are not larger, so a
/// site that says little and slowly holds nothing else.
pub(super) const BEGINNING_BYTES: usize = 128 << 10;
/// Requests under way at once of all tenants and of one, which is what one call may have.
const REQUESTS: (usize, usize) = (256, 32);
/// The same of questions to resolvers. A lookup asks many at a time, over one connection.
const QUESTIONS: (usize, usize) = (512, 128);
/// The bodies of requests under way, in KiB.
const SENT_KIB: (usize, usize) = (32 << 10, 8 << 10);
/// The bodies of requests that have no place yet, in KiB: they are in this process's memory already. The next is refused.
const WAITING_KIB: (usize, usize) = (64 << 10, 16 << 10);
/// The bodies of answers beyond their beginnings, in KiB.
const ANSWERS_KIB: (usize, usize) = (96 << 10, 24 << 10);
/// Bodies whose codings are undone at once, each on a thread of its own.
const DECODERS: (usize, usize) = (4, 1);
/// Of the programs that run for a plugin, which reach the gate through the proxy: requests under way, their bodies in KiB, and
/// tunnels. The next is refused.
const PROXIED: usize = 64;
const PROXIED_KIB: usize = 32 << 10;
const TUNNELS: usize = 64;

/// The largest body fits into one tenant's share, and into what is kept.
const _: () = assert!(REQUEST_BYTES_MAX >> 10 <= SENT_KIB.1 && REQUEST_BYTES_MAX >> 10 <= WAITING_KIB.1);
const _: () = assert!(RESPONSE_BYTES.1 >> 10 <= ANSWERS_KIB.1);

/// What does not wait for one another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TrafficKind {
    Requests,
    Questions,
}

/// What one plugin may have under way of a kind, shared by its revisions.
pub(super) struct Traffic {
    requests: Stock,
    sent: Stock,
    waiting: Stock,
    answers: Stock,
    decoders: Stock,
    proxied: Semaphore,
    proxied_kib: Semaphore,
    tunnels: Semaphore,
    /// How many lines there may be of what was refused before anything was dialled.
    pub(super) lines: Arc<LineRate>,
    /// Those that have something under way. Never held over an await.
    shares: Mutex<HashMap<Tenant, Weak<TrafficShare>>>,
}

/// One resource, in permits.
struct Stock {
    open: Semaphore,
    /// For tenants that hold none.
    kept: Semaphore,
    /// Of one tenant.
    each: usize,
}

/// One tenant's part of the traffic, for as long as somebody uses it.
pub(super) struct TrafficShare {
    traffic: Arc<Traffic>,
    requests: Semaphore,
    sent: Semaphore,
    waiting: Semaphore,
    answers: Semaphore,
    decoders: Semaphore,
}

/// A part of a resource, until it is dropped.
pub(super) struct Portion<'t> {
    _common: SemaphorePermit<'t>,
    _own: Option<SemaphorePermit<'t>>,
}

/// Of one request and its body, until it is dropped.
pub(super) struct RequestPlace<'t> {
    _request: Portion<'t>,
    _sent: Portion<'t>,
}

impl Traffic {
    pub(super) fn new(kind: TrafficKind) -> Self {
        let requests = match kind {
            TrafficKind::Requests => REQUESTS,
            TrafficKind::Questions => QUESTIONS,
        };
        Self {
            requests: Stock::new(requests),
            sent: Stock::new(SENT_KIB),
            waiting: Stock::new(WAITING_KIB),
            answers: Stock::new(ANSWERS_KIB),
            decoders: Stock::new(DECODERS),
            proxied: Semaphore::new(PROXIED),
            proxied_kib: Semaphore::new(PROXIED_KIB),
            tunnels: Semaphore::new(TUNNELS),
            lines: Arc::default(),
            shares: Mutex::default(),
        }
    }

    /// The part of one tenant.
    pub(super) fn share(self: &Arc<Self>, tenant: &Tenant) -> Arc<TrafficShare> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(tenant).and_then(Weak::upgrade) {
            return share;
        }
        // Whoever begins anew sees to it that nothing is kept of those who are gone.
        shares.retain(|_, share| share.strong_count() > 0);
        let own = |stock: &Stock| Semaphore::new(stock.each);
        let share = Arc::new(TrafficShare {
            traffic: Arc::clone(self),
            requests: own(&self.requests),
            sent: own(&self.sent),
            waiting: own(&self.waiting),
            answers: own(&self.answers),
            decoders: own(&self.decoders),
        });
        shares.insert(tenant.clone(), Arc::downgrade(&share));
        share
    }

    /// A place for a program's request with a body of so many bytes, if there is one.
    ///
    /// # Errors
    /// There are as many requests, or as many bytes of their bodies, as there may be.
    pub(super) fn proxied(&self, body_bytes: usize) -> Result<RequestPlace<'_>, FetchError> {
        let held = |common| Portion { _common: common, _own: None };
        let request = self.proxied.try_acquire().map_err(|_| FetchError::Busy)?;
        let sent = self.proxied_kib.try_acquire_many(kib(body_bytes)).map_err(|_| FetchError::Full)?;
        Ok(RequestPlace { _request: held(request), _sent: held(sent) })
    }

    /// A place for a program's tunnel, if there is one.
    pub(super) fn tunnel(&self) -> Option<SemaphorePermit<'_>> {
        self.tunnels.try_acquire().ok()
    }
}

impl Stock {
    fn new((all, each): (usize, usize)) -> Self {
        let kept = all / 4;
        Self { open: Semaphore::new(all - kept), kept: Semaphore::new(kept), each }
    }

    /// Takes so many for a tenant, by its own semaphore, and waits for them: behind its own first, and then behind others.
    async fn take<'t>(&'t self, own: &'t Semaphore, permits: u32) -> Option<Portion<'t>> {
        let mine = own.acquire_many(permits).await.ok()?;
        let common = match self.is_first(own, permits) {
            false => self.open.acquire_many(permits).await.ok()?,
            true => tokio::select! {
                biased;
                open = self.open.acquire_many(permits) => open.ok()?,
                kept = self.kept.acquire_many(permits) => kept.ok()?,
            },
        };
        Some(Portion { _common: common, _own: Some(mine) })
    }

    /// The same where they are free.
    fn try_take<'t>(&'t self, own: &'t Semaphore, permits: u32) -> Option<Portion<'t>> {
        let mine = own.try_acquire_many(permits).ok()?;
        let kept = || self.is_first(own, permits).then(|| self.kept.try_acquire_many(permits).ok()).flatten();
        let common = self.open.try_acquire_many(permits).ok().or_else(kept)?;
        Some(Portion { _common: common, _own: Some(mine) })
    }

    /// Whether these are all that the tenant holds.
    fn is_first(&self, own: &Semaphore, permits: u32) -> bool {
        u32::try_from(self.each - own.available_permits()).is_ok_and(|held| held <= permits)
    }
}

impl TrafficShare {
    /// Waits for a place for one request with a body of so many bytes.
    ///
    /// # Errors
    /// The bodies that wait are as many bytes as they may be.
    pub(super) async fn place(&self, body_bytes: usize) -> Result<RequestPlace<'_>, FetchError> {
        let (traffic, permits) = (&*self.traffic, kib(body_bytes));
        let _waiting = traffic.waiting.try_take(&self.waiting, permits).ok_or(FetchError::Full)?;
        let request = traffic.requests.take(&self.requests, 1).await.ok_or(FetchError::Busy)?;
        let sent = traffic.sent.take(&self.sent, permits).await.ok_or(FetchError::Busy)?;
        Ok(RequestPlace { _request: request, _sent: sent })
    }

    /// Waits for room for what an answer of so many bytes has beyond its beginning.
    ///
    /// # Errors
    /// None while the gate stands.
    pub(super) async fn answer(&self, bytes: usize) -> Result<Portion<'_>, FetchError> {
        let permits = kib(bytes.saturating_sub(BEGINNING_BYTES));
        self.traffic.answers.take(&self.answers, permits).await.ok_or(FetchError::Busy)
    }

    /// Waits for a thread on which codings are undone.
    ///
    /// # Errors
    /// None while the gate stands.
    pub(super) async fn decoder(&self) -> Result<Portion<'_>, FetchError> {
        self.traffic.decoders.take(&self.decoders, 1).await.ok_or(FetchError::Busy)
    }
}

/// The permits for so many bytes.
fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX / 2)
}
