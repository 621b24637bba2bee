//! What any engine promises: the same suite for each of them.
//!
//! The embedded engine runs on a file. The one in memory fails, repeats and is not heard, each now and then: whoever asks makes
//! what failed again.

mod callers;
mod ledger;
pub(super) mod memory;
mod rows;

use std::sync::Arc;

use tempfile::TempDir;

use self::memory::{MemoryEngine, Mishaps};
use super::embedded::EmbeddedEngine;
use super::engine::Engine;
use super::{Store, StoreError};

/// An engine under test, with what it needs to live.
struct TestEngine {
    engine: Engine,
    _folder: Option<TempDir>,
}

const MISHAPS: Mishaps = Mishaps {
    fails: 5,
    is_unheard: 5,
    repeats: 5,
};

impl TestEngine {
    fn embedded() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let engine = EmbeddedEngine::open(folder.path()).expect("a file");
        Self {
            engine: Engine::Embedded(engine),
            _folder: Some(folder),
        }
    }

    fn memory(mishaps: Mishaps) -> Self {
        Self {
            engine: Engine::Memory(MemoryEngine::new(mishaps, rand::random())),
            _folder: None,
        }
    }
}

/// A store on each engine, with the folder that one of them lives in.
async fn stores() -> [(Arc<Store>, Option<TempDir>); 2] {
    let folder = TempDir::new().expect("a temporary folder");
    let embedded = Store::open(folder.path()).await.expect("a store");
    let memory = again(async || {
        let engine = MemoryEngine::new(MISHAPS, rand::random());
        Store::of(Engine::Memory(engine)).await
    });
    [
        (Arc::new(embedded), Some(folder)),
        (Arc::new(memory.await), None),
    ]
}

/// Asks until it is answered.
async fn again<T>(ask: impl AsyncFn() -> Result<T, StoreError>) -> T {
    for _ in 0..1000 {
        if let Ok(answer) = ask().await {
            return answer;
        }
    }
    panic!("the engine fails always");
}
