//! `wasi:config/store`: the `config` table of the plugin's manifest entry, read-only.
//!
//! Must not know where settings come from or how they are masked.

use std::collections::BTreeMap;

use super::GuestState;
use super::bindings::wasi::config::store::{Error, Host};

impl Host for GuestState {
    fn get(&mut self, key: String) -> Result<Option<String>, Error> {
        self.settings().map(|settings| settings.get(&key).cloned())
    }

    fn get_all(&mut self) -> Result<Vec<(String, String)>, Error> {
        self.settings()
            .map(|settings| settings.clone().into_iter().collect())
    }
}

impl GuestState {
    fn settings(&self) -> Result<&BTreeMap<String, String>, Error> {
        if self.may("config") {
            Ok(&self.lent.config)
        } else {
            Err(Error::Upstream("not granted: config".to_owned()))
        }
    }
}
