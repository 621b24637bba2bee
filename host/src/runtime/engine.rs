//! The one WebAssembly engine, its ticker, and the cache of compiled code.
//!
//! One engine for all plugins: each reserves gigabytes of address space for its pool. Compiled code is loaded only from
//! files whose digest the store has from when they were written, in a folder that only this user may enter; the process that
//! serves never compiles.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sha2::{Digest, Sha256};
use uuid::Uuid;
use wasmtime::component::Component;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::background::Background;
use super::capabilities::PluginCaches;
use super::compiler::{CompileError, ComponentCompiler};
use super::run_queue::RunQueue;
use crate::base::tasks::blocking;
use crate::egress::Egress;
use crate::lookup::IpDatabases;
use crate::queue::JobQueue;
use crate::stores::{Store, StoreError};

/// How often a running guest yields and its processor budget is looked at.
const TICK: Duration = Duration::from_millis(5);
/// Linear memory that the pool reserves (not commits) for one instance; a plugin's own limit is at most this.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// Freed memories that are given back to the kernel in one go: each at once. What waits for a batch stays resident, for each
/// processor of the machine a batch times a plugin's memory limit.
const DECOMMIT_BATCH: usize = 1;

/// Bytes of a table that are cleared in place rather than given back: a guest's table is a few kilobytes, and a call to the
/// kernel for it costs more than the rest of it.
const TABLE_BYTES_KEPT: usize = 64 << 10;

/// Ends the name of a file that the compiler has not finished.
const PARTIAL: &str = "partial";
/// Ends the name of a file of compiled code.
const CODE: &str = "cwasm";

/// A component that could not be compiled or taken from the cache.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("cannot start the WebAssembly engine: {0}")]
    Start(String),
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error("its compiled code cannot be loaded: {0}")]
    Load(String),
    #[error(
        "its compiled code {path} is not what was written there: its digest in the store differs or is missing"
    )]
    Changed { path: PathBuf },
    #[error("the digest of its compiled code cannot be stored: {0}")]
    Digest(#[from] StoreError),
    #[error("the cache of compiled code at {path} failed: {source}")]
    Cache {
        path: PathBuf,
        source: std::io::Error,
    },
}

/// What the process lends to those that run here.
pub(crate) struct CapabilityProviders {
    /// The way out.
    pub(crate) egress: Arc<Egress>,
    pub(crate) jobs: Arc<JobQueue>,
    /// What they may be told of addresses.
    pub(crate) ip_databases: Arc<IpDatabases>,
}

/// The engine with its ticker thread, which ends when this is dropped.
pub(crate) struct Runtime {
    pub(crate) engine: Engine,
    compiler: ComponentCompiler,
    cache: PathBuf,
    /// Names the folder of the cache, and so the engine that its code is for.
    fingerprint: String,
    pub(crate) store: Arc<Store>,
    /// What the plugins that run here remember.
    pub(crate) caches: PluginCaches,
    pub(crate) lendable: CapabilityProviders,
    /// Where what runs here waits to compute on.
    pub(crate) run_queue: Arc<RunQueue>,
    /// Where what runs here goes on when it computes for long.
    pub(crate) background: Arc<Background>,
    stop: Arc<AtomicBool>,
    ticker: Option<JoinHandle<()>>,
}

impl Runtime {
    /// Starts an engine for at most `instances_max` instances at once, with its cache below `folder` and the digests of what is
    /// there in `store`.
    pub(crate) fn start(
        folder: &Path,
        store: Arc<Store>,
        instances_max: u32,
        compiler: ComponentCompiler,
        lendable: CapabilityProviders,
    ) -> Result<Self, EngineError> {
        let started = |error: wasmtime::Error| EngineError::Start(format!("{error:#}"));
        let engine = Engine::new(&configuration(instances_max)).map_err(started)?;
        let fingerprint = fingerprint(&engine);
        let cache = folder.join("compiled").join(&fingerprint);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&cache)
            .and_then(|()| remove_partial(&cache))
            .map_err(|source| EngineError::Cache {
                path: cache.clone(),
                source,
            })?;
        let stop = Arc::new(AtomicBool::new(false));
        let ticker = tick(engine.clone(), Arc::clone(&stop)).map_err(|error| {
            EngineError::Start(format!("cannot start the ticker's thread: {error}"))
        })?;
        let (caches, ticker) = (PluginCaches::default(), Some(ticker));
        let run_queue = RunQueue::new(processors());
        let background = Background::start(2 * processors()).map_err(|error| {
            EngineError::Start(format!(
                "cannot start the threads for long computations: {error}"
            ))
        })?;
        Ok(Self {
            engine,
            compiler,
            cache,
            fingerprint,
            store,
            caches,
            lendable,
            run_queue,
            background: Arc::new(background),
            stop,
            ticker,
        })
    }

    /// The compiled form of a component, where it is in the cache.
    pub(crate) async fn cached(&self, digest: &str) -> Option<Component> {
        let path = self.compiled(digest);
        if !path.exists() {
            return None;
        }
        let loaded = self.verified(digest, path.clone()).await;
        if let Err(error) = &loaded {
            tracing::warn!(path = %path.display(), %error, "cached code is unusable; compiling again");
        }
        loaded.ok()
    }

    /// Compiles a component into the cache.
    pub(crate) async fn compile(
        &self,
        bytes: &[u8],
        digest: &str,
    ) -> Result<Component, EngineError> {
        let path = self.compiled(digest);
        let partial = PartialFile(self.cache.join(format!("{}.{PARTIAL}", Uuid::now_v7())));
        self.compiler.compile(bytes, &partial.0).await?;
        // The digest first: code without one is compiled again, and so is code that a crash left beside another's.
        let code = digest_of_file(&partial.0).await?;
        self.store
            .put_code(&self.fingerprint, digest, &code)
            .await?;
        fs::rename(&partial.0, &path).map_err(|source| EngineError::Cache {
            path: path.clone(),
            source,
        })?;
        self.load(&path).await
    }

    /// Loads code from the cache that is what was written there.
    async fn verified(&self, digest: &str, path: PathBuf) -> Result<Component, EngineError> {
        let found = digest_of_file(&path).await?;
        match self.store.code(&self.fingerprint, digest).await? {
            Some(kept) if kept == found => self.load(&path).await,
            _ => Err(EngineError::Changed { path }),
        }
    }

    /// Removes compiled code that no record names.
    pub(crate) fn keep_only(&self, digests: &HashSet<String>) -> std::io::Result<()> {
        for entry in fs::read_dir(&self.cache)? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let is_code = path.extension().is_some_and(|extension| extension == CODE);
            if is_code && !stem.is_some_and(|stem| digests.contains(stem)) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn compiled(&self, digest: &str) -> PathBuf {
        self.cache.join(format!("{digest}.{CODE}"))
    }

    /// Maps and links compiled code, which takes a while for a large one.
    async fn load(&self, path: &Path) -> Result<Component, EngineError> {
        let (engine, path) = (self.engine.clone(), path.to_owned());
        let loading = tokio::task::spawn_blocking(move || load(&engine, &path));
        let loaded = loading
            .await
            .map_err(|error| EngineError::Load(error.to_string()))?;
        loaded.map_err(|error| EngineError::Load(format!("{error:#}")))
    }
}

/// SHA-256 of a file's bytes.
async fn digest_of_file(path: &Path) -> Result<[u8; 32], EngineError> {
    let file = path.to_owned();
    let read = blocking(move || -> std::io::Result<[u8; 32]> {
        let mut digest = Sha256::new();
        std::io::copy(&mut fs::File::open(file)?, &mut digest)?;
        Ok(digest.finalize().into())
    });
    read.await.map_err(|source| EngineError::Cache {
        path: path.to_owned(),
        source,
    })
}

/// A file that the compiler writes; it goes with this unless it was renamed.
struct PartialFile(PathBuf);

impl Drop for PartialFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.0.display(), %error, "a partial file could not be removed from the cache");
        }
    }
}

/// Removes what a process left that was killed while it compiled. One process at a time has the data folder.
fn remove_partial(cache: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(cache)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == PARTIAL)
        {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(ticker) = self.ticker.take()
            && ticker.join().is_err()
        {
            tracing::error!("the epoch ticker panicked");
        }
    }
}

#[expect(unsafe_code, reason = "loading compiled code has no safe form")]
fn load(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file was written by our own compiler (`compiler::compile_component`, from `code_configuration`): it has the
    // digest that the store keeps, in a folder which this user alone may change; wasmtime refuses one of another version or
    // configuration.
    unsafe { Component::deserialize_file(engine, path) }
}

fn configuration(instances_max: u32) -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances_max)
        .total_core_instances(instances_max.saturating_mul(4))
        .total_memories(instances_max)
        .total_tables(instances_max.saturating_mul(4))
        .total_stacks(instances_max)
        .max_memory_size(MEMORY_BYTES_MAX)
        .linear_memory_keep_resident(0)
        .table_keep_resident(TABLE_BYTES_KEPT)
        .decommit_batch_size(DECOMMIT_BATCH);
    let mut config = code_configuration();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Everything that compiled code depends on, so that the compiler's process and the one that serves agree on it. How
/// instances are allocated is not among it. Without wasmtime's feature `parallel-compilation` it compiles on one thread.
pub(crate) fn code_configuration() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true).memory_init_cow(true);
    config
}

/// Names everything that decides whether compiled code fits the engine.
fn fingerprint(engine: &Engine) -> String {
    use std::hash::{Hash, Hasher};

    struct Into256(Sha256);
    impl Hasher for Into256 {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            let digest = self.0.clone().finalize();
            u64::from_be_bytes([
                digest[0], digest[1], digest[2], digest[3], digest[4], digest[5], digest[6],
                digest[7],
            ])
        }
    }
    let mut hasher = Into256(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Guests that compute for long at once.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn tick(engine: Engine, stop: Arc<AtomicBool>) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("epoch-ticker".to_owned())
        .spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(TICK);
                engine.increment_epoch();
            }
        })
}
