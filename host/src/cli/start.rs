//! Starting a server: settings, sockets, store, plugins, in an order in which the quick failures come first.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{CommandFailure, compile};
use crate::app::{App, OpenStore};
use crate::config::{Config, Flags};
use crate::operator::token;
use crate::registry::manifest::Manifest;
use crate::registry::{Followed, RegistryError};
use crate::{Listeners, telemetry};

/// What is open before the slow part begins.
pub(super) struct Opened {
    pub(super) config: Config,
    pub(super) manifest: Manifest,
    pub(super) listeners: Listeners,
    pub(super) store: OpenStore,
    pub(super) base_url: String,
}

/// `switchbay serve`.
pub(super) async fn serve(flags: Flags) -> Result<(), CommandFailure> {
    let Opened { config, listeners, store, base_url, .. } = open(&flags).await?;
    let app = Arc::new(App::open(config, store, &base_url, &compile::program()?).await?);
    ready(&app, &listeners)?;
    tokio::spawn(follow(Arc::clone(&app), signal(SignalKind::hangup())?));
    // Heard before anyone is told that this process serves.
    let stop = stop_signal()?;
    // Behind a proxy the base URL does not tell the address, and port 0 tells it to nobody.
    tracing::info!(base_url, listen = %listeners.api.local_addr()?, "serving");
    crate::serve(listeners, app, stop).await;
    Ok(())
}

/// Brings in what the manifest says anew: now, beside what was committed and serves already, and at every SIGHUP.
async fn follow(app: Arc<App>, mut hangups: Signal) {
    let mut is_due = !app.config.safe_mode;
    loop {
        if is_due {
            log(app.registry.follow("manifest").await);
        }
        is_due = tokio::select! {
            () = app.stop.cancelled() => return,
            heard = hangups.recv() => heard.is_some(),
        };
        if !is_due {
            return;
        }
        app.ip_databases.read_again();
    }
}

fn log(followed: Result<Vec<Followed>, RegistryError>) {
    let outcomes = match followed {
        Ok(all) => all,
        Err(error) => {
            tracing::error!(%error, "the manifest cannot be followed; what runs serves on");
            return;
        }
    };
    for Followed { plugin, outcome, .. } in outcomes {
        if let Err(error) = outcome {
            tracing::error!(plugin, %error, "a plugin was not brought in; what runs serves on");
        }
    }
}

/// Reads the settings and the manifest, binds both ports and takes the store.
pub(super) async fn open(flags: &Flags) -> Result<Opened, CommandFailure> {
    let config = Config::read(flags)?;
    telemetry::start(flags.log_format, &flags.log)?;
    let manifest = Manifest::read(&config.manifest)?;
    let api = bind("--listen", config.listen).await?;
    let operator = bind("--operator-listen", config.operator_listen).await?;
    let own = operator.local_addr()?;
    if !own.ip().to_canonical().is_loopback() {
        tracing::warn!(
            operator_listen = %own,
            "the operator's listener is not on a loopback address: its token crosses the network in the clear, and whoever has \
             it controls this server; bind it to loopback and reach it through a tunnel"
        );
    }
    let store = OpenStore::open(&config.data)?;
    let base_url = match &config.base_url {
        Some(url) => url.clone(),
        None => format!("http://{}", api.local_addr()?),
    };
    Ok(Opened { config, manifest, listeners: Listeners { api, operator }, store, base_url })
}

/// Leaves the operator API's address for the command line.
pub(super) fn ready(app: &App, listeners: &Listeners) -> Result<(), CommandFailure> {
    let address = listeners.operator.local_addr()?.to_string();
    token::write_private(&app.config.data.join(token::ADDRESS_FILE), &address)?;
    Ok(())
}

async fn bind(flag: &str, address: SocketAddr) -> Result<TcpListener, CommandFailure> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => CommandFailure::of(format!(
            "the address {address} is in use: stop what has it, or choose another with {flag}"
        )),
        _ => CommandFailure::of(format!("cannot listen on {address} ({flag}): {error}")),
    })
}

/// Ready on the first SIGTERM or Ctrl-C. A second one ends the process at once.
pub(super) fn stop_signal() -> Result<impl Future<Output = ()>, CommandFailure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::warn!("stopped by a second signal, without draining");
            std::process::exit(130);
        });
    })
}
