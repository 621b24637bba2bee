//! `GET /admin/v1/events`: what happens to the plugins, as it happens (Server-Sent Events, WHATWG HTML 9.2).
//!
//! An event has its number as `id`, so that a listener which comes back with `Last-Event-ID` misses nothing that is still in
//! the history. A stream ends before the time of a request does; listeners come back by themselves.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::endpoint::{EndpointParameters, PrintedAnswer};
use super::request::Timestamp;
use crate::base::tasks::Tasks;
use crate::contract::error::{Code, Refusal};
use crate::records::plugin_life::KeptEvent;
use crate::registry::{Registry, RegistryError};
use crate::stores::Store;
use crate::transport::http::content::ResponseContent;
use crate::transport::http::envelope;

/// Streams at once.
pub(crate) const STREAMS_MAX: usize = 32;
/// Events that wait for a slow listener. One that falls further behind is cut, and comes back.
const WAITING_MAX: usize = 64;
/// A silent stream says that it is alive.
const ALIVE_EVERY: Duration = Duration::from_secs(10);
const LAST_EVENT_ID: &str = "last-event-id";

/// The history of events, and the streams that follow it.
pub(crate) struct EventStreams {
    pub(crate) registry: Arc<Registry>,
    pub(crate) store: Arc<Store>,
    pub(crate) tasks: Tasks,
    /// A place for each stream.
    pub(crate) places: Arc<Semaphore>,
    /// How long a request may take.
    pub(crate) request_time: Duration,
}

impl EventStreams {
    /// The kept events after `after`, of one plugin where it is named.
    pub(super) async fn history(&self, query: EventsQuery) -> Result<EventList, Refusal> {
        let EventsQuery { plugin, after } = query;
        let events = kept(&self.store, plugin, after.unwrap_or(0)).await?;
        let events = events.iter().map(EventView::of).collect();
        Ok(EventList { events })
    }

    /// The stream: what the listener missed, then what happens.
    pub(super) async fn stream(
        &self,
        headers: &HeaderMap,
        query: EventsQuery,
    ) -> Result<PrintedAnswer, Refusal> {
        let EventsQuery { plugin, after } = query;
        let last = headers
            .get(LAST_EVENT_ID)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.parse().ok());
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| too_many_streams())?;
        // Heard from before the history is read, so that nothing falls between.
        let live = self.registry.listen();
        let missed = match last.or(after) {
            Some(after) => kept(&self.store, plugin.clone(), after).await?,
            None => Vec::new(),
        };
        let (sender, stream) = mpsc::channel(WAITING_MAX.max(missed.len() + 1));
        let sent = missed.last().map_or(0, |event| event.id);
        for event in missed {
            // There is room for all of them.
            sender.try_send(line(&event)).ok();
        }
        // A stream that has said nothing yet has not begun for some listeners.
        sender.try_send(Bytes::from_static(b": listening\n\n")).ok();
        let ends = self.request_time.mul_f32(0.9);
        self.tasks
            .spawn(send(sender, live, plugin, sent, ends, place));
        let mut response = Response::new(ResponseContent::Stream(stream));
        let headers = response.headers_mut();
        envelope::set(headers, CONTENT_TYPE, "text/event-stream");
        envelope::set(headers, CACHE_CONTROL, "no-store");
        Ok(PrintedAnswer(response))
    }
}

fn too_many_streams() -> Refusal {
    let message = format!("{STREAMS_MAX} event streams are open, which is the limit");
    Refusal::new(Code::ServiceUnavailable, message).retry_after(5)
}

async fn send(
    sender: mpsc::Sender<Bytes>,
    mut live: tokio::sync::broadcast::Receiver<Arc<KeptEvent>>,
    plugin: Option<String>,
    sent: u64,
    ends: Duration,
    _place: OwnedSemaphorePermit,
) {
    let mut end = std::pin::pin!(tokio::time::sleep(ends));
    let mut alive = tokio::time::interval(ALIVE_EVERY);
    loop {
        let text = tokio::select! {
            () = end.as_mut() => return,
            () = sender.closed() => return,
            _ = alive.tick() => Bytes::from_static(b":\n\n"),
            event = live.recv() => match event {
                Ok(event) if event.id <= sent || !is_of(&event, plugin.as_deref()) => continue,
                Ok(event) => line(&event),
                Err(RecvError::Lagged(_) | RecvError::Closed) => return,
            },
        };
        if sender.try_send(text).is_err() {
            return;
        }
    }
}

async fn kept(
    store: &Arc<Store>,
    plugin: Option<String>,
    after: u64,
) -> Result<Vec<KeptEvent>, Refusal> {
    let events = store.plugin_events(plugin, after).await;
    Ok(events.map_err(RegistryError::from)?)
}

fn is_of(event: &KeptEvent, plugin: Option<&str>) -> bool {
    plugin.is_none_or(|plugin| event.event["plugin"] == plugin)
}

fn line(event: &KeptEvent) -> Bytes {
    let view = EventView::of(event);
    let (id, name, data) = (view.id, &view.event, json!(view));
    Bytes::from(format!("id: {id}\nevent: {name}\ndata: {data}\n\n"))
}

/// Which events.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EventsQuery {
    /// Only events of this plugin.
    pub(crate) plugin: Option<String>,
    /// Only events with a number above this one.
    pub(crate) after: Option<u64>,
}

impl EndpointParameters for EventsQuery {
    const RULE: &'static str = "must be `plugin`, or `after` with the number of an event";
}

/// What happened, oldest first.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct EventList {
    events: Vec<EventView>,
}

/// Something that happened to a plugin.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct EventView {
    /// Counts up; what `after` and `Last-Event-ID` name.
    id: u64,
    plugin: String,
    revision: Option<u64>,
    /// The state that a revision came into, or `approved`, `revoked`, `disabled`, `enabled`, `granted`, `called` or
    /// `call-ended`.
    event: String,
    /// What was approved, revoked or is granted by the manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    atoms: Vec<String>,
    /// The operation that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    /// How its call ended: `ok`, or an error code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    at: Timestamp,
    by: String,
    why: String,
}

impl EventView {
    fn of(kept: &KeptEvent) -> Self {
        let KeptEvent { id, event, .. } = kept;
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        Self {
            id: *id,
            plugin: text("plugin"),
            revision: event["revision"].as_u64(),
            event: text("event"),
            operation: event["operation"].as_str().map(str::to_owned),
            outcome: event["outcome"].as_str().map(str::to_owned),
            atoms: Vec::deserialize(&event["atoms"]).unwrap_or_default(),
            at: Timestamp::of(event["at"].as_u64().unwrap_or(0)),
            by: text("by"),
            why: text("why"),
        }
    }
}
