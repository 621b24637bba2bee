//! What a plugin can be lent, one file per WIT package of the same name, and the base set that every guest may import.
//!
//! A capability is a row of [`ALL`]: the interface, the grant atom that lends it, and how it is linked. A new kind of access
//! to the world is a new file and a new row. A published package never changes: what changes is a new version of it with a row of
//! its own, and the host serves the last two side by side. Nothing here decides who is granted what: `registry` does,
//! from the manifest and the approvals, and an instance carries what came of it.

mod cache;
mod config;
mod dns;
mod http;
mod instance;
mod ip_database;
mod jobs;
mod line_query;
mod logging;
mod state;

use wasmtime::component::{HasSelf, Linker};

use self::bindings::{switchbay, wasi};
pub(crate) use self::cache::{PluginCache, PluginCaches};
pub(crate) use self::instance::{GrantedCapabilities, GuestState, JobWorker, OnBehalf};
pub(crate) use self::jobs::JobsOf;
pub(crate) use self::logging::{LogScope, tell_of_dropped};
pub(crate) use self::state::PluginRecords;

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

/// All of them.
pub(crate) const ALL: [Capability; 11] = [
    Capability {
        interface: "switchbay:cache/store@0.1.0",
        atom: "cache",
        link: switchbay::cache::store::add_to_linker::<_, HasSelf<GuestState>>,
    },
    Capability {
        interface: "wasi:config/store@0.2.0-rc.1",
        atom: "config",
        link: wasi::config::store::add_to_linker::<_, HasSelf<GuestState>>,
    },
    Capability {
        interface: "switchbay:dns/resolver@0.1.0",
        atom: "dns",
        link: switchbay::dns::resolver::add_to_linker::<_, HasSelf<GuestState>>,
    },
    Capability {
        interface: "switchbay:http/client@0.1.0",
        atom: "http",
        link: switchbay::http::client::add_to_linker::<_, HasSelf<GuestState>>,
    },
    Capability {
        interface: "switchbay:ip-database/lookup@0.1.0",
        atom: "ip-database",
        link: switchbay::ip_database::lookup::add_to_linker::<_, HasSelf<GuestState>>,
    },
    Capability {
        interface: "switchbay:jobs/queue@0.1.0",
        atom: "jobs",
        link: switchbay::jobs::queue::add_to_linker::<_, HasSelf<GuestState>>,
    },
    Capability {
        interface: "switchbay:jobs/work@0.1.0",
        atom: "jobs",
        link: switchbay::jobs::work::add_to_linker::<_, HasSelf<GuestState>>,
    },
    Capability {
        interface: "switchbay:line-query/client@0.1.0",
        atom: "line-query",
        link: switchbay::line_query::client::add_to_linker::<_, HasSelf<GuestState>>,
    },
    Capability {
        interface: "wasi:logging/logging@0.1.0-draft",
        atom: "logging",
        link: wasi::logging::logging::add_to_linker::<_, HasSelf<GuestState>>,
    },
    Capability {
        interface: "switchbay:state/records@0.1.0",
        atom: "state",
        link: switchbay::state0_1_0::records::add_to_linker::<_, HasSelf<GuestState>>,
    },
    Capability {
        interface: "switchbay:state/records@0.2.0",
        atom: "state",
        link: switchbay::state0_2_0::records::add_to_linker::<_, HasSelf<GuestState>>,
    },
];

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
