//! `wasi:config/store`: the `config` table of the plugin's manifest entry, read-only.
//!
//! Must not know where settings come from or how they are masked.

use std::collections::BTreeMap;

use super::bindings::wasi::config::store::{Error, Host};
use super::{GuestState, LendingOrder};

/// The settings, where they are granted.
pub(super) fn lend(order: &mut LendingOrder<'_>) -> Option<BTreeMap<String, String>> {
    let settings = std::mem::take(&mut order.config);
    order.rights.any_of("config").then_some(settings)
}

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
        self.lent.config.as_ref().ok_or_else(|| {
            self.count_denial();
            Error::Upstream("not granted: config".to_owned())
        })
    }
}
