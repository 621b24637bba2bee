//! The one road to a plugin. Both transports call [`execute`]; nothing else invokes an operation, so no step can be
//! forgotten on one face.
//!
//! The order of the steps is the design (decisions, "Order of checks"): a credential is judged before anything is counted,
//! every authenticated call takes its slot before its input is looked at, and a plugin sees only input that fits.

mod checked;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde::de::IgnoredAny;
use serde_json::Value;
use sha2::{Digest, Sha256};

use self::checked::{checked_failure, checked_success, failed, place};
use crate::app::App;
use crate::auth::oauth::OAuth;
use crate::auth::{self, AuthError, Caller, Presented};
use crate::catalogue::Bound;
use crate::error::{Code, Refusal};
use crate::jobs;
use crate::jobs::record::{Job, JobFailure, RunEnd};
use crate::metering::{self, Charge, Charged, Meters};
use crate::metrics::FaceAnswers;
use crate::operation::{Answer, Call, Face, Idempotency, Owner, PluginReply, Scope, Via};
use crate::places::peer::Address;
use crate::places::{PlacesFull, RequestPlace};
use crate::reading::{self, Identifier, Unread};
use crate::registry::Registry;
use crate::registry::instance::CallError;
use crate::registry::schema::FaceSchema;
use crate::telemetry::{CallFields, about_call, microseconds};

/// A call as a transport read it, before anything is decided.
pub(crate) struct CallRequest<'r> {
    pub(crate) bound: &'r Bound,
    pub(crate) face: Face,
    pub(crate) credential: Presented,
    /// Where the request comes from, if it is a first-party page's; counts where there is no credential.
    pub(crate) first_party: Option<Address>,
    pub(crate) identifier: Identifier,
    pub(crate) unread: Unread<'r>,
    pub(crate) request_id: &'r str,
    /// Its place, in the lobby until its caller is known.
    pub(crate) visit: &'r RequestPlace,
}

/// What came of a call. The meters are there however it ended, once it was admitted or refused by one of them.
pub(crate) struct Answered {
    pub(crate) outcome: Result<PluginReply, Refusal>,
    pub(crate) meters: Meters,
    pub(crate) plugin_time: Option<Duration>,
}

/// Runs one call from credential to checked reply.
pub(crate) async fn execute(app: &App, request: CallRequest<'_>) -> Answered {
    let started = Instant::now();
    let (bound, face, request_id) = (request.bound, request.face, request.request_id);
    let about = CallFields {
        request_id,
        operation: &bound.operation.id,
        plugin: &bound.revision.plugin,
        revision: bound.revision.number,
        owner: None,
        via: Via::Face(face),
    };
    let given_up = AbandonedCallLog { about, started };
    let mut passed = CallTrace::default();
    let outcome = run_steps(app, request, &mut passed).await;
    std::mem::forget(given_up);
    let CallTrace { meters, owner, plugin_time } = passed;
    log(&outcome, CallFields { owner: owner.as_ref(), ..about }, started);
    match &outcome {
        Ok(_) => answers(bound, face).ok(),
        Err(refusal) => answers(bound, face).refused(refusal),
    }
    Answered { outcome, meters, plugin_time }
}

/// The first two steps alone, for a transport that must know of a refused credential before it runs anything.
pub(crate) async fn judge(app: &App, bound: &Bound, face: Face, credential: &Presented) -> Result<(), Refusal> {
    identify(app, face, face_of(bound, face).0, credential, SystemTime::now()).await.map(|_| ())
}

/// Counts what a transport answers for an operation without running it.
pub(crate) fn refused_before(bound: &Bound, face: Face, refusal: &Refusal) {
    answers(bound, face).refused(refusal);
}

/// What a call leaves behind on its way, however far it comes.
#[derive(Default)]
struct CallTrace {
    meters: Meters,
    owner: Option<Owner>,
    plugin_time: Option<Duration>,
}

async fn run_steps(app: &App, request: CallRequest<'_>, passed: &mut CallTrace) -> Result<PluginReply, Refusal> {
    let CallRequest { bound, face, credential, first_party, identifier, unread, request_id, visit } = request;
    let now = SystemTime::now();
    let (scope, schema) = face_of(bound, face);

    let allowed = first_party.filter(|_| bound.operation.terms.first_party_per_minute.is_some());
    let caller = match (allowed, &credential) {
        (Some(address), Presented::Nothing) => Caller::of_address(address),
        (Some(_), Presented::One(_) | Presented::Unusable) | (None, _) => {
            let caller = identify(app, face, scope, &credential, now).await?;
            visit.identified().map_err(PlacesFull::refusal)?;
            caller
        }
    };
    // Whoever had to wait for an issuer's keys comes by another time than it started: a window that is over must not open again.
    let now = SystemTime::now();
    let owner = *passed.owner.insert(owner(app, &caller, &bound.revision.plugin));
    metering::read_month(&app.usage, &app.store, &caller, now, &mut passed.meters)?;
    metering::take_slots(&app.windows, &caller, &bound.revision.plugin, &bound.operation, now, &mut passed.meters)?;
    // Beside the windows: what a tenant may not run at all costs it neither its month nor its credits. It is judged again when
    // there is a place.
    let tenant = caller.tenant();
    bound.revision.judge(&tenant).map_err(|error| failed(&bound.operation, &error))?;
    let input = reading::read(unread, schema)?;
    let identifier = identifier_of(&caller, bound, identifier)?;
    metering::count_month(&app.usage, &app.store, &caller, &bound.operation, now, &mut passed.meters)?;
    let charged = Charged {
        caller: &caller,
        plugin: &bound.revision.plugin,
        operation: &bound.operation,
        identifier: &identifier,
        request_id,
        now,
    };
    let credits = &app.config.credits;
    let charge = metering::reserve(&app.reservations, &app.store, credits, charged, &mut passed.meters).await?;

    let call = Call {
        request_id: request_id.to_owned(),
        operation: bound.operation.id.clone(),
        owner,
        tenant,
        key: caller.key(),
        caller: caller.kind(),
        via: Via::Face(face),
        deadline: bound.operation.deadline,
        input: Value::Object(input).to_string(),
    };
    let (answered, plugin_time) = match charge {
        None => run(bound, call).await,
        // From here on the call runs to its deadline and settles by its outcome, whether its client waits or not.
        Some(charge) => {
            let running = app.calls.spawn(run_charged(bound.clone(), call, charge));
            running.await.unwrap_or_else(|error| (Err(Refusal::internal(error.to_string())), Duration::ZERO))
        }
    };
    passed.plugin_time = Some(plugin_time);
    answered
}

/// Runs a job on the revision that is active now: the second door to a plugin. Who may submit it, how often and at what price
/// was decided on the road of the call that did; what is left is to find the plugin, run it and check what it says.
pub(crate) async fn run_job(
    registry: &Registry,
    job: Job,
    checkpoint: Option<String>,
    left: Duration,
    run: Arc<jobs::JobRun>,
) -> RunEnd {
    let internal = |message: &str| {
        let failure = JobFailure { code: Code::InternalError.name().to_owned(), message: message.to_owned() };
        RunEnd::Failed(failure)
    };
    let current = registry.current();
    // A plugin that left the manifest may come back before the job's time is over.
    let Some(revision) = current.revisions().iter().find(|revision| revision.plugin == run.name.plugin) else {
        return RunEnd::CutOff;
    };
    let revision = Arc::clone(revision);
    drop(current);
    let Some(operation) = revision.operations.iter().find(|operation| operation.id == job.operation) else {
        return internal("the plugin does not have the job's operation any more");
    };
    let tenant = job.tenant(run.name.owner);
    let call = Call {
        request_id: job.request_id,
        operation: job.operation,
        owner: run.name.owner,
        tenant,
        key: job.key.map(Into::into),
        caller: job.caller,
        via: Via::Job,
        deadline: left,
        input: job.input,
    };
    let id = run.name.id;
    let refusal = match revision.work(call, run, checkpoint).await {
        Ok(Answer::Success(success)) => match serde_json::from_str::<IgnoredAny>(&success.data) {
            Ok(_) => return RunEnd::Completed(success.data),
            Err(error) => Refusal::internal(format!("the plugin's data is no JSON text: {}", place(&error))),
        },
        Ok(Answer::Failure(failure)) => checked_failure(operation, failure),
        Err(
            error @ (CallError::Stopped
            | CallError::NoRoom(_)
            | CallError::PluginPaused { .. }
            | CallError::Paused { .. }
            | CallError::OverBudget { .. }
            | CallError::Off(_)),
        ) => {
            tracing::debug!(plugin = &*revision.plugin, job = %id, %error, "a job waits for another run");
            return RunEnd::CutOff;
        }
        Err(error) => failed(operation, &error),
    };
    if let Some(cause) = &refusal.cause {
        let (plugin, revision) = (&*revision.plugin, revision.number);
        tracing::warn!(plugin, revision, job = %id, code = refusal.code.as_ref(), cause, "a job failed");
    }
    RunEnd::Failed(JobFailure { code: refusal.code.into_owned(), message: refusal.message.into_owned() })
}

/// The plugin's part, and the time that it took.
async fn run(bound: &Bound, call: Call) -> (Result<PluginReply, Refusal>, Duration) {
    let started = Instant::now();
    let answer = bound.revision.invoke(call).await;
    let plugin_time = started.elapsed();
    let answered = match answer {
        Ok(Answer::Success(success)) => checked_success(&bound.operation, success),
        Ok(Answer::Failure(failure)) => Err(checked_failure(&bound.operation, failure)),
        Err(error) => Err(failed(&bound.operation, &error)),
    };
    (answered, plugin_time)
}

/// The same, paid for by its outcome before anybody hears of it.
async fn run_charged(bound: Bound, call: Call, charge: Charge) -> (Result<PluginReply, Refusal>, Duration) {
    let (answered, plugin_time) = run(&bound, call).await;
    let now = SystemTime::now();
    let answered = match answered {
        Ok(reply) => charge.settle(now).await.map(|()| reply),
        Err(refusal) => {
            charge.release(now).await;
            Err(refusal)
        }
    };
    (answered, plugin_time)
}

/// The identifier, where it counts: it is ignored for others than self-service keys and for operations that have their own.
fn identifier_of(caller: &Caller, bound: &Bound, identifier: Identifier) -> Result<Identifier, Refusal> {
    match (caller.account(), bound.operation.terms.idempotency) {
        (Some(_), Idempotency::Key) => identifier.check().map(|()| identifier),
        (None, _) | (Some(_), Idempotency::RequestId) => Ok(Identifier::Absent),
    }
}

async fn identify(
    app: &App,
    face: Face,
    scope: &Scope,
    credential: &Presented,
    now: SystemTime,
) -> Result<Caller, Refusal> {
    let oauth = app.oauth.as_ref();
    let metadata = oauth.filter(|_| face == Face::Tool).map(OAuth::metadata_url);
    let refused = |error: AuthError| error.refusal(face, scope, metadata);
    let caller = auth::identify(&app.store, oauth, credential, face, now).await.map_err(refused)?;
    caller.authorize(scope).map_err(refused)?;
    Ok(caller)
}

fn face_of(bound: &Bound, face: Face) -> (&Scope, &FaceSchema) {
    let operation = &bound.operation;
    let found = match face {
        Face::Rest => operation.rest.as_ref().map(|face| (&face.scope, &face.input)),
        Face::Tool => operation.tool.as_ref().map(|face| (&face.scope, &face.input)),
    };
    found.expect("a transport finds an operation by the face that it calls")
}

fn answers(bound: &Bound, face: Face) -> &FaceAnswers {
    match face {
        Face::Rest => &bound.operation.requests.rest,
        Face::Tool => &bound.operation.requests.tool,
    }
}

/// The caller's name within one plugin: stable, and unrelated to its name in any other.
fn owner(app: &App, caller: &Caller, plugin: &str) -> Owner {
    let digest = Sha256::new()
        .chain_update(app.owner_secret)
        .chain_update(plugin.as_bytes())
        .chain_update([0])
        .chain_update(caller.owner().as_bytes())
        .finalize();
    Owner::of(&digest.into())
}

/// Tells, when it is dropped, of a call that ended with its request: the client went away, or the request's time was up.
struct AbandonedCallLog<'a> {
    about: CallFields<'a>,
    started: Instant,
}

impl Drop for AbandonedCallLog<'_> {
    fn drop(&mut self) {
        let about = self.about;
        about_call!(
            debug,
            module_path!(),
            about,
            elapsed_us = microseconds(self.started.elapsed()),
            "a call was given up"
        );
    }
}

/// One line a call, here alone. Failures of ours are the operator's concern; what a client did is told on request.
fn log(outcome: &Result<PluginReply, Refusal>, about: CallFields<'_>, started: Instant) {
    match outcome {
        Ok(reply) => {
            about_call!(
                debug,
                module_path!(),
                about,
                outcome = reply.outcome,
                elapsed_us = microseconds(started.elapsed()),
                "a call was answered"
            );
        }
        Err(refusal) => {
            let (code, status) = (refusal.code.as_ref(), refusal.status.as_u16());
            match &refusal.cause {
                Some(cause) => {
                    about_call!(
                        warn,
                        module_path!(),
                        about,
                        code,
                        status,
                        elapsed_us = microseconds(started.elapsed()),
                        cause,
                        "a call failed"
                    );
                }
                None => {
                    about_call!(
                        debug,
                        module_path!(),
                        about,
                        code,
                        status,
                        elapsed_us = microseconds(started.elapsed()),
                        "a call was refused"
                    );
                }
            }
        }
    }
}
