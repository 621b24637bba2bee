//! The one WebAssembly engine, its ticker, and the cache of compiled code.
//!
//! One engine for all plugins: each reserves gigabytes of address space for its pool. Compiled code is loaded only from
//! files that this module wrote itself, in a folder that only this user may enter.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sha2::{Digest, Sha256};
use wasmtime::component::Component;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

/// How often a running guest yields and its processor budget is looked at.
const TICK: Duration = Duration::from_millis(5);
/// Linear memory that the pool reserves (not commits) for one instance; a plugin's own limit is at most this.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// Freed instances whose memory is given back to the kernel in one go. More is faster under load, and more may stay resident
/// after an attack: a batch times a plugin's memory limit.
const DECOMMIT_BATCH: usize = 16;

/// Bytes of a table that are cleared in place rather than given back: a guest's table is a few kilobytes, and a call to the
/// kernel for it costs more than the rest of it.
const TABLE_BYTES_KEPT: usize = 64 << 10;

/// A component that could not be compiled or taken from the cache.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("cannot start the WebAssembly engine: {0}")]
    Start(String),
    #[error("it is not a WebAssembly component: {0}")]
    Compile(String),
    #[error("the cache of compiled code at {path} fails: {source}")]
    Cache { path: PathBuf, source: std::io::Error },
}

/// The engine with its ticker thread, which ends when this is dropped.
pub(crate) struct Runtime {
    engine: Engine,
    cache: PathBuf,
    stop: Arc<AtomicBool>,
    ticker: Option<JoinHandle<()>>,
}

impl Runtime {
    /// Starts an engine for at most `instances_max` instances at once, with its cache below `folder`.
    pub(crate) fn start(folder: &Path, instances_max: u32) -> Result<Self, EngineError> {
        let started = |error: wasmtime::Error| EngineError::Start(format!("{error:#}"));
        let engine = Engine::new(&configuration(instances_max)).map_err(started)?;
        let cache = folder.join("compiled").join(fingerprint(&engine));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&cache)
            .map_err(|source| EngineError::Cache { path: cache.clone(), source })?;
        let stop = Arc::new(AtomicBool::new(false));
        let ticker = tick(engine.clone(), Arc::clone(&stop))
            .map_err(|error| EngineError::Start(format!("no thread for the ticker: {error}")))?;
        Ok(Self { engine, cache, stop, ticker: Some(ticker) })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The compiled form of a component, from the cache where it is there. Blocks for as long as compiling takes, so it
    /// belongs on a blocking thread.
    pub(crate) fn component(&self, bytes: &[u8], digest: &str) -> Result<Component, EngineError> {
        let path = self.cache.join(format!("{digest}.cwasm"));
        if path.exists() {
            match load(&self.engine, &path) {
                Ok(component) => return Ok(component),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "cached code is unusable; compiling again");
                }
            }
        }
        let compiled =
            self.engine.precompile_component(bytes).map_err(|error| EngineError::Compile(format!("{error:#}")))?;
        let written = || {
            let partial = self.cache.join(format!("{digest}.{}.partial", std::process::id()));
            fs::write(&partial, &compiled)?;
            fs::rename(&partial, &path)
        };
        written().map_err(|source| EngineError::Cache { path: path.clone(), source })?;
        load(&self.engine, &path).map_err(|error| EngineError::Compile(format!("{error:#}")))
    }
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
    // SAFETY: the file was written by `Runtime::component` into a folder of mode 0700, from bytes that this engine's own
    // compiler made; wasmtime refuses one of another version or configuration.
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
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .memory_init_cow(true)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
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
            u64::from_be_bytes([digest[0], digest[1], digest[2], digest[3], digest[4], digest[5], digest[6], digest[7]])
        }
    }
    let mut hasher = Into256(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn tick(engine: Engine, stop: Arc<AtomicBool>) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("epoch-ticker".to_owned()).spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
            engine.increment_epoch();
        }
    })
}
