//! A recorded revision put together: what is recorded of it, its compiled component, and what it is lent.
//!
//! Decides nothing: whether two plugins collide is the catalogue's to say, and who granted what is in the record.

use std::sync::Arc;

use super::lifecycle::RevisionRecord;
use crate::base::line_rate::LineRate;
use crate::catalogue::revision::{CallRunner, Revision};
use crate::config::{self, TenantShares};
use crate::contract::description::Description;
use crate::contract::grants::Rights;
use crate::contract::manifest::PluginLimits;
use crate::egress::{Secret, SecretError};
use crate::runtime::call_places::{CallPlaces, ShareLimits};
use crate::runtime::capabilities::{GrantedCapabilities, LendingOrder};
use crate::runtime::components::ComponentFolder;
use crate::runtime::engine::Runtime;
use crate::runtime::instance::{InstanceParts, Instances, Off};
use crate::runtime::loader::{LoadError, linked};

/// What all revisions of one plugin share.
pub(super) struct PluginSlots {
    pub(super) places: Arc<CallPlaces>,
    pub(super) line_rate: Arc<LineRate>,
    waiting_each: usize,
}

impl PluginSlots {
    pub(super) fn new(plugin: &str, shares: TenantShares, limits: &PluginLimits) -> Self {
        let waiting_each = shares.waiting;
        let places = CallPlaces::new(
            plugin,
            share_limits(limits, waiting_each),
            shares.cpu_seconds.time(),
        );
        Self {
            places,
            line_rate: Arc::default(),
            waiting_each,
        }
    }
}

fn share_limits(limits: &PluginLimits, waiting_each: usize) -> ShareLimits {
    ShareLimits {
        places: limits.concurrency,
        each: limits.owner_concurrency(),
        waiting_each,
    }
}

/// What a revision is put together from.
pub(super) struct Whole {
    pub(super) plugin: String,
    pub(super) record: RevisionRecord,
    /// What it said of itself when it was staged.
    pub(super) description: Description,
    pub(super) rights: Rights,
}

/// A revision that can be called.
pub(super) async fn load(
    runtime: &Arc<Runtime>,
    components: &ComponentFolder,
    whole: Whole,
    slots: &PluginSlots,
) -> Result<Revision, LoadError> {
    let linked = linked(runtime, components, &whole.record.digest).await?;
    let (plugin, number, rights) = (&*whole.plugin, whole.record.number, &whole.rights);
    let settings = whole.record.settings.clone();
    let secrets = settings
        .secrets
        .iter()
        .map(|binding| Secret::bind(binding, config::secret));
    let secrets = secrets.collect::<Result<_, SecretError>>()?;
    let lent = GrantedCapabilities::lend(LendingOrder {
        runtime,
        plugin,
        number,
        rights,
        config: settings.config,
        secrets,
    });
    // Whatever could fail is done: what serves keeps its places until this one is there.
    slots
        .places
        .resize(share_limits(&settings.limits, slots.waiting_each));
    let instances = Instances::new(InstanceParts {
        engine: runtime.engine.clone(),
        run_queue: Arc::clone(&runtime.run_queue),
        background: Arc::clone(&runtime.background),
        pre: linked.pre,
        exports: linked.exports,
        lent: Arc::new(lent),
        plugin: plugin.into(),
        revision: number,
        limits: settings.limits,
        mode: settings.instances,
        places: Arc::clone(&slots.places),
        line_rate: Arc::clone(&slots.line_rate),
    });
    Ok(whole.run_by(CallRunner::Component(Arc::new(instances))))
}

/// A revision that is known and not run: its routes answer that it is off.
pub(super) fn off(whole: Whole, off: Off) -> Revision {
    whole.run_by(CallRunner::Off(off))
}

impl Whole {
    fn run_by(self, runner: CallRunner) -> Revision {
        let (plugin, record) = (&self.plugin, &self.record);
        let (description, rights) = (self.description, self.rights);
        Revision::new(
            plugin,
            record.number,
            &record.digest,
            description,
            rights,
            runner,
        )
    }
}
