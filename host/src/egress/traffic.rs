//! What one plugin may have under way at the gate, and how much of it one tenant may.
//!
//! Of each resource a tenant has a share, and a quarter is kept for tenants that hold none of it: so whoever waits for slow
//! sites waits behind its own requests, and somebody else's first request does not. Must not know what a request asks for.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::message::{FetchError, REQUEST_BYTES_MAX, RESPONSE_BYTES};
use crate::base::line_rate::LineRate;
use crate::base::shared_stock::{SharedStock, StockPortion};
use crate::contract::tenant::Tenant;

/// The beginning of a body that a request's own place has room for, in bytes. Most pages of the web are not larger, so a
/// site that says little and slowly holds nothing else.
pub(super) const BEGINNING_BYTES: usize = 128 << 10;
/// Requests of all tenants under way at once.
pub(super) const REQUESTS_MAX: u32 = 256;
/// The same, and of one tenant, which is what one call may have.
const REQUESTS: (usize, usize) = (REQUESTS_MAX as usize, 32);
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
const _: () =
    assert!(REQUEST_BYTES_MAX >> 10 <= SENT_KIB.1 && REQUEST_BYTES_MAX >> 10 <= WAITING_KIB.1);
const _: () = assert!(RESPONSE_BYTES.1 >> 10 <= ANSWERS_KIB.1);

/// What does not wait for one another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TrafficKind {
    Requests,
    Questions,
}

/// What one plugin may have under way of a kind, shared by its revisions.
pub(super) struct PluginTraffic {
    requests: SharedStock,
    sent: SharedStock,
    waiting: SharedStock,
    answers: SharedStock,
    decoders: SharedStock,
    proxied: Semaphore,
    proxied_kib: Semaphore,
    tunnels: Semaphore,
    /// How many lines there may be of what was refused before anything was dialled.
    pub(super) lines: Arc<LineRate>,
    /// Those that have something under way. Never held over an await.
    shares: Mutex<HashMap<Tenant, Weak<TrafficShare>>>,
}

/// One tenant's part of the traffic, for as long as somebody uses it.
pub(super) struct TrafficShare {
    traffic: Arc<PluginTraffic>,
    requests: Arc<Semaphore>,
    sent: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    decoders: Arc<Semaphore>,
}

/// Of one request and its body, until it is dropped.
pub(super) struct OutgoingPlace {
    _request: StockPortion,
    _sent: StockPortion,
}

/// The same of a program's.
pub(super) struct ProxiedPlace<'t> {
    _request: SemaphorePermit<'t>,
    _sent: SemaphorePermit<'t>,
}

impl PluginTraffic {
    pub(super) fn new(kind: TrafficKind) -> Self {
        let requests = match kind {
            TrafficKind::Requests => REQUESTS,
            TrafficKind::Questions => QUESTIONS,
        };
        Self {
            requests: stock(requests),
            sent: stock(SENT_KIB),
            waiting: stock(WAITING_KIB),
            answers: stock(ANSWERS_KIB),
            decoders: stock(DECODERS),
            proxied: Semaphore::new(PROXIED),
            proxied_kib: Semaphore::new(PROXIED_KIB),
            tunnels: Semaphore::new(TUNNELS),
            lines: Arc::default(),
            shares: Mutex::default(),
        }
    }

    /// The part of one tenant.
    pub(super) fn share(self: &Arc<Self>, tenant: &Tenant) -> Arc<TrafficShare> {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.get(tenant).and_then(Weak::upgrade) {
            return share;
        }
        // Whoever begins anew sees to it that nothing is kept of those who are gone.
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(TrafficShare {
            traffic: Arc::clone(self),
            requests: self.requests.share(),
            sent: self.sent.share(),
            waiting: self.waiting.share(),
            answers: self.answers.share(),
            decoders: self.decoders.share(),
        });
        shares.insert(tenant.clone(), Arc::downgrade(&share));
        share
    }

    /// A place for a program's request with a body of so many bytes, if there is one.
    ///
    /// # Errors
    /// There are as many requests, or as many bytes of their bodies, as there may be.
    pub(super) fn proxied(&self, body_bytes: usize) -> Result<ProxiedPlace<'_>, FetchError> {
        let request = self.proxied.try_acquire().map_err(|_| FetchError::Busy)?;
        let sent = self
            .proxied_kib
            .try_acquire_many(kib(body_bytes))
            .map_err(|_| FetchError::Full)?;
        Ok(ProxiedPlace {
            _request: request,
            _sent: sent,
        })
    }

    /// A place for a program's tunnel, if there is one.
    pub(super) fn tunnel(&self) -> Option<SemaphorePermit<'_>> {
        self.tunnels.try_acquire().ok()
    }
}

impl TrafficShare {
    /// Waits for a place for one request with a body of so many bytes.
    ///
    /// # Errors
    /// The bodies that wait are as many bytes as they may be.
    pub(super) async fn place(&self, body_bytes: usize) -> Result<OutgoingPlace, FetchError> {
        let (traffic, permits) = (&*self.traffic, kib(body_bytes));
        let _waiting = traffic
            .waiting
            .try_take(&self.waiting, permits)
            .ok_or(FetchError::Full)?;
        let request = traffic
            .requests
            .take(&self.requests, 1)
            .await
            .ok_or(FetchError::Busy)?;
        let sent = traffic
            .sent
            .take(&self.sent, permits)
            .await
            .ok_or(FetchError::Busy)?;
        Ok(OutgoingPlace {
            _request: request,
            _sent: sent,
        })
    }

    /// Waits for room for what an answer of so many bytes has beyond its beginning.
    ///
    /// # Errors
    /// None while the gate stands.
    pub(super) async fn answer(&self, bytes: usize) -> Result<StockPortion, FetchError> {
        let permits = kib(bytes.saturating_sub(BEGINNING_BYTES));
        self.traffic
            .answers
            .take(&self.answers, permits)
            .await
            .ok_or(FetchError::Busy)
    }

    /// Waits for a thread on which codings are undone.
    ///
    /// # Errors
    /// None while the gate stands.
    pub(super) async fn decoder(&self) -> Result<StockPortion, FetchError> {
        self.traffic
            .decoders
            .take(&self.decoders, 1)
            .await
            .ok_or(FetchError::Busy)
    }
}

fn stock((all, each): (usize, usize)) -> SharedStock {
    SharedStock::new(all, each)
}

/// The permits for so many bytes.
fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX / 2)
}
