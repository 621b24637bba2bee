//! `switchbay:plugin@0.1.0`, which knows no operator among its callers.

use super::version::plugin_version;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "switchbay:worlds/feature-of-0-1",
        exports: { default: async },
    });
}

/// A world of its own, because most plugins have no worker.
mod worker_bindings {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "switchbay:worlds/worker-of-0-1",
        with: { "switchbay:plugin/types@0.1.0": super::bindings::switchbay::plugin0_1_0::types },
        exports: { default: async },
    });
}

plugin_version!(
    bindings::switchbay::plugin0_1_0::types,
    bindings::exports::switchbay::plugin0_1_0::feature,
    worker_bindings::exports::switchbay::plugin0_1_0::worker,
    |kind| match kind {
        CallerKind::ApiKey => Some(wire::CallerKind::ApiKey),
        CallerKind::OAuth => Some(wire::CallerKind::Oauth),
        CallerKind::FirstParty => Some(wire::CallerKind::FirstParty),
        CallerKind::Operator => None,
    }
);
