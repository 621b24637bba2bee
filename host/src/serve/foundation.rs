//! What the process keeps and reaches, and the rooms that are built on it, each with what it needs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Semaphore;
use url::Url;

use super::maintenance::PeriodicMaintenance;
use super::{Service, StartError, StartFault, places};
use crate::auth::first_party::FirstParty;
use crate::auth::oauth::OAuth;
use crate::base::tasks::{Tasks, blocking};
use crate::config::Config;
use crate::contract::manifest::Manifest;
use crate::egress::Egress;
use crate::egress::proxy::Proxy;
use crate::lookup::IpDatabases;
use crate::metering::reservations::Reservations;
use crate::metering::usage_writer::UsageWriter;
use crate::metering::{UsageCounts, Windows};
use crate::pipeline::Pipeline;
use crate::published::Site;
use crate::queue::JobQueue;
use crate::registry::{Registry, RegistryParts};
use crate::runtime::compiler::ComponentCompiler;
use crate::runtime::engine::{CapabilityProviders, Runtime};
use crate::stores::Store;
use crate::transport::http::PublicApi;
use crate::transport::http::discovery::HostRoutes;
use crate::transport::mcp::McpTransport;
use crate::transport::mcp::origins::AllowedOrigins;
use crate::transport::operator::OperatorApi;
use crate::transport::operator::events::{self, EventStreams};
use crate::transport::operator::metrics::MetricsSources;
use crate::transport::operator::token::{self, OperatorToken};
use crate::transport::operator::way_out::ProxyLender;
use crate::transport::rest::RestTransport;

/// A start waits so long for IP databases and no longer; they are read on.
const DATABASES: Duration = Duration::from_secs(10);

/// What the process keeps and reaches, which the rest is built on.
pub(super) struct HostFoundation {
    pub(super) config: Arc<Config>,
    base_url: String,
    pub(super) store: Arc<Store>,
    operator_token: OperatorToken,
    oauth: Option<Arc<OAuth>>,
    egress: Arc<Egress>,
    proxy: Arc<Proxy>,
    ip_databases: Arc<IpDatabases>,
    pub(super) tasks: Tasks,
}

impl HostFoundation {
    pub(super) async fn open(
        config: Config,
        store: Arc<Store>,
        base_url: &str,
    ) -> Result<Self, StartError> {
        let token_path = config.data.join(token::FILE);
        let operator_token =
            OperatorToken::keep(&token_path).map_err(|source| StartFault::Token {
                path: token_path,
                source,
            })?;
        let oauth = config
            .file
            .oauth
            .as_ref()
            .map(|settings| OAuth::new(settings, base_url))
            .transpose()?;
        let ip_databases = IpDatabases::open(config.file.ip_databases.clone(), &config.data)?;
        Ok(Self {
            base_url: base_url.to_owned(),
            store,
            operator_token,
            oauth: oauth.map(Arc::new),
            egress: Arc::new(Egress::open(
                &config.file.egress,
                &config.file.dns,
                base_url,
            )?),
            proxy: Arc::new(Proxy::bind(&config.file.proxy).await?),
            ip_databases: Arc::new(ip_databases),
            tasks: Tasks::default(),
            config: Arc::new(config),
        })
    }

    pub(super) async fn registry(
        &self,
        manifest: Manifest,
        jobs: &Arc<JobQueue>,
        program: &Path,
    ) -> Result<Arc<Registry>, StartError> {
        let config = &self.config;
        let unread = Arc::clone(&self.ip_databases);
        let reading = blocking(move || unread.read());
        let runtime = Runtime::start(
            &config.data,
            Arc::clone(&self.store),
            config.file.limits.instances,
            ComponentCompiler::new(program, config.file.limits),
            CapabilityProviders {
                egress: Arc::clone(&self.egress),
                jobs: Arc::clone(jobs),
                ip_databases: Arc::clone(&self.ip_databases),
            },
        )?;
        let parts = RegistryParts {
            tasks: self.tasks.clone(),
            runtime,
            store: Arc::clone(&self.store),
            data: config.data.clone(),
            manifest,
            manifest_path: config.manifest.clone(),
            instances_max: config.file.limits.instances,
            shares: config.file.shares,
            body: config.file.limits.body_ms.time(),
            site: site(config, &self.base_url),
            safe_mode: config.safe_mode,
        };
        let (registry, read) = tokio::join!(
            Registry::open(parts),
            tokio::time::timeout(DATABASES, reading)
        );
        if read.is_err() {
            tracing::warn!(
                "IP databases are still being read; each is used as soon as it is verified"
            );
        }
        Ok(registry?)
    }

    /// Hands each room what it needs.
    pub(super) fn service(self, registry: Arc<Registry>, jobs: Arc<JobQueue>) -> Service {
        let (calls, reservations) = (Tasks::default(), Reservations::new(Arc::clone(&self.store)));
        let usage = UsageWriter {
            usage: Arc::new(UsageCounts::default()),
            store: Arc::clone(&self.store),
        };
        let pipeline = Arc::new(Pipeline {
            store: Arc::clone(&self.store),
            oauth: self.oauth.clone(),
            owner_secret: self.store.owner_secret(),
            usage: Arc::clone(&usage.usage),
            windows: Windows::default(),
            reservations: Arc::clone(&reservations),
            prices: self.config.file.credits.clone(),
            calls: calls.clone(),
        });
        let public = places(&self.config);
        let metrics = MetricsSources {
            started_at: SystemTime::now(),
            public: public.clone(),
            egress: Arc::clone(&self.egress),
            proxy: Arc::clone(&self.proxy),
            registry: Arc::clone(&registry),
            store: Arc::clone(&self.store),
            reservations: Arc::clone(&reservations),
            jobs: Arc::clone(&jobs),
        };
        let public_api = self.public_api(&registry, &pipeline);
        let maintenance = PeriodicMaintenance {
            registry: Arc::clone(&registry),
            proxy: Arc::clone(&self.proxy),
            store: Arc::clone(&self.store),
            reservations,
            usage: usage.clone(),
        };
        Service {
            config: Arc::clone(&self.config),
            ip_databases: Arc::clone(&self.ip_databases),
            tasks: self.tasks.clone(),
            proxy: Arc::clone(&self.proxy),
            oauth: self.oauth.clone(),
            calls,
            public,
            public_api: Arc::new(public_api),
            operator_api: Arc::new(self.operator_api(&registry, &pipeline, &jobs, usage, metrics)),
            maintenance,
            pipeline,
            registry,
            jobs,
        }
    }

    fn public_api(&self, registry: &Arc<Registry>, pipeline: &Arc<Pipeline>) -> PublicApi {
        let (config, base) = (&self.config, Url::parse(&self.base_url).ok());
        let path = base.as_ref().map_or("", |base| base.path());
        PublicApi {
            registry: Arc::clone(registry),
            rest: RestTransport {
                pipeline: Arc::clone(pipeline),
                first_party: FirstParty::new(config.file.first_party.origins.clone()),
                body_time: config.file.limits.body_ms.time(),
            },
            mcp: McpTransport {
                pipeline: Arc::clone(pipeline),
                origins: AllowedOrigins::new(base.as_ref(), config.file.mcp.origins.clone()),
                body_time: config.file.limits.body_ms.time(),
            },
            host_routes: HostRoutes {
                base_path: path.trim_end_matches('/').to_owned(),
                store: Arc::clone(&self.store),
                stop: self.tasks.stopping(),
            },
            request_time: config.file.limits.request_ms.time(),
        }
    }

    fn operator_api(
        self,
        registry: &Arc<Registry>,
        pipeline: &Arc<Pipeline>,
        jobs: &Arc<JobQueue>,
        usage: UsageWriter,
        metrics: MetricsSources,
    ) -> OperatorApi {
        OperatorApi {
            token: self.operator_token,
            base_url: self.base_url,
            registry: Arc::clone(registry),
            pipeline: Arc::clone(pipeline),
            jobs: Arc::clone(jobs),
            usage,
            metrics,
            events: EventStreams {
                registry: Arc::clone(registry),
                store: Arc::clone(&self.store),
                tasks: self.tasks,
                places: Arc::new(Semaphore::new(events::STREAMS_MAX)),
                request_time: self.config.file.limits.request_ms.time(),
            },
            lender: ProxyLender {
                registry: Arc::clone(registry),
                egress: self.egress,
                proxy: self.proxy,
            },
            store: self.store,
            config: self.config,
        }
    }
}

/// What the published documents say of this installation.
fn site(config: &Config, base_url: &str) -> Site {
    Site {
        base_url: base_url.to_owned(),
        issuer: config
            .file
            .oauth
            .as_ref()
            .map(|settings| settings.issuer.clone()),
        credits: config.file.credits.clone(),
    }
}
