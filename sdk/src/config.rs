//! The plugin's settings: the `config` table of its entry in the operator's manifest.
//!
//! Using this module makes the component import `wasi:config/store`, which the manifest grants with the atom `config`.

use crate::bindings::wasi::config::store;

/// Returns the value of a setting, or `None` if the operator did not set it or does not grant `config`
/// (or no longer does). TOML values other than strings are returned as JSON text.
pub fn get(key: &str) -> Option<String> {
    store::get(key).ok().flatten()
}
