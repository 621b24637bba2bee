//! What holds one instance: its memory, what it may copy, and its processor time, at each tick of the engine's clock.
//!
//! Must not know what an instance is called for.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use wasmtime::{Engine, Store, UpdateDeadline};

use super::capabilities::GuestState;
use super::processor::CpuMeter;
use super::run_queue::RunQueue;
use crate::contract::manifest::PluginLimits;
use crate::contract::tenant::Tenant;

/// The processor time of a call or a job after which it computes in turn with others. Less has most of what is not under
/// attack.
const UNQUEUED: Duration = Duration::from_millis(10);
/// What one host call may copy out of the guest, in units of about a byte, where its answers may not be larger: the largest
/// body or cached value with what stands beside it. More ends the call.
const HOST_CALL_BYTES_MIN: usize = 5 << 20;

/// A store for one instance, with its limits. What computes for somebody waits in the queue for its turns. A job's budget is
/// what is left of it for this run, and what it was.
pub(crate) fn prepare(
    engine: &Engine,
    run_queue: Option<&Arc<RunQueue>>,
    state: GuestState,
    limits: &PluginLimits,
    cpu: &Arc<CpuMeter>,
    job_budget: Option<(Duration, Duration)>,
) -> Store<GuestState> {
    let mut store = Store::new(engine, state);
    store.limiter(|state| state.limiter());
    let fuel = limits.response_bytes.saturating_mul(2);
    store.set_hostcall_fuel(fuel.max(HOST_CALL_BYTES_MIN));
    store.set_epoch_deadline(1);
    let (meter, run_queue, slice) = (Arc::clone(cpu), run_queue.cloned(), limits.cpu);
    store.epoch_deadline_callback(move |store| {
        if let Some((_, whole)) = job_budget.filter(|(left, _)| meter.total() >= *left) {
            return Err(wasmtime::Error::new(JobBudgetSpent(whole)));
        }
        if meter.used() >= slice {
            return Err(wasmtime::Error::new(CpuBudgetSpent));
        }
        let tenant = store.data().tenant().filter(|_| meter.total() >= UNQUEUED);
        Ok(match run_queue.as_ref().zip(tenant) {
            None => UpdateDeadline::Yield(1),
            Some((queue, tenant)) => {
                let (queue, tenant, meter) =
                    (Arc::clone(queue), tenant.clone(), Arc::clone(&meter));
                UpdateDeadline::YieldCustom(1, Box::pin(take_turn(queue, tenant, meter)))
            }
        })
    });
    store
}

/// Lets others compute, and goes on when it is the tenant's turn.
async fn take_turn(queue: Arc<RunQueue>, tenant: Tenant, cpu: Arc<CpuMeter>) {
    cpu.becomes_long();
    let asked = queue.ask(tenant);
    // With the end of the poll it gives up what it had. tokio's own `yield_now` would come back only when its thread has
    // nothing else to do, with a quantum in its hand perhaps.
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            Poll::Ready(())
        } else {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
    cpu.computes_with(asked.quantum().await);
}

#[derive(Debug, thiserror::Error)]
#[error("the processor budget is used up")]
pub(crate) struct CpuBudgetSpent;

#[derive(Debug, thiserror::Error)]
#[error("the job's processor budget is used up")]
pub(crate) struct JobBudgetSpent(pub(crate) Duration);
