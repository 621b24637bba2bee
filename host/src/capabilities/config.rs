//! `wasi:config/store`: the `config` table of the plugin's manifest entry, read-only.
//!
//! Must not know where settings come from or how they are masked.

use super::State;
use super::bindings::wasi::config::store::{Error, Host};

impl Host for State {
    fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<String>, Error>> {
        Ok(Ok(self.lent.config.get(&key).cloned()))
    }

    fn get_all(&mut self) -> wasmtime::Result<Result<Vec<(String, String)>, Error>> {
        Ok(Ok(self.lent.config.iter().map(|(key, value)| (key.clone(), value.clone())).collect()))
    }
}
