//! `switchbay dev` and `switchbay build`: components from crate folders, a working key, and plugins that follow their source.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use clap::Args;

use super::build;
use super::start;
use super::start::{StartupParts, StopSignals};
use super::watcher::Watcher;
use super::{CommandFailure, compile, one_line};
use crate::auth;
use crate::config::Flags;
use crate::contract::manifest::Manifest;
use crate::records::api_key::ALL_SCOPES;
use crate::registry::{BroughtIn, FollowedEntry, Registry};
use crate::serve::Service;
use crate::stores::Store;
use crate::transport::operator::keys;
use crate::transport::operator::keys::KeyRequest;
use crate::transport::operator::token::write_private;

/// Where the development key is kept between runs, so that a restart does not change it.
const KEY_FILE: &str = "development-key";
const KEY_PER_MINUTE: u32 = 60_000;

#[derive(Args)]
pub(super) struct DevelopArguments {
    #[command(flatten)]
    flags: Flags,
    /// Also write the development key to this file
    #[arg(long, env = "SWITCHBAY_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct BuildArguments {
    /// The plugin manifest [default: plugin-manifest.toml in this folder or one above]
    #[arg(long, env = "SWITCHBAY_MANIFEST", value_name = "FILE")]
    manifest: Option<PathBuf>,
}

/// `switchbay build`.
pub(super) async fn build(arguments: BuildArguments) -> Result<(), CommandFailure> {
    let path = match arguments.manifest {
        Some(path) => path,
        None => crate::config::find_manifest()?,
    };
    let manifest = Manifest::read(&path)?;
    build::build(&manifest.entries).await?;
    for entry in &manifest.entries {
        say!(
            "{}  {}",
            entry.name,
            crate::registry::component_path(&entry.source)?.display()
        );
    }
    Ok(())
}

/// `switchbay dev`.
pub(super) async fn dev(arguments: DevelopArguments) -> Result<(), CommandFailure> {
    let StartupParts {
        config,
        manifest,
        listeners,
        store,
        base_url,
    } = start::open(&arguments.flags).await?;
    let names: Vec<&str> = manifest
        .entries
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    say!("Building {} …", names.join(", "));
    build::build(&manifest.entries).await?;
    // Watching begins before loading, so that an edit in between is not missed.
    let watcher = Watcher::start(&config.manifest, &manifest.entries)?;
    let key = development_key(&store.store, &config.data).await?;
    if let Some(path) = &arguments.key_file {
        write_private(path, &key).map_err(|error| {
            CommandFailure::of(format!(
                "cannot write the key to {}: {error}",
                path.display()
            ))
        })?;
    }
    let service = Service::open(config, store, &base_url, &compile::program()?).await?;
    let registry = &service.registry;
    if !registry.is_in_safe_mode() {
        registry.follow("dev").await?.into_iter().for_each(tell);
    }
    start::ready(&service.config.data, &listeners)?;
    let operator = listeners.operator.local_addr()?.to_string();
    greet(&service, &operator, &base_url, &key);
    service.tasks.spawn(follow(Arc::clone(registry), watcher));
    StopSignals::listen()?.serve(service, listeners).await;
    Ok(())
}

/// Rebuilds and reloads after each change. A broken edit leaves what runs.
async fn follow(registry: Arc<Registry>, mut watcher: Watcher) {
    while watcher.changed().await.is_some() {
        rebuild(&registry).await;
        // The manifest may name other folders now.
        match watcher.renewed(registry.manifest_path(), &registry.manifest().entries) {
            Ok(Some(renewed)) => watcher = renewed,
            Ok(None) => {}
            Err(error) => say!(
                "Cannot watch the new sources: {}",
                one_line(&error.to_string())
            ),
        }
    }
}

async fn rebuild(registry: &Arc<Registry>) {
    let built = async {
        let manifest = Manifest::read(registry.manifest_path())?;
        build::build(&manifest.entries).await?;
        Ok::<_, CommandFailure>(registry.follow_to_end("dev").await?)
    };
    match built.await {
        Ok(followed) => followed.into_iter().for_each(tell),
        Err(error) => say!(
            "Not reloaded: {}. The running revisions keep serving.",
            one_line(&error.message)
        ),
    }
}

fn tell(followed: FollowedEntry) {
    let FollowedEntry {
        plugin,
        outcome,
        took,
    } = followed;
    let kept = |error: &dyn std::fmt::Display| {
        say!(
            "Not reloaded: {}. The running revision keeps serving.",
            one_line(&error.to_string())
        );
    };
    match outcome {
        Ok(BroughtIn::Nothing) => {}
        Ok(BroughtIn::Live) => say!("Reloaded {plugin} in {} ms", took.as_millis()),
        Ok(BroughtIn::Waits(why)) => kept(&why),
        Err(error) => kept(&error),
    }
}

/// The key of the last run, or a new one where that is gone or no longer good.
async fn development_key(store: &Store, data: &Path) -> Result<String, CommandFailure> {
    let path = data.join(KEY_FILE);
    let now = SystemTime::now();
    if let Ok(text) = std::fs::read_to_string(&path) {
        let text = text.trim().to_owned();
        if auth::by_key(store, &text, now).await.is_ok() {
            return Ok(text);
        }
    }
    let request = KeyRequest {
        label: "development".to_owned(),
        scopes: vec![ALL_SCOPES.to_owned()],
        per_minute: Some(KEY_PER_MINUTE),
        ..KeyRequest::default()
    };
    let issued = keys::issue(store, &request, now).await?;
    write_private(&path, &issued.key)?;
    Ok(issued.key)
}

fn greet(service: &Service, operator: &str, base_url: &str, key: &str) {
    let snapshot = service.registry.current();
    let catalogue = &snapshot.catalogue;
    say!("");
    say!("  API       {base_url}  (guide: {base_url}/developer-guide)");
    say!("  MCP       {base_url}/mcp");
    say!(
        "  Operator  http://{operator}  (token: {})",
        service
            .config
            .data
            .join(crate::transport::operator::token::FILE)
            .display()
    );
    say!("  Key       {key}");
    for revision in catalogue.revisions() {
        say!(
            "  Plugin    {} {} — {}",
            revision.plugin,
            revision.version,
            revision.summary
        );
    }
    if let Some(request) = snapshot
        .documents
        .guide
        .text()
        .split("```sh\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
    {
        say!("\nTry:\n\n{}", request.replace("$SWITCHBAY_KEY", key));
    }
    say!("Plugins reload when their source changes. Press Ctrl-C to stop.");
    let wants_databases = catalogue
        .revisions()
        .iter()
        .any(|revision| revision.rights.any_of("ip-database"));
    if wants_databases && service.ip_databases.are_none() {
        say!(
            "There is no IP database yet: run `switchbay data fetch` to get free ones while this runs."
        );
    }
}
