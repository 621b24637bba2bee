//! The one road to a plugin. Both transports call [`Pipeline::execute`], so no step can be forgotten on one face. Jobs and other
//! plugins have doors of their own ([`run_job`], [`feature_door`]): what those leave out was decided by whoever submitted the
//! job or granted the operation. Nothing else invokes a plugin.
//!
//! The order of the steps is the design (docs/architecture.md, "The road of a request"): each step's file says why it stands
//! where it stands. A credential is judged before anything is counted, every authenticated call takes its slot before its input
//! is looked at, and a plugin sees only input that fits.

mod call_log;
mod check_reply;
mod count_month;
mod feature_door;
mod identify;
mod invoke;
pub(crate) mod operator_call;
pub(crate) mod read_input;
mod read_month;
mod reserve;
pub(crate) mod run_job;
mod settle;
mod take_slots;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use sha2::{Digest, Sha256};

use self::call_log::{AbandonedCallLog, FailureNotice, log};
use self::check_reply::failed;
use self::count_month::count_month;
use self::feature_door::{FeatureCaller, FeatureRoad};
use self::identify::identify;
use self::invoke::invoke;
use self::read_input::UnreadArguments;
use self::read_month::read_month;
use self::reserve::{ChargedCall, reserve};
use self::take_slots::take_slots;
use crate::auth::oauth::OAuth;
use crate::auth::{Caller, PresentedCredential};
use crate::base::tasks::Tasks;
use crate::catalogue::{Bound, Catalogue};
use crate::config::Credits;
use crate::contract::error::Refusal;
use crate::contract::operation::{
    Call, CallOrigin, Face, IdempotencySource, Owner, PluginReply, Scope,
};
use crate::contract::schema::FaceSchema;
use crate::metering::identifier::Identifier;
use crate::metering::reservations::Reservations;
use crate::metering::{CallMeters, UsageCounts, Windows};
use crate::observe::log_lines::CallFields;
use crate::observe::metrics::FaceAnswers;
use crate::places::peer::Address;
use crate::places::{PlacesFull, RequestPlace};
use crate::stores::Store;

/// What the steps of the road work with.
pub(crate) struct Pipeline {
    pub(crate) store: Arc<Store>,
    /// Where an identity provider is configured.
    pub(crate) oauth: Option<Arc<OAuth>>,
    /// From it come the names that callers have within each plugin.
    pub(crate) owner_secret: [u8; 32],
    pub(crate) usage: Arc<UsageCounts>,
    pub(crate) windows: Windows,
    pub(crate) reservations: Arc<Reservations>,
    pub(crate) prices: Credits,
    /// Calls that are paid for, and the operator's, which run to their end whether anybody waits or not; and calls by plugins,
    /// which do not.
    pub(crate) calls: Tasks,
}

/// A call as a transport read it, before anything is decided.
pub(crate) struct CallRequest<'r> {
    pub(crate) bound: &'r Bound,
    /// What the operation was found in.
    pub(crate) catalogue: &'r Arc<Catalogue>,
    pub(crate) face: Face,
    pub(crate) credential: PresentedCredential,
    /// Where the request comes from, if it is a first-party page's; counts where there is no credential.
    pub(crate) first_party: Option<Address>,
    pub(crate) identifier: Identifier,
    pub(crate) unread: UnreadArguments<'r>,
    pub(crate) request_id: &'r str,
    /// Its place, in the lobby until its caller is known.
    pub(crate) visit: &'r RequestPlace,
}

/// What came of a call. The meters are there however it ended, once it was admitted or refused by one of them.
pub(crate) struct Answered {
    pub(crate) outcome: Result<PluginReply, Refusal>,
    pub(crate) meters: CallMeters,
    pub(crate) plugin_time: Option<Duration>,
}

/// What a call leaves behind on its way, however far it comes.
#[derive(Default)]
struct CallTrace {
    meters: CallMeters,
    owner: Option<Owner>,
    plugin_time: Option<Duration>,
}

impl Pipeline {
    /// Runs one call from credential to checked reply.
    pub(crate) async fn execute(self: &Arc<Self>, request: CallRequest<'_>) -> Answered {
        let started = Instant::now();
        let (bound, face, request_id) = (request.bound, request.face, request.request_id);
        let about = CallFields {
            request_id,
            operation: &bound.operation.id,
            plugin: &bound.revision.plugin,
            revision: bound.revision.number,
            owner: None,
            via: CallOrigin::Face(face),
        };
        let abandoned = AbandonedCallLog { about, started };
        let mut trace = CallTrace::default();
        let outcome = self.run_steps(request, &mut trace).await;
        std::mem::forget(abandoned);
        let owner = trace.owner.as_ref();
        let about = CallFields { owner, ..about };
        log(&outcome, about, started, FailureNotice::Warning);
        match &outcome {
            Ok(_) => answers(bound, face).ok(),
            Err(refusal) => answers(bound, face).refused(refusal),
        }
        Answered {
            outcome,
            meters: trace.meters,
            plugin_time: trace.plugin_time,
        }
    }

    /// The first step alone, for a transport that must know of a refused credential before it runs anything.
    pub(crate) async fn check_credential(
        &self,
        bound: &Bound,
        face: Face,
        credential: &PresentedCredential,
    ) -> Result<(), Refusal> {
        let (scope, _) = face_of(bound, face);
        self.identify(face, scope, credential).await.map(drop)
    }

    async fn run_steps(
        self: &Arc<Self>,
        request: CallRequest<'_>,
        trace: &mut CallTrace,
    ) -> Result<PluginReply, Refusal> {
        let (bound, operation) = (request.bound, &request.bound.operation);
        let plugin = &bound.revision.plugin;
        let (scope, schema) = face_of(bound, request.face);

        let caller = self.caller(&request, scope).await?;
        // Whoever had to wait for an issuer's keys comes by another time than it started: a window that is over must not open again.
        let now = SystemTime::now();
        let owner = *trace
            .owner
            .insert(owner(&self.owner_secret, caller.owner(), plugin));
        let meters = &mut trace.meters;
        read_month(&self.usage, &self.store, &caller, now, meters).await?;
        take_slots(&self.windows, &caller, plugin, operation, now, meters)?;
        // Beside the windows: what a tenant may not run at all costs it neither its month nor its credits. It is judged again
        // when there is a place.
        let tenant = caller.tenant();
        let standing = bound.revision.judge(&tenant);
        standing.map_err(|error| failed(operation, &error))?;
        let input = read_input::read(request.unread, schema)?;
        let identifier = identifier_of(&caller, bound, request.identifier)?;
        count_month(&self.usage, &self.store, &caller, operation, now, meters).await?;
        let charged = ChargedCall {
            caller: &caller,
            plugin,
            operation,
            identifier: &identifier,
            request_id: request.request_id,
            now,
        };
        let charge = reserve(
            &self.reservations,
            &self.store,
            &self.prices,
            charged,
            meters,
        )
        .await?;
        let call = Call {
            request_id: request.request_id.to_owned(),
            operation: operation.id.clone(),
            owner,
            tenant,
            key: caller.key(),
            caller: caller.kind(),
            via: CallOrigin::Face(request.face),
            deadline: operation.deadline,
            input: Value::Object(input).to_string(),
            features: FeatureRoad::of_request(self, request.catalogue, bound, || {
                FeatureCaller::of_request(&caller, request.request_id)
            }),
        };
        let (answered, plugin_time) = invoke(&self.calls, bound, call, charge).await;
        trace.plugin_time = Some(plugin_time);
        answered
    }

    /// Who calls. A first-party page needs no credential where the operation has an allowance for its address; it stays in the
    /// lobby, where strangers are.
    async fn caller(&self, request: &CallRequest<'_>, scope: &Scope) -> Result<Caller, Refusal> {
        let terms = &request.bound.operation.terms;
        let allowed = request
            .first_party
            .filter(|_| terms.first_party_per_minute.is_some());
        if let (Some(address), PresentedCredential::Nothing) = (allowed, &request.credential) {
            return Ok(Caller::of_address(address));
        }
        let caller = self
            .identify(request.face, scope, &request.credential)
            .await?;
        request.visit.identified().map_err(PlacesFull::refusal)?;
        Ok(caller)
    }

    async fn identify(
        &self,
        face: Face,
        scope: &Scope,
        credential: &PresentedCredential,
    ) -> Result<Caller, Refusal> {
        let (store, oauth) = (&self.store, self.oauth.as_deref());
        identify(store, oauth, face, scope, credential, SystemTime::now()).await
    }
}

/// Counts what a transport answers for an operation without running it.
pub(crate) fn refused_before(bound: &Bound, face: Face, refusal: &Refusal) {
    answers(bound, face).refused(refusal);
}

/// The identifier, where it counts: it is ignored for others than self-service keys and for operations that have their own.
fn identifier_of(
    caller: &Caller,
    bound: &Bound,
    identifier: Identifier,
) -> Result<Identifier, Refusal> {
    match (caller.account(), bound.operation.terms.idempotency) {
        (Some(_), IdempotencySource::Key) => identifier.check().map(|()| identifier),
        (None, _) | (Some(_), IdempotencySource::RequestId) => Ok(Identifier::Absent),
    }
}

fn face_of(bound: &Bound, face: Face) -> (&Scope, &FaceSchema) {
    let operation = &bound.operation;
    let found = match face {
        Face::Rest => operation
            .rest
            .as_ref()
            .map(|face| (&face.scope, &*face.input)),
        Face::Tool => operation
            .tool
            .as_ref()
            .map(|face| (&face.scope, &face.input)),
    };
    found.expect("a transport finds an operation by the face that it calls")
}

fn answers(bound: &Bound, face: Face) -> &FaceAnswers {
    match face {
        Face::Rest => &bound.state.requests.rest,
        Face::Tool => &bound.state.requests.tool,
    }
}

/// The caller's name within one plugin: stable, and unrelated to its name in any other.
fn owner(secret: &[u8; 32], caller: &str, plugin: &str) -> Owner {
    let digest = Sha256::new()
        .chain_update(secret)
        .chain_update(plugin.as_bytes())
        .chain_update([0])
        .chain_update(caller.as_bytes())
        .finalize();
    Owner::of(&digest.into())
}
