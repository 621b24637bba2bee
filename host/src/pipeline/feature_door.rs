//! The door for calls by plugins: another plugin, which calls an operation for the caller of its own call.
//!
//! Its grant is judged where it asks. What stands between is in this order: how deep the call is; what was served when the
//! request began; the operation's own minute, so that a plugin cannot call more often for somebody than that one could; the
//! tenant, who pays in places and processor time; the input. No scope is asked and no price is taken: whoever approved the
//! grant decided that.
//!
//! Each call runs on a task of its own. So the caller's meter does not count it, it is never polled within the caller's poll,
//! and what the caller holds is its place alone: a quantum is given up with each poll. A place is waited for along the grants,
//! which go in no circle, and no longer than the caller has time; so no two calls wait for each other for good.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value};

use super::call_log::{AbandonedCallLog, FailureNotice, log};
use super::check_reply::failed;
use super::operator_call::OPERATOR;
use super::read_input::read_feature;
use super::take_slots::take_operation_slot;
use super::{Pipeline, invoke, owner};
use crate::auth::Caller;
use crate::catalogue::revision::Revision;
use crate::catalogue::{Bound, Catalogue};
use crate::contract::error::{Code, Refusal};
use crate::contract::feature_call::{
    FeatureAnswer, FeatureDoor, FeatureEnd, FeatureError, FeatureRequest,
};
use crate::contract::operation::{Call, CallOrigin, CallerKind, Owner, PluginReply};
use crate::contract::tenant::Tenant;
use crate::observe::log_lines::CallFields;
use crate::records::api_key::KeyRecord;
use crate::records::job::Job;
use crate::registry::Registry;

/// Calls by plugins that one request leads to, each made by the one before.
const DEPTH_MAX: u32 = 2;
/// Calls that one call, or one run of a job, may make: what is read, checked and logged of each is not on the plugin's meter.
const OF_CALL_MAX: u32 = 256;
const OF_JOB_MAX: u32 = 10_000;

/// Who a call is made for, however many plugins stand between.
pub(super) struct FeatureCaller {
    /// As no plugin knows it: the key's id, a name of client and subject, or the address.
    pub(super) name: String,
    pub(super) kind: CallerKind,
    tenant: Tenant,
    key: Option<Arc<str>>,
    /// Its API key, for the numbers that this has of its own.
    pub(super) key_record: Option<Arc<KeyRecord>>,
    request_id: String,
}

/// The way of one call.
pub(super) struct FeatureRoad {
    pipeline: Arc<Pipeline>,
    catalogue: CatalogueSource,
    caller: Arc<FeatureCaller>,
    /// Calls by plugins that led to the one whose way this is.
    depth: u32,
    /// When that has to be over.
    until: Instant,
    counts: Arc<CallCounts>,
}

/// What one call has asked for.
struct CallCounts {
    /// Calls that it may still make.
    left: AtomicU32,
    most: u32,
    /// Whether the operator was told of one that failed.
    warned: AtomicBool,
}

/// What is called.
enum CatalogueSource {
    /// What the request was routed by.
    Taken(Arc<Catalogue>),
    /// What is served at the moment: a job of an hour must not hold what was replaced.
    Current(Arc<Registry>),
}

/// One call, found.
struct FeatureCall {
    pipeline: Arc<Pipeline>,
    catalogue: Arc<Catalogue>,
    bound: Bound,
    caller: Arc<FeatureCaller>,
    input: String,
    /// Calls by plugins up to this one.
    depth: u32,
    /// When whoever made it has to be over.
    until: Instant,
    counts: Arc<CallCounts>,
}

impl CallCounts {
    fn new(most: u32) -> Arc<Self> {
        Arc::new(Self {
            left: most.into(),
            most,
            warned: AtomicBool::new(false),
        })
    }

    /// Takes one, or refuses.
    fn take(&self) -> Result<(), FeatureError> {
        let one_less = |left: u32| left.checked_sub(1);
        let taken = self.left.fetch_update(Relaxed, Relaxed, one_less);
        taken.map(drop).map_err(|_| {
            let message = format!(
                "One call may make at most {} calls of other plugins",
                self.most
            );
            let refusal = Refusal::new(Code::RateLimited, message);
            FeatureError::Refused(Box::new(refusal))
        })
    }
}

impl FeatureCaller {
    /// Whoever a request's credential is good for.
    pub(super) fn of_request(caller: &Caller, request_id: &str) -> Self {
        Self {
            name: caller.owner().to_owned(),
            kind: caller.kind(),
            tenant: caller.tenant(),
            key: caller.key(),
            key_record: caller.key_record().cloned(),
            request_id: request_id.to_owned(),
        }
    }

    pub(super) fn operator(request_id: &str) -> Self {
        Self {
            name: OPERATOR.to_owned(),
            kind: CallerKind::Operator,
            tenant: Tenant::operator(),
            key: None,
            key_record: None,
            request_id: request_id.to_owned(),
        }
    }

    /// Whom a job is worked on for. A job of an earlier version may have no key and no tenant; its caller then has a name of
    /// its own.
    pub(super) fn of_job(job: &Job, owner: Owner, key_record: Option<Arc<KeyRecord>>) -> Self {
        let tenant = job.tenant(owner);
        let name = match job.caller {
            CallerKind::Operator => OPERATOR,
            CallerKind::ApiKey | CallerKind::OAuth | CallerKind::FirstParty => {
                job.key.as_deref().unwrap_or(tenant.name())
            }
        };
        Self {
            name: name.to_owned(),
            kind: job.caller,
            key: job.key.as_deref().map(Into::into),
            key_record,
            request_id: job.request_id.clone(),
            tenant,
        }
    }
}

impl FeatureRoad {
    /// The way of a request's call, where its plugin is granted any operation.
    pub(super) fn of_request(
        pipeline: &Arc<Pipeline>,
        catalogue: &Arc<Catalogue>,
        bound: &Bound,
        caller: impl FnOnce() -> FeatureCaller,
    ) -> Option<Arc<dyn FeatureDoor>> {
        let (revision, operation) = (&bound.revision, &bound.operation);
        revision.calls_features.then(|| {
            Arc::new(Self {
                pipeline: Arc::clone(pipeline),
                catalogue: CatalogueSource::Taken(Arc::clone(catalogue)),
                caller: Arc::new(caller()),
                depth: 0,
                until: Instant::now() + revision.time_of(operation),
                counts: CallCounts::new(OF_CALL_MAX),
            }) as Arc<dyn FeatureDoor>
        })
    }

    /// The way of a job that has so long; the same holds.
    pub(super) fn of_job(
        pipeline: &Arc<Pipeline>,
        registry: &Arc<Registry>,
        revision: &Revision,
        caller: FeatureCaller,
        left: Duration,
    ) -> Option<Arc<dyn FeatureDoor>> {
        revision.calls_features.then(|| {
            Arc::new(Self {
                pipeline: Arc::clone(pipeline),
                catalogue: CatalogueSource::Current(Arc::clone(registry)),
                caller: Arc::new(caller),
                depth: 0,
                until: Instant::now() + left,
                counts: CallCounts::new(OF_JOB_MAX),
            }) as Arc<dyn FeatureDoor>
        })
    }

    fn find(&self, request: FeatureRequest) -> Result<FeatureCall, FeatureError> {
        if self.depth >= DEPTH_MAX {
            return Err(FeatureError::TooDeep);
        }
        self.counts.take()?;
        let catalogue = match &self.catalogue {
            CatalogueSource::Taken(catalogue) => Arc::clone(catalogue),
            CatalogueSource::Current(registry) => Arc::clone(&registry.current().catalogue),
        };
        let found = catalogue.feature(&request.plugin, &request.operation);
        // What is the operator's alone is there for nobody else, whatever was granted; and a component that was built before
        // there were callers of a kind is not there for those.
        let is_there = |bound: &&Bound| {
            bound.operation.operator.is_none() && bound.revision.knows(self.caller.kind)
        };
        let bound = found.filter(is_there).ok_or(FeatureError::Absent)?.clone();
        Ok(FeatureCall {
            pipeline: Arc::clone(&self.pipeline),
            catalogue,
            bound,
            caller: Arc::clone(&self.caller),
            input: request.input,
            depth: self.depth + 1,
            until: self.until,
            counts: Arc::clone(&self.counts),
        })
    }
}

impl FeatureDoor for FeatureRoad {
    fn call(&self, request: FeatureRequest) -> Pin<Box<dyn Future<Output = FeatureEnd> + Send>> {
        match self.find(request) {
            Err(error) => Box::pin(std::future::ready(Err(error))),
            Ok(call) => {
                let running = self.pipeline.calls.run_while_awaited(call.run());
                Box::pin(async {
                    running.await.unwrap_or_else(|error| {
                        tracing::error!(%error, "a call by a plugin ended without an outcome");
                        let refusal = Refusal::internal(error.to_string());
                        Err(FeatureError::Refused(Box::new(refusal)))
                    })
                })
            }
        }
    }
}

impl FeatureCall {
    async fn run(self) -> FeatureEnd {
        let started = Instant::now();
        let (revision, caller) = (&self.bound.revision, &self.caller);
        let owner = owner(&self.pipeline.owner_secret, &caller.name, &revision.plugin);
        let about = CallFields {
            request_id: &caller.request_id,
            operation: &self.bound.operation.id,
            plugin: &revision.plugin,
            revision: revision.number,
            owner: Some(&owner),
            via: CallOrigin::Feature,
        };
        let abandoned = AbandonedCallLog { about, started };
        let mut broken = None;
        let outcome = self.run_steps(owner, &mut broken).await;
        std::mem::forget(abandoned);
        let has_cause = outcome
            .as_ref()
            .is_err_and(|refusal| refusal.cause.is_some());
        let notice = if has_cause && self.counts.warned.swap(true, Relaxed) {
            FailureNotice::OnRequest
        } else {
            FailureNotice::Warning
        };
        log(&outcome, about, started, notice);
        let answers = &self.bound.state.requests.feature;
        match outcome {
            Ok(reply) => {
                answers.ok();
                Ok(FeatureAnswer {
                    outcome: reply.outcome,
                    data: reply.data,
                })
            }
            Err(refusal) => {
                answers.refused(&refusal);
                Err(match broken {
                    Some(rule) => FeatureError::NotAcceptable(rule),
                    None => FeatureError::Refused(Box::new(refusal)),
                })
            }
        }
    }

    /// `broken` is the rule that the input breaks, where that is why it is refused.
    async fn run_steps(
        &self,
        owner: Owner,
        broken: &mut Option<String>,
    ) -> Result<PluginReply, Refusal> {
        let (revision, operation) = (&self.bound.revision, &self.bound.operation);
        let (windows, now) = (&self.pipeline.windows, SystemTime::now());
        take_operation_slot(windows, &self.caller, &revision.plugin, operation, now)?;
        let standing = revision.judge(&self.caller.tenant);
        standing.map_err(|error| failed(operation, &error))?;
        let input = read_feature(&self.input, &operation.feature);
        let input = input.map_err(|rule| Refusal::invalid(None, broken.insert(rule)))?;
        let (answered, _) = invoke::run(&self.bound, self.call(owner, input)).await;
        answered
    }

    fn call(&self, owner: Owner, input: Map<String, Value>) -> Call {
        let (caller, operation) = (&self.caller, &self.bound.operation);
        let left = self.until.saturating_duration_since(Instant::now());
        let deadline = self.bound.revision.time_of(operation).min(left);
        Call {
            request_id: caller.request_id.clone(),
            operation: operation.id.clone(),
            owner,
            tenant: caller.tenant.clone(),
            key: caller.key.clone(),
            caller: caller.kind,
            via: CallOrigin::Feature,
            deadline,
            input: Value::Object(input).to_string(),
            features: self.onward(deadline),
        }
    }

    /// The callee's own way, on the same catalogue.
    fn onward(&self, time: Duration) -> Option<Arc<dyn FeatureDoor>> {
        self.bound.revision.calls_features.then(|| {
            Arc::new(FeatureRoad {
                pipeline: Arc::clone(&self.pipeline),
                catalogue: CatalogueSource::Taken(Arc::clone(&self.catalogue)),
                caller: Arc::clone(&self.caller),
                depth: self.depth,
                until: Instant::now() + time,
                counts: CallCounts::new(OF_CALL_MAX),
            }) as Arc<dyn FeatureDoor>
        })
    }
}
