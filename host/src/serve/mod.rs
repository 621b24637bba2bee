//! The only wiring: builds what one process serves with, hands each room what it needs, and owns every task.
//!
//! Knows every room and decides nothing in any of them.

mod foundation;
mod maintenance;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::foundation::HostFoundation;
use self::maintenance::PeriodicMaintenance;
use crate::auth::oauth::OAuth;
use crate::base::clock::epoch_seconds;
use crate::base::tasks::Tasks;
use crate::config::Config;
use crate::contract::manifest::{Manifest, ManifestError};
use crate::egress::EgressError;
use crate::egress::operators_own::DocumentError;
use crate::egress::proxy::{ListenError, Proxy};
use crate::lookup::{IpDatabases, KeptError};
use crate::pipeline::Pipeline;
use crate::places::ListenerPlaces;
use crate::queue::JobQueue;
use crate::registry::{Registry, RegistryError};
use crate::runner::JobRunner;
use crate::runtime::engine::EngineError;
use crate::stores::{Store, StoreError};
use crate::transport::http::PublicApi;
use crate::transport::http::connection;
use crate::transport::operator::OperatorApi;

/// The two bound sockets.
pub struct Listeners {
    /// For clients.
    pub api: TcpListener,
    /// For the operator; never reachable through the first.
    pub operator: TcpListener,
}

/// A process that cannot start: one line that names what and why.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct StartError(StartFault);

/// What keeps a process from starting.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartFault {
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("cannot ask the identity provider: {0}")]
    OAuth(#[from] DocumentError),
    #[error(transparent)]
    Egress(#[from] EgressError),
    #[error(transparent)]
    Proxy(#[from] ListenError),
    #[error(transparent)]
    IpDatabases(#[from] KeptError),
    #[error("cannot keep the operator's token in {path}: {source}")]
    Token {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl<E: Into<StartFault>> From<E> for StartError {
    fn from(fault: E) -> Self {
        Self(fault.into())
    }
}

/// Everything that one process serves with.
pub struct Service {
    pub(crate) config: Arc<Config>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) ip_databases: Arc<IpDatabases>,
    pub(crate) tasks: Tasks,
    proxy: Arc<Proxy>,
    jobs: Arc<JobQueue>,
    oauth: Option<Arc<OAuth>>,
    pipeline: Arc<Pipeline>,
    /// Paid calls, and those by plugins.
    calls: Tasks,
    public: ListenerPlaces,
    public_api: Arc<PublicApi>,
    operator_api: Arc<OperatorApi>,
    maintenance: PeriodicMaintenance,
}

impl Service {
    /// Serves what was committed, and brings in what is new. `base_url` is where clients reach the public listener; `program` is
    /// a `switchbay` of this build, which is started once for each component that must be compiled.
    ///
    /// # Errors
    /// The first thing that cannot be used, by name.
    pub async fn open(
        config: Config,
        store: OpenStore,
        base_url: &str,
        program: &Path,
    ) -> Result<Self, StartError> {
        let manifest = Manifest::read(&config.manifest)?;
        let foundation = HostFoundation::open(config, store.store, base_url).await?;
        let jobs = JobQueue::open(
            Arc::clone(&foundation.store),
            foundation.config.file.jobs,
            foundation.tasks.clone(),
        )
        .await?;
        let registry = foundation.registry(manifest, &jobs, program).await?;
        let expired = foundation
            .store
            .expire_all(epoch_seconds(SystemTime::now()))
            .await?;
        if expired > 0 {
            tracing::warn!(
                expired,
                "an earlier process left reservations of credits; the credits are returned"
            );
        }
        Ok(foundation.service(registry, jobs))
    }

    /// Serves until `shutdown` is ready, then drains both listeners.
    pub async fn serve(self, listeners: Listeners, shutdown: impl Future<Output = ()>) {
        let stop = self.tasks.stopping();
        let serving_all = async {
            let mut serving = std::pin::pin!(self.serve_all(listeners, stop.clone()));
            tokio::select! {
                () = serving.as_mut() => {}
                () = shutdown => {
                    tracing::info!("stopping: no new connections; running requests finish");
                    self.tasks.stop();
                    serving.await;
                }
            }
            let drain = self.config.file.limits.drain_ms.time();
            let ((), ended) = tokio::join!(
                self.maintenance.finish(&self.calls, drain),
                self.tasks.end(drain)
            );
            if !ended {
                let tasks = self.tasks.running();
                tracing::warn!(tasks, "changes of plugins did not end in time and are cut");
            }
            self.proxy.end();
        };
        // The programs of a running call need their way out until it has ended.
        tokio::join!(self.proxy.serve(), serving_all);
    }

    async fn serve_all(&self, listeners: Listeners, stop: CancellationToken) {
        let served = CancellationToken::new();
        let serving = async {
            tokio::join!(
                async {
                    self.listen(listeners, &stop).await;
                    served.cancel();
                },
                self.maintenance.run_maintenance(&served),
                self.maintenance.keep_months(&served),
                JobRunner::new(
                    Arc::clone(&self.jobs),
                    Arc::clone(&self.registry),
                    Arc::clone(&self.pipeline),
                    stop.clone()
                )
                .run(),
                Arc::clone(&self.ip_databases).follow(served.clone()),
            );
        };
        // Keys may be wanted until the last request is answered.
        match &self.oauth {
            Some(oauth) => tokio::select! {
                () = serving => {}
                never = oauth.keep_keys() => match never {},
            },
            None => serving.await,
        }
    }

    async fn listen(&self, listeners: Listeners, stop: &CancellationToken) {
        let limits = self.config.file.limits;
        // Each listener has its own places, so that a full house still lets the operator in.
        let own = places(&self.config);
        let (public, operator) = (Arc::clone(&self.public_api), Arc::clone(&self.operator_api));
        tokio::join!(
            connection::serve(
                listeners.api,
                limits,
                self.public.clone(),
                stop.clone(),
                move |request, visit| Arc::clone(&public).handle(request, visit),
            ),
            connection::serve(
                listeners.operator,
                limits,
                own,
                stop.clone(),
                move |request, visit| Arc::clone(&operator).handle(request, visit),
            ),
        );
    }
}

fn places(config: &Config) -> ListenerPlaces {
    ListenerPlaces::new(config.file.limits, config.file.peers.clone())
}

/// A store that was opened, before anything slow is done: a second process on the same data fails at once.
pub struct OpenStore {
    pub(crate) store: Arc<Store>,
}

impl OpenStore {
    /// Opens or creates the store in a data folder.
    ///
    /// # Errors
    /// Another process has it, or the folder cannot be used, or is not this user's alone.
    pub async fn open(folder: &Path) -> Result<Self, StartError> {
        Store::secure(folder)?;
        Ok(Self {
            store: Arc::new(Store::open(folder).await?),
        })
    }
}
