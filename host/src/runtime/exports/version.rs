//! One version of `switchbay:plugin`: its exports, found and called, and its types on the way into a guest and out of it.

/// What this module's version comes to, from the modules that the bindings of its two worlds generated, and how it names the
/// callers that the host knows.
macro_rules! plugin_version {
    ($types:path, $feature:path, $worker:path, $kind:expr) => {
        use wasmtime::component::{Accessor, Instance, InstancePre};
        use wasmtime::{AsContextMut, Store};

        use $feature as feature;
        use $types as wire;
        use $worker as worker;

        use crate::contract::operation::{
            Call, CallerKind, PluginFailure, Success, UncheckedAnswer,
        };
        use crate::runtime::capabilities::GuestState;
        use crate::runtime::exports::{CallerUnknown, WorkedJob};

        /// Where the exports stand in a component.
        pub(crate) struct Indices {
            feature: feature::GuestIndices,
            worker: Option<worker::GuestIndices>,
        }

        impl Indices {
            pub(crate) fn find(
                pre: &InstancePre<GuestState>,
                has_worker: bool,
            ) -> wasmtime::Result<Self> {
                let worker = has_worker
                    .then(|| worker::GuestIndices::new(pre))
                    .transpose()?;
                let feature = feature::GuestIndices::new(pre)?;
                Ok(Self { feature, worker })
            }

            pub(crate) fn has_worker(&self) -> bool {
                self.worker.is_some()
            }

            pub(crate) fn feature(
                &self,
                store: impl AsContextMut,
                instance: &Instance,
            ) -> wasmtime::Result<Feature> {
                self.feature.load(store, instance).map(Feature)
            }

            pub(crate) fn worker(
                &self,
                store: impl AsContextMut,
                instance: &Instance,
            ) -> wasmtime::Result<Option<Worker>> {
                let worker = self.worker.as_ref();
                worker
                    .map(|worker| worker.load(store, instance).map(Worker))
                    .transpose()
            }
        }

        /// The export of an instance that serves operations.
        pub(crate) struct Feature(feature::Guest);

        impl Feature {
            pub(crate) async fn describe(
                &self,
                store: &mut Store<GuestState>,
            ) -> wasmtime::Result<String> {
                self.0.call_describe(store).await
            }

            pub(crate) async fn invoke(
                &self,
                accessor: &Accessor<GuestState>,
                call: Call,
            ) -> wasmtime::Result<UncheckedAnswer> {
                let (call, input) = to_wire(call, None)?;
                self.0
                    .call_invoke(accessor, call, input)
                    .await
                    .map(from_wire)
            }
        }

        /// The export of an instance that runs jobs.
        pub(crate) struct Worker(worker::Guest);

        impl Worker {
            pub(crate) async fn run(
                &self,
                accessor: &Accessor<GuestState>,
                call: Call,
                job: WorkedJob,
            ) -> wasmtime::Result<UncheckedAnswer> {
                let (call, input) = to_wire(call, Some(job))?;
                self.0.call_run(accessor, call, input).await.map(from_wire)
            }
        }

        fn to_wire(
            call: Call,
            job: Option<WorkedJob>,
        ) -> Result<(wire::Call, String), CallerUnknown> {
            let kind: fn(CallerKind) -> Option<wire::CallerKind> = $kind;
            let caller = wire::Caller {
                owner: call.owner.as_str().to_owned(),
                kind: kind(call.caller).ok_or(CallerUnknown)?,
                subject: None,
            };
            let job = job.map(|job| wire::Job {
                id: job.id,
                attempt: job.attempt,
                checkpoint: job.checkpoint,
            });
            let wired = wire::Call {
                request_id: call.request_id,
                operation: call.operation,
                caller,
                deadline_ms: u32::try_from(call.deadline.as_millis()).unwrap_or(u32::MAX),
                job,
            };
            Ok((wired, call.input))
        }

        fn from_wire(answer: Result<wire::Reply, wire::Failure>) -> UncheckedAnswer {
            match answer {
                Ok(reply) => UncheckedAnswer::Success(Success {
                    outcome: reply.outcome,
                    data: reply.data,
                    headers: reply.headers,
                    attachments: reply.attachments.len(),
                }),
                Err(failure) => UncheckedAnswer::Failure(PluginFailure {
                    code: failure.code,
                    message: failure.message,
                    retry_after_ms: failure.retry_after_ms,
                    details: failure.details,
                }),
            }
        }
    };
}

pub(super) use plugin_version;
