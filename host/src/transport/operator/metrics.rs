//! `GET /metrics`: gathers what the process counts, in the text form that Prometheus reads (OpenMetrics).
//!
//! Walks what is served and what drains, so the series of a revision go when its last call has ended. Every series of what is
//! served is there from the start, at zero: a rate over one that appears later misses its first event.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::catalogue::Catalogue;
use crate::catalogue::revision::Revision;
use crate::egress::Egress;
use crate::egress::proxy::Proxy;
use crate::metering::reservations::Reservations;
use crate::observe::exposition::Exposition;
use crate::observe::metrics::FaceAnswers;
use crate::places::ListenerPlaces;
use crate::queue::JobQueue;
use crate::records::plugin_state::StateUsage;
use crate::registry::Registry;
use crate::runtime::call_places::Occupancy;
use crate::stores::Store;

/// What counts.
pub(crate) struct MetricsSources {
    pub(crate) started_at: SystemTime,
    /// Of the public listener.
    pub(crate) public: ListenerPlaces,
    pub(crate) egress: Arc<Egress>,
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) store: Arc<Store>,
    pub(crate) reservations: Arc<Reservations>,
    pub(crate) jobs: Arc<JobQueue>,
}

impl MetricsSources {
    /// All metrics, as text.
    pub(crate) async fn text(&self) -> String {
        // A store that fails is told by `/readyz`, and there are no numbers then.
        let state = self.store.records_used().await.unwrap_or_default();
        let catalogue = &self.registry.current().catalogue;
        let revisions = counted(catalogue, self.registry.draining());
        let mut exposition = Exposition::default();
        let to = &mut exposition;
        process(to, self.started_at);
        listener(to, &self.public);
        ways_out(to, &self.egress, &self.proxy);
        requests(to, catalogue);
        calls(to, &revisions);
        places(to, &self.registry.occupancies(Instant::now()));
        instances(to, &revisions);
        caches(to, catalogue, &revisions);
        records(to, &state);
        credits(to, &self.reservations);
        jobs(to, &self.jobs);
        exposition.into_text()
    }
}

fn process(to: &mut Exposition, started_at: SystemTime) {
    to.gauge("switchbay_build_info")
        .help("Always 1; the label is the running version.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1_u64);
    to.gauge("switchbay_start_time_seconds")
        .help("Time at which the process started to serve, in Unix seconds.")
        .sample(&[], unix_seconds(started_at));
}

fn listener(to: &mut Exposition, public: &ListenerPlaces) {
    to.gauge("switchbay_http_connections")
        .help("Open connections of the public listener.")
        .sample(&[], public.open());
    to.gauge("switchbay_http_requests_in_flight")
        .help(
            "Requests on the public listener whose responses are not yet sent, including those \
             in the lobby: at most `limits.in_flight` plus a quarter of it.",
        )
        .sample(&[], public.in_flight());
    listener_places(to, public);
}

fn ways_out(to: &mut Exposition, egress: &Egress, proxy: &Proxy) {
    to.counter("switchbay_egress_dials_total")
        .help("Connection attempts made on behalf of plugins.")
        .sample(&[], egress.dials());
    to.gauge("switchbay_proxy_connections")
        .help("Open connections of the forward proxy.")
        .sample(&[], proxy.open());
    to.gauge("switchbay_proxy_credentials")
        .help("Valid credentials of the forward proxy.")
        .sample(&[], proxy.lent());
}

fn listener_places(to: &mut Exposition, places: &ListenerPlaces) {
    to.gauge("switchbay_http_requests_in_lobby")
        .help("Requests in flight whose body is being read or whose caller is not known yet.")
        .sample(&[], places.in_lobby());
    to.gauge("switchbay_http_unsent_bytes")
        .help("Bytes of responses that clients have not read yet.")
        .sample(&[], places.unsent_bytes());
    let counts = places.counts();
    let family = to.counter("switchbay_http_connections_refused_total");
    family.help(
        "Connections that ended for lack of room: `closed` to make room for another, or \
         `turned_away` because their peer has its share.",
    );
    family.sample(&[("how", "closed")], counts.closed.get());
    family.sample(&[("how", "turned_away")], counts.turned_away.get());
    let family = to.counter("switchbay_http_requests_refused_total");
    family.help(
        "Requests refused for lack of places, by the share that was used up: `peer` (its \
         `in_flight`, or its part of the lobby), `listener` (the places in flight, or the \
         lobby), `unsent_bytes`.",
    );
    family.sample(&[("share", "peer")], counts.refused_peer.get());
    family.sample(&[("share", "listener")], counts.refused_listener.get());
    family.sample(&[("share", "unsent_bytes")], counts.refused_unsent.get());
    to.counter("switchbay_http_streams_reset_total")
        .help("HTTP/2 streams that were reset because the client did not read the response.")
        .sample(&[], counts.given_up.get());
}

fn unix_seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

fn requests(to: &mut Exposition, catalogue: &Catalogue) {
    let family = to.counter("switchbay_requests_total");
    family.help(
        "Answered requests for an operation, by face and by `ok` or the error code in the \
         response. The face `feature` counts calls by other plugins, for operations that one of \
         them is granted.",
    );
    for revision in catalogue.revisions() {
        for (operation, state) in revision.operations() {
            let mut face = |face, answers: &FaceAnswers| {
                for (code, count) in answers.counts() {
                    let labels = [
                        ("plugin", &*revision.plugin),
                        ("operation", operation.id.as_str()),
                        ("face", face),
                        ("code", code),
                    ];
                    family.sample(&labels, count);
                }
            };
            if operation.rest.is_some() {
                face("rest", &state.requests.rest);
            }
            if operation.tool.is_some() {
                face("tool", &state.requests.tool);
            }
            if operation.operator.is_some() {
                face("operator", &state.requests.operator);
            }
            if catalogue.is_granted(&revision.plugin, &operation.id) {
                face("feature", &state.requests.feature);
            }
        }
    }
}

fn calls(to: &mut Exposition, revisions: &[NumberedRevision]) {
    let family = to.counter("switchbay_plugin_calls_total");
    family.help("Ended calls of a plugin's revision, by outcome.");
    for revision in revisions {
        let [plugin, number] = revision.names();
        for (outcome, count) in revision.revision.calls.ended() {
            family.sample(&[plugin, number, ("outcome", outcome.label())], count);
        }
    }
    let family = to.durations("switchbay_plugin_call_duration_seconds");
    family.help(
        "Duration of a plugin's calls, from the wait for a place to the end, whatever the \
         outcome.",
    );
    for revision in revisions {
        family.histogram(&revision.names(), revision.revision.calls.duration());
    }
}

/// Of every plugin that was ever served by this process.
fn places(to: &mut Exposition, all: &BTreeMap<String, Occupancy>) {
    let family = to.gauge("switchbay_plugin_places");
    family.help("Calls of a plugin that have a place (`taken`) or wait for one (`waiting`).");
    for (plugin, places) in all {
        family.sample(&[("plugin", plugin), ("state", "taken")], places.taken);
        family.sample(&[("plugin", plugin), ("state", "waiting")], places.waiting);
    }
    let family = to.gauge("switchbay_plugin_callers_paused");
    family.help(
        "Callers for which a plugin is paused because their calls used up their processor \
         time.",
    );
    for (plugin, places) in all {
        family.sample(&[("plugin", plugin)], places.paused);
    }
    let family = to.counter("switchbay_plugin_cpu_seconds_total");
    family.help(
        "Processor time of a plugin's calls and jobs, including those that were ended \
         early.",
    );
    for (plugin, places) in all {
        family.sample(&[("plugin", plugin)], places.used.as_secs_f64());
    }
}

fn instances(to: &mut Exposition, revisions: &[NumberedRevision]) {
    let vitals = || {
        revisions
            .iter()
            .filter_map(|revision| Some((revision.names(), revision.revision.vitals()?)))
    };
    let family = to.gauge("switchbay_plugin_instances");
    family.help("Instances of a plugin's revision, idle and running.");
    for (names, vitals) in vitals() {
        family.sample(&names, vitals.instances.get());
    }
    let family = to.gauge("switchbay_plugin_memory_peak_bytes");
    family.help("Peak linear memory of a single instance of the revision.");
    for (names, vitals) in vitals() {
        family.sample(&names, vitals.memory_bytes.get());
    }
    let family = to.gauge("switchbay_plugin_memory_bytes");
    family.help("Linear memory of the revision's instances, idle and running.");
    for (names, vitals) in vitals() {
        family.sample(&names, vitals.memory_held.get());
    }
    let family = to.counter("switchbay_plugin_denials_total");
    family.help("Calls to capabilities that were denied because the revision lacks the grant.");
    for (names, vitals) in vitals() {
        family.sample(&names, vitals.denials.get());
    }
}

fn caches(to: &mut Exposition, catalogue: &Catalogue, revisions: &[NumberedRevision]) {
    let family = to.counter("switchbay_plugin_cache_reads_total");
    family.help("Reads of a plugin's cache by its revision, by result.");
    for revision in revisions
        .iter()
        .filter(|revision| revision.revision.cached_bytes().is_some())
    {
        let Some(vitals) = revision.revision.vitals() else {
            continue;
        };
        let [plugin, number] = revision.names();
        let cache = &vitals.cache;
        for (found, count) in [
            ("hit", &cache.hits),
            ("stale", &cache.stale),
            ("miss", &cache.misses),
        ] {
            family.sample(&[plugin, number, ("found", found)], count.get());
        }
    }
    let family = to.gauge("switchbay_plugin_cache_bytes");
    family.help("Bytes that the entries of a plugin's cache take up of its grant.");
    for revision in catalogue.revisions() {
        if let Some(bytes) = revision.cached_bytes() {
            family.sample(&[("plugin", &*revision.plugin)], bytes);
        }
    }
}

/// Of every plugin that ever kept a record: those that left the manifest still have theirs.
fn records(to: &mut Exposition, state: &[StateUsage]) {
    let family = to.gauge("switchbay_plugin_state_bytes");
    family.help("Bytes that a plugin's records take up of its grant.");
    for used in state {
        family.sample(&[("plugin", &used.plugin)], used.bytes);
    }
    let family = to.gauge("switchbay_plugin_state_records");
    family.help("Records that a plugin keeps.");
    for used in state {
        family.sample(&[("plugin", &used.plugin)], used.records);
    }
}

/// A revision with its number as its series have it.
struct NumberedRevision {
    revision: Arc<Revision>,
    number: String,
}

impl NumberedRevision {
    fn names(&self) -> [(&'static str, &str); 2] {
        [
            ("plugin", &self.revision.plugin),
            ("revision", &self.number),
        ]
    }
}

/// What serves, and what drains: that counts on until its last call has ended.
fn counted(catalogue: &Catalogue, draining: Vec<Arc<Revision>>) -> Vec<NumberedRevision> {
    let mut all: Vec<NumberedRevision> = Vec::new();
    for revision in catalogue.revisions().iter().cloned().chain(draining) {
        // A revision that was put together anew, with other rights, has one series and not two.
        let is_new = !all.iter().any(|one| {
            one.revision.plugin == revision.plugin && one.revision.number == revision.number
        });
        if is_new {
            let number = revision.number.to_string();
            all.push(NumberedRevision { revision, number });
        }
    }
    all
}

/// By key and account there is `/admin/v1/usage`: as labels they would grow without bound.
fn credits(to: &mut Exposition, reservations: &Reservations) {
    let counts = reservations.counts();
    let family = to.counter("switchbay_credit_reservations_total");
    family.help("Reservations of credits, by resolution.");
    for (resolution, count) in counts.resolved() {
        family.sample(&[("resolution", resolution.name())], count);
    }
    to.gauge("switchbay_credit_reservations_open")
        .help("Reservations of credits that are not yet resolved.")
        .sample(&[], reservations.open());
    to.counter("switchbay_credits_settled_total")
        .help("Credits that calls spent.")
        .sample(&[], counts.credits_settled());
}

fn jobs(to: &mut Exposition, jobs: &JobQueue) {
    let family = to.gauge("switchbay_jobs");
    family.help("Jobs of a plugin that wait for their turn (`waiting`) or run (`running`).");
    for (plugin, waiting, running) in jobs.counts() {
        family.sample(&[("plugin", &*plugin), ("state", "waiting")], waiting);
        family.sample(&[("plugin", &*plugin), ("state", "running")], running);
    }
}
