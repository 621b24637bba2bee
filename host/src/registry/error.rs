//! Why a change of the plugins was not made.
//!
//! Must not know who asked for it, nor how a client is told.

use super::lifecycle::LifeError;
use crate::catalogue::CollisionError;
use crate::contract::manifest::ManifestError;
use crate::runtime::loader::LoadError;
use crate::stores::StoreError;

/// A change that was not made. What runs serves on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistryError {
    #[error("there is no plugin `{name}` in plugin-manifest.toml")]
    NoPlugin { name: String },
    #[error("plugin `{plugin}`: {source}")]
    Load {
        plugin: String,
        source: Box<LoadError>,
    },
    #[error(transparent)]
    Collision(#[from] CollisionError),
    #[error(transparent)]
    Life(#[from] LifeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("plugin `{plugin}`: revision {number} was rejected while it was being prepared")]
    Rejected { plugin: String, number: u64 },
    #[error("plugin `{plugin}`: the description of the component {digest} is not in the store")]
    NoDescription { plugin: String, digest: String },
    #[error(
        "the plugins may run {wanted} calls at once; the instance pool has {room} instances, half of them kept for \
         draining revisions: raise `limits.instances` in the configuration, or lower `limits.concurrency` in the manifest"
    )]
    Pool { wanted: usize, room: u32 },
}

impl RegistryError {
    /// What keeps a component of the plugin's from becoming a revision.
    pub(super) fn load(plugin: &str, source: impl Into<LoadError>) -> Self {
        Self::Load {
            plugin: plugin.to_owned(),
            source: Box::new(source.into()),
        }
    }
}
