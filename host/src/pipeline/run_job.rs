//! The second door to a plugin: a job, whose turn has come.

use std::sync::Arc;
use std::time::Duration;

use serde::de::IgnoredAny;

use super::Pipeline;
use super::check_reply::{checked_failure, failed, place};
use super::feature_door::{FeatureCaller, FeatureRoad};
use crate::catalogue::revision::Revision;
use crate::contract::error::{Code, Refusal};
use crate::contract::feature_call::FeatureDoor;
use crate::contract::operation::{Call, CallOrigin, Owner, UncheckedAnswer};
use crate::records::job::{Job, JobFailure, RunEnd};
use crate::registry::Registry;
use crate::runtime::instance::CallError;
use crate::runtime::job_run::JobRun;
use crate::stores::StoreError;

/// Runs a job on the revision that is active now. Who may submit it, how often and at what price
/// was decided on the road of the call that did; what is left is to find the plugin, run it and check what it says.
pub(crate) async fn run_job(
    pipeline: &Arc<Pipeline>,
    registry: &Arc<Registry>,
    job: Job,
    checkpoint: Option<String>,
    left: Duration,
    run: Arc<JobRun>,
) -> RunEnd {
    // A plugin that left the manifest may come back before the job's time is over.
    let Some(revision) = registry.serving(&run.name.plugin) else {
        return RunEnd::CutOff;
    };
    let Some((operation, _)) = revision
        .operations()
        .find(|(operation, _)| operation.id == job.operation)
    else {
        return failed_by_host("the plugin no longer has the job's operation");
    };
    let features = match features(pipeline, registry, &revision, &job, (run.name.owner, left)).await
    {
        Ok(features) => features,
        Err(error) => {
            tracing::error!(plugin = &*revision.plugin, %error, "the key of a job cannot be read");
            return RunEnd::CutOff;
        }
    };
    let tenant = job.tenant(run.name.owner);
    let call = Call {
        request_id: job.request_id,
        operation: job.operation,
        owner: run.name.owner,
        tenant,
        key: job.key.map(Into::into),
        caller: job.caller,
        via: CallOrigin::Job,
        deadline: left,
        input: job.input,
        features,
    };
    let id = run.name.id;
    let refusal = match revision.work(call, run, checkpoint).await {
        Ok(UncheckedAnswer::Success(success)) => {
            match serde_json::from_str::<IgnoredAny>(&success.data) {
                Ok(_) => return RunEnd::Completed(success.data),
                Err(error) => Refusal::internal(format!(
                    "the plugin's data is not valid JSON: {}",
                    place(&error)
                )),
            }
        }
        Ok(UncheckedAnswer::Failure(failure)) => checked_failure(operation, failure),
        Err(
            error @ (CallError::Stopped
            | CallError::NoRoom(_)
            | CallError::PluginPaused { .. }
            | CallError::Paused { .. }
            | CallError::OverBudget { .. }
            | CallError::Off(_)),
        ) => {
            tracing::debug!(plugin = &*revision.plugin, job = %id, %error, "a job is waiting for another run");
            return RunEnd::CutOff;
        }
        Err(error) => failed(operation, &error),
    };
    if let Some(cause) = &refusal.cause {
        let (plugin, revision) = (&*revision.plugin, revision.number);
        tracing::warn!(plugin, revision, job = %id, code = refusal.code.as_ref(), cause, "a job failed");
    }
    RunEnd::Failed(JobFailure {
        code: refusal.code.into_owned(),
        message: refusal.message.into_owned(),
    })
}

/// The job's way to other plugins' operations, where its plugin is granted any.
async fn features(
    pipeline: &Arc<Pipeline>,
    registry: &Arc<Registry>,
    revision: &Revision,
    job: &Job,
    (owner, left): (Owner, Duration),
) -> Result<Option<Arc<dyn FeatureDoor>>, StoreError> {
    if !revision.calls_features {
        return Ok(None);
    }
    let key_record = match &job.key {
        Some(id) => pipeline.store.key_of_id(id).await?.map(Arc::new),
        None => None,
    };
    let caller = FeatureCaller::of_job(job, owner, key_record);
    Ok(FeatureRoad::of_job(
        pipeline, registry, revision, caller, left,
    ))
}

fn failed_by_host(message: &str) -> RunEnd {
    RunEnd::Failed(JobFailure {
        code: Code::InternalError.name().to_owned(),
        message: message.to_owned(),
    })
}
