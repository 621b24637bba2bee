//! `switchbay:features/client`: a plugin's calls of other plugins' operations, handed to the door that came with its own call.
//!
//! Says what is granted, and translates. Must not know what is served, nor how a call is run.

use std::pin::Pin;

use wasmtime::component::{Accessor, HasSelf};

use super::GuestState;
use super::bindings::switchbay::features::client::{self as wire, Host, HostWithStore};
use crate::contract::error::Refusal;
use crate::contract::feature_call::{FeatureEnd, FeatureError, FeatureRequest, feature_name};
use crate::contract::grants::FEATURES;
use crate::runtime::in_flight::ActPlace;

/// Calls of one call under way at once; the next is refused, because each holds an instance of another plugin.
const IN_FLIGHT_MAX: usize = 4;

impl Host for GuestState {}

impl<T: Send + 'static> HostWithStore<T> for HasSelf<GuestState> {
    async fn call(
        accessor: &Accessor<T, Self>,
        plugin: String,
        operation: String,
        input: String,
    ) -> Result<wire::Answer, wire::Error> {
        let name = feature_name(&plugin, &operation);
        let request = FeatureRequest {
            plugin,
            operation,
            input,
        };
        let (running, _place) =
            accessor.with(|mut access| access.get().begin_feature(&name, request))?;
        match running.await {
            Ok(answer) => Ok(wire::Answer {
                outcome: answer.outcome,
                data: answer.data,
            }),
            Err(error) => Err(told(error, &name)),
        }
    }
}

/// A call that is under way.
type RunningFeature = Pin<Box<dyn Future<Output = FeatureEnd> + Send>>;

impl GuestState {
    fn begin_feature(
        &self,
        name: &str,
        request: FeatureRequest,
    ) -> Result<(RunningFeature, ActPlace), wire::Error> {
        let may = self.lent.rights.grant_name(FEATURES, name);
        let Some(door) = self.features.as_ref().filter(|_| may) else {
            let atom = format!("{FEATURES}:{name}");
            return Err(wire::Error::NotGranted(self.denied(&atom)));
        };
        let place = self.in_flight.place(FEATURES, IN_FLIGHT_MAX);
        let place = place.ok_or(wire::Error::Busy)?;
        Ok((door.call(request), place))
    }
}

fn told(error: FeatureError, name: &str) -> wire::Error {
    match error {
        FeatureError::NotAcceptable(rule) => wire::Error::NotAcceptable(rule),
        FeatureError::Absent => wire::Error::Absent(format!("there is no operation `{name}`")),
        FeatureError::TooDeep => wire::Error::TooDeep,
        FeatureError::Refused(refusal) => wire::Error::Failed(failure(*refusal)),
    }
}

fn failure(refusal: Refusal) -> wire::Failure {
    let milliseconds = |seconds: u64| u32::try_from(seconds.saturating_mul(1000));
    wire::Failure {
        retry_after_ms: (refusal.retry_after_s)
            .map(|seconds| milliseconds(seconds).unwrap_or(u32::MAX)),
        details: (!refusal.details.is_empty())
            .then(|| serde_json::Value::Object(refusal.details).to_string()),
        code: refusal.code.into_owned(),
        message: refusal.message.into_owned(),
    }
}
