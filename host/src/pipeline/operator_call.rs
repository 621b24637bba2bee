//! The operator's door to a plugin: an operation that is served to nobody else.
//!
//! No credential, window, month or price: whoever has the operator's token may call it, and the history says who did and why,
//! before the plugin hears of it. What a plugin is given and what it may answer are the same as on the road.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};

use super::call_log::{FailureNotice, log};
use super::check_reply::failed;
use super::feature_door::{FeatureCaller, FeatureRoad};
use super::invoke::invoke;
use super::read_input::{self, UnreadArguments};
use super::{Pipeline, owner};
use crate::catalogue::Bound;
use crate::contract::error::{Code, Refusal};
use crate::contract::feature_call::FeatureDoor;
use crate::contract::operation::{Call, CallOrigin, CallerKind, OperatorFace, PluginReply};
use crate::contract::tenant::Tenant;
use crate::observe::log_lines::CallFields;
use crate::registry::lifecycle::OperatorNote;
use crate::registry::{Registry, mark};

/// No caller's name begins so: plugins know the operator by a name that nobody else can have.
pub(super) const OPERATOR: &str = "\0operator";

/// What the operator calls, who does, and why.
pub(crate) struct OperatorCall {
    pub(crate) plugin: String,
    pub(crate) operation: String,
    pub(crate) input: Map<String, Value>,
    pub(crate) mark: OperatorNote,
    pub(crate) request_id: String,
}

impl Pipeline {
    /// Runs one call from its input to the checked reply. Once the history has it, it runs to its end.
    pub(crate) async fn call_by_operator(
        self: &Arc<Self>,
        registry: &Arc<Registry>,
        call: OperatorCall,
    ) -> Result<PluginReply, Refusal> {
        let snapshot = registry.current();
        let mut served = snapshot.catalogue.of_the_operator();
        let is_called = |one: &Bound| {
            *one.revision.plugin == *call.plugin && one.operation.id == call.operation
        };
        let Some((bound, face)) = served.find(|(one, _)| is_called(one)) else {
            return Err(unknown(&call));
        };
        let (pipeline, registry) = (Arc::clone(self), Arc::clone(registry));
        let features = FeatureRoad::of_request(self, &snapshot.catalogue, bound, || {
            FeatureCaller::operator(&call.request_id)
        });
        let (bound, call) = (
            bound.clone(),
            prepared(self, (bound, face), call, features)?,
        );
        let called = async move { run(&pipeline, &registry, &bound, call).await };
        let ended = self.calls.run_to_end(called).await;
        ended.unwrap_or_else(|error| Err(Refusal::internal(error.to_string())))
    }
}

fn unknown(call: &OperatorCall) -> Refusal {
    let OperatorCall {
        plugin, operation, ..
    } = call;
    let message = format!(
        "Plugin `{plugin}` has no operation `{operation}` for the operator; see `switchbay plugin show {plugin}`"
    );
    Refusal::new(Code::NotFound, message)
}

/// The call as the plugin gets it, and what the history is told of it.
fn prepared(
    pipeline: &Pipeline,
    (bound, face): (&Bound, &OperatorFace),
    call: OperatorCall,
    features: Option<Arc<dyn FeatureDoor>>,
) -> Result<(Call, OperatorNote), Refusal> {
    let unread = UnreadArguments::Tool {
        arguments: call.input,
        fixed: &Map::new(),
        bytes_max: face.bytes_max,
    };
    let input = read_input::read(unread, &face.input)?;
    let tenant = Tenant::operator();
    let standing = bound.revision.judge(&tenant);
    standing.map_err(|error| failed(&bound.operation, &error))?;
    let mark = call.mark;
    let call = Call {
        request_id: call.request_id,
        operation: call.operation,
        owner: owner(&pipeline.owner_secret, OPERATOR, &call.plugin),
        tenant,
        key: None,
        caller: CallerKind::Operator,
        via: CallOrigin::Operator,
        deadline: bound.operation.deadline,
        input: Value::Object(input).to_string(),
        features,
    };
    Ok((call, mark))
}

async fn run(
    pipeline: &Pipeline,
    registry: &Registry,
    bound: &Bound,
    (call, noted): (Call, OperatorNote),
) -> Result<PluginReply, Refusal> {
    let (started, request_id, owner) = (Instant::now(), call.request_id.clone(), call.owner);
    let operation = &bound.operation.id;
    let note = |outcome, mark| registry.note_call(&bound.revision, operation, outcome, mark);
    note(None, noted.clone()).await?;
    // What was changed while the history was written holds: a right that was taken away, or the plugin switched off.
    let serving = registry.serving(&bound.revision.plugin);
    let answered = if serving.is_some_and(|serving| Arc::ptr_eq(&serving, &bound.revision)) {
        invoke(&pipeline.calls, bound, call, None).await.0
    } else {
        let message = "The plugin was changed while the call waited; call again";
        Err(Refusal::new(Code::Conflict, message))
    };
    let about = CallFields {
        request_id: &request_id,
        operation,
        plugin: &bound.revision.plugin,
        revision: bound.revision.number,
        owner: Some(&owner),
        via: CallOrigin::Operator,
    };
    log(&answered, about, started, FailureNotice::Warning);
    let answers = &bound.state.requests.operator;
    let outcome = match &answered {
        Ok(reply) => {
            answers.ok();
            reply.outcome.clone()
        }
        Err(refusal) => {
            answers.refused(refusal);
            refusal.code.clone().into_owned()
        }
    };
    if let Err(error) = note(Some(&outcome), mark(&noted.by, &noted.why)).await {
        tracing::error!(request_id, operation, outcome, %error, "the end of an operator's call could not be kept");
    }
    answered
}
