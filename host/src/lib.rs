//! Switchbay: one process that serves a developer API whose every feature is a WebAssembly component.
//!
//! The map, in reading order:
//!
//! - `config`, `app`: what is meant, and the one place that wires it.
//! - `operation`, `error`: the values that travel the road, and the one table from code to status.
//! - `http`, `mcp`: the transports. They parse and print.
//! - `pipeline`, `reading`: the one road to a plugin, and how it reads arguments.
//! - `places`: how much of a listener a peer may have.
//! - `stock`: a bounded resource of which each has a share.
//! - `auth`, `metering`: who may call, how often and at what price.
//! - `jobs`: work that outlives the call which submitted it.
//! - `address`: what an address is, and which are public.
//! - `media_type`: what a `Content-Type` says.
//! - `egress`: what leaves the process, and where it may go.
//! - `metrics`: what is counted for the operator.
//! - `registry`, `catalogue`, `published`: plugins loaded, put together and documented.
//! - `capabilities`: what a plugin may be lent, one file per WIT interface of the same name.
//! - `egress`: the one gate to the network.
//! - `ip_databases`: what is known of IP addresses, and time zones.
//! - `data`: free databases, fetched for the operator.
//! - `stores`: what outlives the process.
//! - `watch`: folders whose changes are followed.
//! - `operator`, `cli`: the operator's listener and command line.
//!
//! Invariants, checked by `tests/it/tidy.rs`: no plugin is named here; hyper stays in `http`, `mcp`, `operator` and
//! `egress`, which alone makes connections outwards, wasmtime in `registry` and `capabilities`, reqwest in `egress`; `pipeline`
//! alone invokes a plugin; status numbers stand in `error`, in the transports and in `egress::proxy`, which is one too.

mod address;
mod app;
mod auth;
mod capabilities;
mod catalogue;
mod config;
mod data;
mod egress;
mod error;
mod http;
mod ip_databases;
mod jobs;
mod mcp;
mod media_type;
mod metering;
mod metrics;
mod operation;
mod operator;
mod pipeline;
mod places;
mod published;
mod reading;
mod registry;
mod stock;
mod stores;
mod telemetry;
mod watch;

pub mod cli;
pub mod native;

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::places::Places;
use crate::places::peer::Proxies;

pub use app::{App, OpenStore, StartError};
pub use config::{Compile, Config, ConfigError, Flags, LogFormat, OAuthSettings, Transport};

/// The two bound sockets.
pub struct Listeners {
    /// For clients.
    pub api: TcpListener,
    /// For the operator; never reachable through the first.
    pub operator: TcpListener,
}

/// Serves until `shutdown` is ready, then drains both listeners.
pub async fn serve(listeners: Listeners, app: Arc<App>, shutdown: impl Future<Output = ()>) {
    let transport = app.config.transport;
    // Each listener has its own places, so that a full house still lets the operator in.
    let own = Places::new(app.config.places, Proxies::new(app.config.trusted_proxies.clone()));
    let public = app.public.clone();
    let stop = app.stop.clone();
    let (api, operator) = (Arc::clone(&app), Arc::clone(&app));
    let served = CancellationToken::new();
    let serving = async {
        let listeners = async {
            tokio::join!(
                http::connection::serve(listeners.api, transport, public, stop.clone(), move |request, visit| {
                    http::handle(Arc::clone(&api), request, visit)
                }),
                http::connection::serve(listeners.operator, transport, own, stop.clone(), move |request, visit| {
                    operator::handle(Arc::clone(&operator), request, visit)
                }),
            );
            served.cancel();
        };
        let jobs = Arc::clone(&app.jobs).work(Arc::clone(&app.registry), app.stop.clone());
        let databases = Arc::clone(&app.ip_databases).follow(served.clone());
        let months = Arc::clone(&app).keep_months(served.clone());
        tokio::join!(listeners, Arc::clone(&app).run_maintenance(served.clone()), months, jobs, databases);
    };
    // Keys may be wanted until the last request is answered.
    let serving = async {
        match &app.oauth {
            Some(oauth) => tokio::select! {
                () = serving => {}
                never = oauth.keep_keys() => match never {},
            },
            None => serving.await,
        }
    };
    let spawn_uncancellable = async {
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            () = serving.as_mut() => {}
            () = shutdown => {
                tracing::info!("stopping: no new connections, running requests end");
                stop.cancel();
                serving.await;
            }
        }
        app.finish().await;
        app.proxy.end();
    };
    // The programs of a running call need their way out until it has ended.
    tokio::join!(app.proxy.serve(), spawn_uncancellable);
}
