//! The audit of what leaves: one line for each hop, request, query and tunnel, whatever became of it.
//!
//! A line names host, port, address and verdict, and never a path, a query, a header or a credential. It is written when its
//! record is dropped: also when nobody waits for the end any more.

use std::sync::Arc;
use std::time::Instant;

use super::EgressClient;
use super::dialer::DialRoute;
use super::message::FetchError;
use super::policy::{Destination, EgressDenial, Host};
use super::proxy::ProxyFlow;
use crate::base::clock::microseconds;

/// The verdict of what nobody waited for.
const ABANDONED: &str = "abandoned";

/// The record of one hop.
pub(super) struct HopAudit<'d> {
    /// `request`, or `line query` or `judgement`, which have no status.
    what: &'static str,
    door: &'d EgressClient,
    started: Instant,
    /// When the time of the whole request is over.
    late: Instant,
    host: String,
    port: u16,
    pub(super) route: Option<DialRoute>,
    verdict: &'static str,
    pub(super) status: u16,
    bytes: usize,
    proxied: Option<ProxiedAudit>,
}

impl EgressClient {
    /// Says how much was refused that has no line of its own, at most once a second.
    pub(crate) fn tell_of_left_out(&self, now: Instant) {
        if let Some(left_out) = self.lines.report(now) {
            let plugin = &self.plugin;
            tracing::warn!(target: "egress", %plugin, left_out, "too many log lines about unsent requests of the plugin; some are dropped");
        }
    }
}

/// What is told beside of what came through the proxy.
pub(super) struct ProxiedAudit {
    /// `request` or `tunnel`.
    pub(super) way: &'static str,
    /// Whom the credential was lent to.
    pub(super) lent_to: Arc<str>,
    pub(super) flow: Arc<ProxyFlow>,
}

impl<'d> HopAudit<'d> {
    /// `what` is `request`, `line query` or `judgement`.
    pub(super) fn begin(what: &'static str, door: &'d EgressClient, late: Instant) -> Self {
        Self {
            what,
            door,
            started: Instant::now(),
            late,
            host: String::new(),
            port: 0,
            route: None,
            verdict: ABANDONED,
            status: 0,
            bytes: 0,
            proxied: None,
        }
    }

    pub(super) fn proxied(door: &'d EgressClient, late: Instant, proxied: ProxiedAudit) -> Self {
        let mut audit = Self::begin("request", door, late);
        audit.proxied = Some(proxied);
        audit
    }

    /// The record of what has no destination but one that is known.
    pub(super) fn denied_at_once(
        door: &'d EgressClient,
        aim: Option<(String, u16)>,
        verdict: &'static str,
    ) {
        let mut audit = Self::begin("request", door, Instant::now());
        audit.aimed(|| aim);
        audit.verdict = verdict;
    }

    /// Where it was to go, before anybody judged whether it may.
    pub(super) fn aimed(&mut self, at: impl FnOnce() -> Option<(String, u16)>) {
        if let Some((host, port)) = at() {
            (self.host, self.port) = (host, port);
        }
    }

    pub(super) fn to(&mut self, destination: &Destination) {
        self.at(destination.host(), destination.port());
    }

    pub(super) fn at(&mut self, host: &Host, port: u16) {
        (self.host, self.port) = (host.to_string(), port);
    }

    pub(super) fn denied(&mut self, denial: &EgressDenial) {
        self.verdict = denial.verdict();
    }

    pub(super) fn failed(&mut self, error: &FetchError) {
        self.verdict = error.verdict();
    }

    /// The answer had this many bytes.
    pub(super) fn ended(&mut self, bytes: usize) {
        (self.verdict, self.bytes) = ("sent", bytes);
    }

    /// What came of it, in one word.
    pub(super) fn came_to(&mut self, verdict: &'static str) {
        self.verdict = verdict;
    }
}

impl Drop for HopAudit<'_> {
    fn drop(&mut self) {
        let EgressClient {
            plugin,
            revision,
            lines,
            ..
        } = self.door;
        // What leaves is told one by one. What does not costs a plugin nothing, and could be told without an end.
        if self.route.is_none() && !lines.admit(1, Instant::now()) {
            return;
        }
        if self.verdict == ABANDONED && Instant::now() >= self.late {
            self.verdict = "late";
        }
        let address = self
            .route
            .map(|route| tracing::field::display(route.address()));
        let (host, port, status) = (&self.host, self.port, self.status);
        let verdict = self
            .proxied
            .as_ref()
            .and_then(|proxied| proxied.flow.why_cut())
            .unwrap_or(self.verdict);
        let elapsed_us = microseconds(self.started.elapsed());
        match &self.proxied {
            None => tracing::info!(
                target: "egress", %plugin, revision, host, port, address, verdict, status, bytes = self.bytes, elapsed_us,
                "{}", self.what,
            ),
            Some(ProxiedAudit { way, lent_to, flow }) => tracing::info!(
                target: "egress", %plugin, revision, way, %lent_to, host, port, address, verdict, status,
                bytes_sent = flow.up(), bytes = flow.down(), elapsed_us, "proxied",
            ),
        }
        if self.route.is_none() {
            self.door.tell_of_left_out(Instant::now());
        }
    }
}
