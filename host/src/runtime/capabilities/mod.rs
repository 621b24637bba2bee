//! What a plugin can be lent, one file per WIT package of the same name, and the base set that every guest may import.
//!
//! A capability is a row of one table: the interface, the grant atom that lends it, how it is linked, and the function that
//! makes what a revision is lent of it. A new kind of access to the world is a new file and a new row. A published package never changes: what changes is a new version of it with a row of
//! its own, and the host serves the last two side by side. Nothing here decides who is granted what: `registry` does,
//! from the manifest and the approvals, and an instance carries what came of it.

mod cache;
mod config;
mod dns;
mod features;
mod http;
mod instance;
mod ip_database;
mod jobs;
mod line_query;
mod logging;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker};

use self::bindings::{switchbay, wasi};
pub(crate) use self::cache::{PluginCache, PluginCaches};
pub(crate) use self::instance::{GuestState, JobWorker, OnBehalf};
use self::jobs::JobsOf;
pub(crate) use self::logging::{LogScope, tell_of_dropped};
use self::state::PluginRecords;
use super::engine::Runtime;
use crate::contract::grants::Rights;
use crate::egress::{EgressClient, Secret};
use crate::lookup::IpDatabases;

/// The host's side of `wit/`.
pub(crate) mod bindings {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "switchbay:worlds/lent",
    });
}

/// An interface that an operator can grant.
pub(crate) struct Capability {
    /// The interface as a component imports it.
    pub(crate) interface: &'static str,
    /// Its name in grant atoms.
    pub(crate) atom: &'static str,
    link: LinkInterface,
}

type LinkInterface =
    fn(&mut Linker<GuestState>, fn(&mut GuestState) -> &mut GuestState) -> wasmtime::Result<()>;

/// What a revision is lent from: what this process has, and whose revision it is.
pub(crate) struct LendingOrder<'r> {
    pub(crate) runtime: &'r Runtime,
    pub(crate) plugin: &'r str,
    /// The revision's number.
    pub(crate) number: u64,
    pub(crate) rights: &'r Rights,
    /// The plugin's settings. Who lends them takes them.
    pub(crate) config: BTreeMap<String, String>,
    /// What the gate adds to the plugin's requests. The same holds.
    pub(crate) secrets: Vec<Secret>,
}

/// Makes of the table below what a revision is lent and the list of interfaces. A row is what is lent, the function of the
/// capability's own file that makes it, and the interfaces that reach it: `ATOM INTERFACE BINDINGS`.
macro_rules! capabilities {
    (
        nothing {
            $($bare_atom:literal $bare_interface:literal $($bare_link:ident)::+,)+
        }
        $($(#[$about:meta])* $lent:ident: $kind:ty = $lend:path {
            $($atom:literal $interface:literal $($link:ident)::+,)+
        })+
    ) => {
        /// What a plugin was lent, the same for all its instances of one revision. A revision that describes itself was lent
        /// nothing.
        #[derive(Default)]
        pub(crate) struct GrantedCapabilities {
            /// What the revision may do.
            pub(crate) rights: Rights,
            $($(#[$about])* pub(crate) $lent: Option<$kind>,)+
        }

        impl GrantedCapabilities {
            /// What a revision is lent, made once when it is loaded.
            pub(crate) fn lend(mut order: LendingOrder<'_>) -> Self {
                Self {
                    $($lent: $lend(&mut order),)+
                    rights: order.rights.clone(),
                }
            }
        }

        /// All interfaces.
        const ALL: &[Capability] = &[
            $($(Capability {
                interface: $interface,
                atom: $atom,
                link: $($link)::+::add_to_linker::<_, HasSelf<GuestState>>,
            },)+)+
            $(Capability {
                interface: $bare_interface,
                atom: $bare_atom,
                link: $($bare_link)::+::add_to_linker::<_, HasSelf<GuestState>>,
            },)+
        ];
    };
}

capabilities! {
    // What these need comes with each call.
    nothing {
        "features" "switchbay:features/client@0.1.0" switchbay::features::client,
        "logging" "wasi:logging/logging@0.1.0-draft" wasi::logging::logging,
    }
    /// The plugin's cache, where it is granted.
    cache: PluginCache = cache::lend {
        "cache" "switchbay:cache/store@0.1.0" switchbay::cache::store,
    }
    /// The plugin's settings, where they are granted.
    config: BTreeMap<String, String> = config::lend {
        "config" "wasi:config/store@0.2.0-rc.1" wasi::config::store,
    }
    /// The way out.
    door: EgressClient = http::lend {
        "dns" "switchbay:dns/resolver@0.1.0" switchbay::dns::resolver,
        "http" "switchbay:http/client@0.1.0" switchbay::http::client,
        "line-query" "switchbay:line-query/client@0.1.0" switchbay::line_query::client,
    }
    /// What is known of addresses.
    ip_databases: Arc<IpDatabases> = ip_database::lend {
        "ip-database" "switchbay:ip-database/lookup@0.1.0" switchbay::ip_database::lookup,
    }
    /// The plugin's jobs.
    jobs: JobsOf = jobs::lend {
        "jobs" "switchbay:jobs/queue@0.1.0" switchbay::jobs::queue,
        "jobs" "switchbay:jobs/work@0.1.0" switchbay::jobs::work,
    }
    /// The plugin's records, where they are granted.
    records: PluginRecords = state::lend {
        "state" "switchbay:state/records@0.1.0" switchbay::state0_1_0::records,
        "state" "switchbay:state/records@0.2.0" switchbay::state0_2_0::records,
    }
}

/// What any guest may import: the standard libraries of common languages do. Files and sockets among them are empty: no
/// folder is preopened and every socket operation is denied. The contract's own types have no functions.
const BASE: [&str; 7] = [
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:filesystem/",
    "wasi:io/",
    "wasi:random/",
    "wasi:sockets/",
    "switchbay:plugin/types@",
];

/// How an import stands to what this host has.
pub(crate) enum ImportStanding {
    Base,
    Lent(&'static Capability),
    Unknown,
}

/// Judges one import of a component.
pub(crate) fn standing(import: &str) -> ImportStanding {
    if BASE.iter().any(|prefix| import.starts_with(prefix)) {
        return ImportStanding::Base;
    }
    ALL.iter()
        .find(|capability| capability.interface == import)
        .map_or(ImportStanding::Unknown, ImportStanding::Lent)
}

/// Links the base set.
pub(crate) fn link_base(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)
}

impl Capability {
    pub(crate) fn link(&self, linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
        (self.link)(linker, |state| state)
    }
}
