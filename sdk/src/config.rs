//! The plugin's settings: the `config` table of its entry in the operator's manifest.
//!
//! Using this module makes the component import `wasi:config/store`, which the manifest grants with the atom `config`.

use crate::bindings::wasi::config::store;

/// The value of a setting, or `None` where the operator set none or does not grant `config` (any more). TOML values that are
/// no strings arrive as JSON text.
pub fn get(key: &str) -> Option<String> {
    store::get(key).ok().flatten()
}
