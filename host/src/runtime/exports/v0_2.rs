//! `switchbay:plugin@0.2.0`, the newest.

use super::version::plugin_version;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "switchbay:worlds/feature-of-0-2",
        exports: { default: async },
    });
}

/// A world of its own, because most plugins have no worker.
mod worker_bindings {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "switchbay:worlds/works",
        with: { "switchbay:plugin/types@0.2.0": super::bindings::switchbay::plugin0_2_0::types },
        exports: { default: async },
    });
}

plugin_version!(
    bindings::switchbay::plugin0_2_0::types,
    bindings::exports::switchbay::plugin0_2_0::feature,
    worker_bindings::exports::switchbay::plugin0_2_0::worker,
    |kind| match kind {
        CallerKind::ApiKey => Some(wire::CallerKind::ApiKey),
        CallerKind::OAuth => Some(wire::CallerKind::Oauth),
        CallerKind::FirstParty => Some(wire::CallerKind::FirstParty),
        CallerKind::Operator => Some(wire::CallerKind::Operator),
    }
);
