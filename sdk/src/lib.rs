//! Write a Switchbay plugin in Rust.
//!
//! A plugin is a set of operations. Each has a typed input and output (serde reads and writes them,
//! schemars derives their JSON Schemas), the error codes that it may fail with, and its faces: a REST
//! route, an MCP tool, or both. [`export!`] turns the plugin into a WebAssembly component. The
//! description that the host reads is generated from the same types, so it cannot drift from the code.
//! This is a complete plugin:
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use switchbay_sdk::{Call, ErrorCode, Failure, Operation, Plugin, Reply, Rest, Tool, plugin};
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Greet {
//!     /// The person to greet.
//!     #[schemars(length(min = 1, max = 64))]
//!     name: String,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Greeting {
//!     /// The greeting.
//!     text: String,
//! }
//!
//! const SHY: ErrorCode = ErrorCode::new("UNPROCESSABLE_ENTITY", 422, "The person does not want to be greeted.");
//!
//! async fn greet(_call: Call, input: Greet) -> Result<Reply<Greeting>, Failure> {
//!     if input.name == "Nobody" {
//!         return Err(SHY.failure("`name` is Nobody, who does not want to be greeted").field("name"));
//!     }
//!     Ok(Reply::ok(Greeting { text: format!("Hello, {}!", input.name) }))
//! }
//!
//! fn plugin() -> Plugin {
//!     plugin!("Greets people").operation(
//!         Operation::new("greet", greet)
//!             .title("Greet a person")
//!             .description("Returns a greeting for the named person.")
//!             .rest(Rest::post("/api/v1/hello", "hello:greet"))
//!             .tool(Tool::new("greet_person", "hello:greet").read_only())
//!             .error(SHY)
//!             .example("A greeting", r#"{ "name": "Ada" }"#),
//!     )
//! }
//!
//! switchbay_sdk::export!(plugin);
//! # fn main() {
//! #     assert!(switchbay_sdk::describe(&plugin()).contains("greet_person"));
//! # }
//! ```
//!
//! Its `Cargo.toml` sets `crate-type = ["cdylib"]` and depends on this crate, serde and schemars. An
//! entry in `plugin-manifest.toml` names its folder; `switchbay dev` builds it and reloads it while you
//! edit.
//!
//! An input type must have `#[serde(deny_unknown_fields)]`, document every field, and stay flat: the
//! host publishes its schema to MCP clients, many of which fail on references, unions and deep nesting,
//! so the host refuses such a schema at load.
//!
//! Each capability has its own module: [`cache`], [`config`], [`dns`], [`features`], [`http`], [`ip_database`],
//! [`jobs`], [`line_query`], [`log`], [`state`]. Using a module makes the component import the
//! capability; the plugin asks for it with [`Plugin::wants`], and the operator grants it.
//!
//! [`host_name`] classifies host names that callers supply, [`lenient`] reads JSON that others write, and
//! `public_url` (a feature of this crate: `url`) URLs that callers supply; they need no grant.
//!
//! What most plugins need sooner or later: [`failures!`] makes an error enum the failures of an operation, [`Deadline`]
//! divides a call's time, [`Timestamp`] is a moment with its schema, [`cache::get_or_make`] remembers, and
//! [`config::read`] reads settings as a struct. There is no sleep: the host has no timer that a component could wait for
//! without holding up its instance.
//!
//! This crate knows the contract (`wit/`) and no feature. It never sees routes or credentials.

extern crate self as switchbay_sdk;

mod deadline;
mod failures;
mod number;
mod operation;
mod plugin;
mod reply;
mod rest;
mod schema;
mod timestamp;

pub mod cache;
pub mod config;
pub mod dns;
pub mod features;
pub mod host_name;
pub mod http;
pub mod ip_database;
pub mod jobs;
pub mod lenient;
pub mod line_query;
pub mod log;
#[cfg(feature = "url")]
pub mod public_url;
pub mod state;
pub mod tracking;

pub use deadline::Deadline;
pub use failures::OperationError;
pub use number::number;
pub use operation::{Limit, Operation, Tool};
pub use plugin::{Plugin, describe, invoke, work};
pub use reply::{ErrorCode, Failure, Reply};
pub use rest::Rest;
pub use timestamp::Timestamp;

/// Bindings generated from `wit/`, for [`export!`] and for anything the typed API does not cover.
#[expect(
    missing_docs,
    reason = "generated from wit/, which has the documentation"
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../wit",
        world: "switchbay:worlds/guest",
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "switchbay_sdk::bindings",
        runtime_path: "switchbay_sdk::wit_bindgen_rt",
    });
}

/// The export of plugins with jobs, in a world of its own so that no other component exports it.
#[doc(hidden)]
pub mod worker_bindings {
    wit_bindgen::generate!({
        path: "../wit",
        world: "switchbay:worlds/works",
        with: { "switchbay:plugin/types@0.2.0": crate::bindings::switchbay::plugin0_2_0::types },
        pub_export_macro: true,
        export_macro_name: "export_worker_component",
        default_bindings_module: "switchbay_sdk::worker_bindings",
        runtime_path: "switchbay_sdk::wit_bindgen_rt",
    });
}

#[doc(hidden)]
pub use wit_bindgen::rt as wit_bindgen_rt;

pub use bindings::switchbay::plugin0_2_0::types::{Call, Caller, CallerKind};
pub use schemars;

/// A plugin with the name and the version of the crate, and a summary of one line: [`Plugin::new`].
///
/// ```
/// let plugin = switchbay_sdk::plugin!("Greets people");
/// # assert!(switchbay_sdk::describe(&plugin).contains(env!("CARGO_PKG_VERSION")));
/// ```
#[macro_export]
macro_rules! plugin {
    ($summary:expr) => {
        $crate::Plugin::new(
            ::core::env!("CARGO_PKG_NAME"),
            ::core::env!("CARGO_PKG_VERSION"),
            $summary,
        )
    };
}

/// Exports the plugin that the given function builds as this component.
#[macro_export]
macro_rules! export {
    ($plugin:path) => {
        const _: () = {
            static PLUGIN: ::std::sync::LazyLock<$crate::Plugin> =
                ::std::sync::LazyLock::new($plugin);

            struct Component;

            impl $crate::bindings::exports::switchbay::plugin0_2_0::feature::Guest for Component {
                fn describe() -> ::std::string::String {
                    $crate::describe(&PLUGIN)
                }

                async fn invoke(
                    call: $crate::Call,
                    input: ::std::string::String,
                ) -> ::core::result::Result<
                    $crate::bindings::switchbay::plugin0_2_0::types::Reply,
                    $crate::bindings::switchbay::plugin0_2_0::types::Failure,
                > {
                    $crate::invoke(&PLUGIN, call, input).await
                }
            }

    $crate::bindings::export_component!(Component with_types_in $crate::bindings);
        };
    };
}

/// Exports the workers of the plugin that the given function builds. A plugin with jobs needs it in
/// addition to [`export!`].
#[macro_export]
macro_rules! export_worker {
    ($plugin:path) => {
        const _: () = {
            static PLUGIN: ::std::sync::LazyLock<$crate::Plugin> = ::std::sync::LazyLock::new($plugin);

            struct Component;

            impl $crate::worker_bindings::exports::switchbay::plugin0_2_0::worker::Guest for Component {
                async fn run(
                    call: $crate::Call,
                    input: ::std::string::String,
                ) -> ::core::result::Result<
                    $crate::bindings::switchbay::plugin0_2_0::types::Reply,
                    $crate::bindings::switchbay::plugin0_2_0::types::Failure,
                > {
                    $crate::work(&PLUGIN, call, input).await
                }
            }

    $crate::worker_bindings::export_worker_component!(Component with_types_in $crate::worker_bindings);
        };
    };
}
