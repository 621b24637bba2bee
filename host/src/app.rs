//! The only wiring: everything that one process serves with, made from its settings.
//!
//! Knows every room and decides nothing in any of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::HeaderValue;
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::auth::api_key::epoch_seconds;
use crate::auth::first_party::FirstParty;
use crate::auth::oauth::OAuth;
use crate::config::Config;
use crate::egress::operators_own::DocumentError;
use crate::egress::proxy::{ListenError, Proxy};
use crate::egress::{Egress, EgressError};
use crate::ip_databases::{IpDatabases, KeptError};
use crate::jobs::Jobs;
use crate::metering::month::Month;
use crate::metering::{Reservations, UsageCounts, Windows};
use crate::operator::events;
use crate::operator::token::{self, OperatorToken};
use crate::places::Places;
use crate::places::peer::Proxies;
use crate::published::Site;
use crate::registry::compiler::Compiler;
use crate::registry::engine::{CapabilityProviders, EngineError, Runtime};
use crate::registry::manifest::{Manifest, ManifestError};
use crate::registry::{Registry, RegistryError, RegistryParts, blocking};
use crate::stores::{Store, StoreError};

/// How often idle instances are looked at.
const SWEEP: Duration = Duration::from_secs(5);
/// A start waits so long for IP databases and no longer; they are read on.
const DATABASES: Duration = Duration::from_secs(10);
/// How often months that are over are looked for.
const MONTHS: Duration = Duration::from_secs(3600);
/// Months beside the current one of which entries of credits and counts of calls are kept: a year and the same month again.
const MONTHS_KEPT: u32 = 13;
/// How often counts of calls are written: what a crash may lose of them.
const WRITE_USAGE: Duration = Duration::from_secs(1);
/// How long a month that has ended is still at hand, for calls that came before.
const MONTH_AT_HAND: u64 = 3600;
/// Counts in one write.
const USAGE_ROWS_MAX: usize = 1000;

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
    Token { path: PathBuf, source: std::io::Error },
}

impl<E: Into<StartFault>> From<E> for StartError {
    fn from(fault: E) -> Self {
        Self(fault.into())
    }
}

/// One process's wiring.
pub struct App {
    pub(crate) config: Config,
    pub(crate) base_path: String,
    pub(crate) store: Arc<Store>,
    pub(crate) owner_secret: [u8; 32],
    pub(crate) operator_token: OperatorToken,
    pub(crate) registry: Arc<Registry>,
    pub(crate) egress: Arc<Egress>,
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) ip_databases: Arc<IpDatabases>,
    pub(crate) windows: Windows,
    /// Where an identity provider is configured.
    pub(crate) oauth: Option<OAuth>,
    pub(crate) usage: UsageCounts,
    pub(crate) reservations: Arc<Reservations>,
    /// Calls that are paid for: they run to their end whether their clients wait or not.
    pub(crate) calls: TaskTracker,
    pub(crate) mcp_origins: Origins,
    pub(crate) first_party: FirstParty,
    /// Of the public listener.
    pub(crate) public: Places,
    /// A place for each stream of events.
    pub(crate) event_streams: Arc<Semaphore>,
    pub(crate) started_at: SystemTime,
    /// Cancelled when the process stops.
    pub(crate) stop: CancellationToken,
}

impl App {
    /// Serves what was committed, and brings in what is new. `base_url` is where clients reach the public listener; `program` is a `switchbay` of this build,
    /// which is started once for each component that must be compiled.
    ///
    /// # Errors
    /// The first thing that cannot be used, by name.
    pub async fn open(config: Config, store: OpenStore, base_url: &str, program: &Path) -> Result<Self, StartError> {
        let manifest = Manifest::read(&config.manifest)?;
        let OpenStore { store } = store;
        let token_path = config.data.join(token::FILE);
        let operator_token =
            OperatorToken::keep(&token_path).map_err(|source| StartFault::Token { path: token_path, source })?;
        let oauth = config.oauth.as_ref().map(|settings| OAuth::new(settings, base_url)).transpose()?;
        let egress = Arc::new(Egress::open(&config.egress, base_url)?);
        let proxy = Arc::new(Proxy::bind(&config.proxy).await?);
        let compiler = Compiler::new(program, config.compile);
        let ip_databases = Arc::new(IpDatabases::open(config.ip_databases.clone(), &config.data)?);
        let unread = Arc::clone(&ip_databases);
        let reading = blocking(move || unread.read());
        let jobs = Jobs::open(Arc::clone(&store), config.jobs)?;
        let lendable = CapabilityProviders {
            egress: Arc::clone(&egress),
            jobs: Arc::clone(&jobs),
            ip_databases: Arc::clone(&ip_databases),
        };
        let runtime = Runtime::start(&config.data, Arc::clone(&store), config.instances_max, compiler, lendable)?;
        let parts = RegistryParts {
            runtime,
            store: Arc::clone(&store),
            data: config.data.clone(),
            manifest,
            manifest_path: config.manifest.clone(),
            instances_max: config.instances_max,
            shares: config.shares,
            body: config.transport.body,
            site: site(&config, base_url),
            safe_mode: config.safe_mode,
        };
        let (registry, read) = tokio::join!(Registry::open(parts), tokio::time::timeout(DATABASES, reading));
        if read.is_err() {
            tracing::warn!("IP databases are still read; each serves once it was verified");
        }
        let expired = store.expire_all(epoch_seconds(SystemTime::now())).await?;
        if expired > 0 {
            tracing::warn!(expired, "an earlier process left reservations of credits; they are given back");
        }
        let base = Url::parse(base_url).ok();
        let path = base.as_ref().map_or("", |base| base.path()).trim_end_matches('/').to_owned();
        Ok(Self {
            owner_secret: store.owner_secret(),
            base_path: path,
            mcp_origins: Origins::new(base.as_ref(), config.mcp_origins.clone()),
            first_party: FirstParty::new(config.first_party.origins.clone()),
            windows: Windows::default(),
            oauth,
            usage: UsageCounts::default(),
            reservations: Reservations::new(Arc::clone(&store)),
            calls: TaskTracker::new(),
            public: Places::new(config.places, Proxies::new(config.trusted_proxies.clone())),
            event_streams: Arc::new(Semaphore::new(events::STREAMS_MAX)),
            started_at: SystemTime::now(),
            stop: CancellationToken::new(),
            store,
            operator_token,
            registry: registry?,
            egress,
            proxy,
            jobs,
            ip_databases,
            config,
        })
    }

    /// Sweeps, writes and gives back, as long as anything is served: also while the process drains.
    pub(crate) async fn run_maintenance(self: Arc<Self>, served: CancellationToken) {
        let mut sweeps = tokio::time::interval(SWEEP);
        let mut writes = tokio::time::interval(WRITE_USAGE);
        loop {
            tokio::select! {
                () = served.cancelled() => return,
                _ = sweeps.tick() => {
                    self.registry.sweep(Instant::now()).await;
                    self.proxy.tell_of_left_out(Instant::now());
                    if let Err(error) = self.store.forget_burnt(epoch_seconds(SystemTime::now())).await {
                        tracing::error!(%error, "identifiers of operations cannot be forgotten");
                    }
                }
                _ = writes.tick() => {
                    self.tend_reservations().await;
                    self.write_usage().await;
                }
                () = self.reservations.given_up() => self.tend_reservations().await,
            }
        }
    }

    /// Forgets what is of months that are over, as long as anything is served.
    pub(crate) async fn keep_months(self: Arc<Self>, served: CancellationToken) {
        let mut looks = tokio::time::interval(MONTHS);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = served.cancelled() => return,
                _ = looks.tick() => {}
            }
            while !served.is_cancelled() {
                match self.forget_months().await {
                    Ok(0) => break,
                    Ok(rows) => {
                        tracing::debug!(rows, "rows of months that are over were forgotten");
                    }
                    Err(error) => {
                        tracing::error!(%error, "months that are over cannot be forgotten; they are tried again");
                        break;
                    }
                }
            }
        }
    }

    async fn forget_months(&self) -> Result<usize, StoreError> {
        let before = Month::of(epoch_seconds(SystemTime::now())).earlier(MONTHS_KEPT);
        let store = Arc::clone(&self.store);
        let over = blocking(move || store.months_over(before)).await?;
        self.store.forget_months(over, before).await
    }

    /// The last thing that a process does: waits for paid calls, gives back what is left, and writes the counts.
    pub(crate) async fn finish(&self) {
        self.calls.close();
        if tokio::time::timeout(self.config.transport.drain, self.calls.wait()).await.is_err() {
            tracing::warn!(calls = self.calls.len(), "paid calls did not end in time; their credits are given back");
        }
        self.tend_reservations().await;
        self.write_usage().await;
    }

    async fn tend_reservations(&self) {
        let tended = self.reservations.tend(Instant::now(), epoch_seconds(SystemTime::now())).await;
        if let Err(error) = tended {
            tracing::error!(%error, "reservations of credits cannot be resolved; they are tried again");
        }
    }

    /// Writes the counts of calls that the store does not have.
    pub(crate) async fn write_usage(&self) {
        let month = Month::of(epoch_seconds(SystemTime::now()).saturating_sub(MONTH_AT_HAND));
        let rows = self.usage.unwritten(month);
        for rows in rows.chunks(USAGE_ROWS_MAX) {
            if let Err(error) = self.store.put_usage(rows.to_vec()).await {
                tracing::error!(%error, rows = rows.len(), "counts of calls cannot be written; they are tried again");
                self.usage.not_written(rows);
            }
        }
    }
}

/// What the published documents say of this installation.
fn site(config: &Config, base_url: &str) -> Site {
    Site {
        base_url: base_url.to_owned(),
        issuer: config.oauth.as_ref().map(|settings| settings.issuer.clone()),
        credits: config.credits.clone(),
    }
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
    pub fn open(folder: &Path) -> Result<Self, StartError> {
        Store::secure(folder)?;
        Ok(Self { store: Arc::new(Store::open(folder)?) })
    }
}

/// The origins that browsers may call `/mcp` from: our own base URL's, loopback names with its port, and the configured.
pub(crate) struct Origins(Vec<String>);

impl Origins {
    fn new(base: Option<&Url>, mut configured: Vec<String>) -> Self {
        if let Some(base) = base {
            configured.push(base.origin().ascii_serialization());
            let loopback = base.host_str().is_some_and(|host| matches!(host, "127.0.0.1" | "localhost" | "[::1]"));
            if let Some(port) = base.port_or_known_default().filter(|_| loopback) {
                configured.extend(["127.0.0.1", "localhost", "[::1]"].map(|host| format!("http://{host}:{port}")));
            }
        }
        Self(configured)
    }

    pub(crate) fn allows(&self, origin: &HeaderValue) -> bool {
        self.0.iter().any(|allowed| origin == allowed.as_str())
    }
}
