//! Starting a server: settings, sockets, store, plugins, in an order in which the quick failures come first.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::{CommandFailure, compile};
use crate::config::{Config, Flags};
use crate::contract::manifest::Manifest;
use crate::lookup::IpDatabases;
use crate::observe::log_lines;
use crate::registry::{FollowedEntry, Registry, RegistryError};
use crate::serve::{Listeners, OpenStore, Service};
use crate::transport::operator::token;

/// What is open before the slow part begins.
pub(super) struct StartupParts {
    pub(super) config: Config,
    pub(super) manifest: Manifest,
    pub(super) listeners: Listeners,
    pub(super) store: OpenStore,
    pub(super) base_url: String,
}

/// `switchbay serve`.
pub(super) async fn serve(flags: Flags) -> Result<(), CommandFailure> {
    let StartupParts {
        config,
        listeners,
        store,
        base_url,
        ..
    } = open(&flags).await?;
    let service = Service::open(config, store, &base_url, &compile::program()?).await?;
    ready(&service.config.data, &listeners)?;
    service.tasks.spawn(follow(
        Arc::clone(&service.registry),
        Arc::clone(&service.ip_databases),
        signal(SignalKind::hangup())?,
    ));
    // Heard before anyone is told that this process serves.
    let signals = StopSignals::listen()?;
    // Behind a proxy the base URL does not tell the address, and port 0 tells it to nobody.
    tracing::info!(base_url, listen = %listeners.api.local_addr()?, "serving");
    signals.serve(service, listeners).await;
    Ok(())
}

/// Brings in what the manifest says anew: now, beside what was committed and serves already, and at every SIGHUP.
async fn follow(registry: Arc<Registry>, ip_databases: Arc<IpDatabases>, mut hangups: Signal) {
    if !registry.is_in_safe_mode() {
        log(registry.follow_to_end("manifest").await);
    }
    while hangups.recv().await.is_some() {
        ip_databases.read_again();
        log(registry.follow_to_end("manifest").await);
    }
}

fn log(followed: Result<Vec<FollowedEntry>, RegistryError>) {
    let outcomes = match followed {
        Ok(all) => all,
        Err(error) => {
            tracing::error!(%error, "the manifest cannot be followed; what runs keeps serving");
            return;
        }
    };
    for FollowedEntry {
        plugin, outcome, ..
    } in outcomes
    {
        if let Err(error) = outcome {
            tracing::error!(plugin, %error, "a plugin could not be brought in; what runs keeps serving");
        }
    }
}

/// Reads the settings and the manifest, binds both ports and takes the store.
pub(super) async fn open(flags: &Flags) -> Result<StartupParts, CommandFailure> {
    let config = Config::read(flags)?;
    log_lines::start(flags.log_format, &flags.log)?;
    let manifest = Manifest::read(&config.manifest)?;
    let api = bind("--listen", config.listen).await?;
    let operator = bind("--operator-listen", config.operator_listen).await?;
    let own = operator.local_addr()?;
    if !own.ip().to_canonical().is_loopback() {
        tracing::warn!(
            operator_listen = %own,
            "the operator's listener is not on a loopback address: its token crosses the network in cleartext, and \
             anyone who has it controls this server; bind it to loopback and reach it through a tunnel"
        );
    }
    let store = OpenStore::open(&config.data).await?;
    let base_url = match &config.base_url {
        Some(url) => url.clone(),
        None => format!("http://{}", api.local_addr()?),
    };
    Ok(StartupParts {
        config,
        manifest,
        listeners: Listeners { api, operator },
        store,
        base_url,
    })
}

/// Leaves the operator API's address for the command line.
pub(super) fn ready(data: &Path, listeners: &Listeners) -> Result<(), CommandFailure> {
    let address = listeners.operator.local_addr()?.to_string();
    token::write_private(&data.join(token::ADDRESS_FILE), &address)?;
    Ok(())
}

async fn bind(flag: &str, address: SocketAddr) -> Result<TcpListener, CommandFailure> {
    TcpListener::bind(address)
        .await
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => CommandFailure::of(format!(
                "the address {address} is in use: stop the process that uses it, or choose another with {flag}"
            )),
            _ => CommandFailure::of(format!("cannot listen on {address} ({flag}): {error}")),
        })
}

/// SIGTERM and Ctrl-C.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Hears them from now on.
    pub(super) fn listen() -> Result<Self, CommandFailure> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Serves until the first of them, and drains. A second one ends the process at once, also where something blocks.
    #[expect(
        clippy::disallowed_methods,
        reason = "it must be heard when nothing else goes on any more, and ends the process itself"
    )]
    pub(super) async fn serve(mut self, service: Service, listeners: Listeners) {
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(async move {
            self.heard().await;
            stop.send(()).ok();
            self.heard().await;
            tracing::warn!("stopped by a second signal, without draining");
            std::process::exit(130);
        });
        let stopped = async {
            stopped.await.ok();
        };
        service.serve(listeners, stopped).await;
    }

    async fn heard(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
