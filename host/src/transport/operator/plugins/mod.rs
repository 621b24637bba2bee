//! Plugins as the operator handles them: listed, staged, compared, approved, activated, rolled back, switched off and on.
//!
//! `asked` reads what is asked, `told` shows what came of it; between them the registry is asked. Decides nothing.

mod asked;
mod told;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(crate) use self::asked::{
    ActRequest, ApproveOrder, CompareQuery, ComponentOrder, PlainOrder, PluginPath, RevisionPath,
    RevokeOrder, RollbackOrder, StageQuery, StagedComponent,
};
pub(crate) use self::told::{PluginList, PluginStanding, PluginView, RevisionList, RevisionView};
use self::told::{plugin, revision, revisions};
use crate::base::clock::milliseconds;
use crate::contract::error::{Code, Refusal};
use crate::contract::manifest::{Manifest, ManifestEntry};
use crate::registry::lifecycle::{LifeError, PluginRecord};
use crate::registry::{
    BroughtIn, ComponentSource, FollowedEntry, PluginAction, Registry, RegistryError,
    RevisionComparison, StageOrder,
};

/// A comparison, also in words.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ComparisonView {
    #[serde(flatten)]
    pub(crate) comparison: RevisionComparison,
    /// For people.
    pub(crate) text: String,
}

/// What came of reading the manifest again.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct FollowReport {
    pub(crate) plugins: Vec<FollowedPlugin>,
}

/// What became of one plugin.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FollowedPlugin {
    pub(crate) plugin: String,
    pub(crate) outcome: FollowOutcome,
    /// Why it waits or failed.
    pub(crate) message: Option<String>,
    took_ms: u64,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FollowOutcome {
    Unchanged,
    Live,
    AwaitingApproval,
    Failed,
}

impl FollowOutcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Live => "live",
            Self::AwaitingApproval => "awaiting-approval",
            Self::Failed => "failed",
        }
    }
}

/// All plugins of the manifest, in its order.
pub(crate) async fn list(registry: &Arc<Registry>) -> Result<PluginList, Refusal> {
    let mut plugins = Vec::new();
    for entry in &registry.manifest().entries {
        plugins.push(plugin(registry, entry).await?);
    }
    Ok(PluginList { plugins })
}

/// One plugin with its revisions.
pub(crate) async fn show(registry: &Arc<Registry>, name: &str) -> Result<PluginView, Refusal> {
    let life = registry.life(name).await?;
    let manifest = registry.manifest();
    Ok(PluginView {
        revisions: Some(revisions(life.as_ref())),
        ..plugin(registry, entry(&manifest, name)?).await?
    })
}

/// The manifest's entry of a plugin.
pub(crate) fn entry<'m>(manifest: &'m Manifest, name: &str) -> Result<&'m ManifestEntry, Refusal> {
    let entry = manifest.entries.iter().find(|entry| entry.name == name);
    let name = || name.to_owned();
    Ok(entry.ok_or_else(|| RegistryError::NoPlugin { name: name() })?)
}

/// A plugin's revisions, newest first.
pub(crate) async fn list_revisions(
    registry: &Arc<Registry>,
    name: &str,
) -> Result<RevisionList, Refusal> {
    let life = registry.life(name).await?;
    let revisions = revisions(life.as_ref());
    Ok(RevisionList { revisions })
}

pub(crate) async fn show_revision(
    registry: &Arc<Registry>,
    name: &str,
    number: u64,
) -> Result<RevisionView, Refusal> {
    let life = registry.life(name).await?;
    let life = life.unwrap_or_else(|| PluginRecord::new(name));
    let record = life.revision(number).map_err(RegistryError::from)?;
    Ok(revision(&life, record))
}

pub(crate) async fn compare(
    registry: &Arc<Registry>,
    at: &RevisionPath,
    against: Option<u64>,
) -> Result<ComparisonView, Refusal> {
    let comparison = registry.compare(&at.plugin, at.revision, against).await?;
    let text = comparison.to_string();
    Ok(ComparisonView { comparison, text })
}

/// Stages a component, and prepares it behind the answer.
pub(crate) async fn stage(
    registry: &Arc<Registry>,
    name: &str,
    query: StageQuery,
    body: StagedComponent,
) -> Result<RevisionView, Refusal> {
    let (asked, upload) = body.ordered(query);
    let mark = asked.mark()?;
    let from = match (upload, asked.order.path) {
        (Some(bytes), _) => ComponentSource::Upload(bytes),
        (None, Some(path)) if path.is_absolute() => ComponentSource::File(path),
        (None, Some(_)) => {
            let rule = "must be absolute: the server has its own working directory";
            return Err(Refusal::invalid(Some("path"), rule));
        }
        (None, None) => ComponentSource::Manifest,
    };
    let order = StageOrder {
        from,
        digest: asked.order.digest,
        goes_live: asked.order.activate,
        mark,
    };
    let number = registry.stage(name, order).await?;
    registry.prepare_behind(name, number);
    show_revision(registry, name, number).await
}

/// Does something to a revision, and shows it.
pub(crate) async fn change_revision<T>(
    registry: &Arc<Registry>,
    at: &RevisionPath,
    asked: &ActRequest<T>,
    action: PluginAction,
) -> Result<RevisionView, Refusal> {
    let life = registry.act(&at.plugin, action, asked.mark()?).await?;
    let record = life.revision(at.revision).map_err(RegistryError::from)?;
    Ok(revision(&life, record))
}

/// Does something to a plugin, and shows it.
pub(crate) async fn change_plugin<T>(
    registry: &Arc<Registry>,
    at: &PluginPath,
    asked: &ActRequest<T>,
    action: PluginAction,
) -> Result<PluginView, Refusal> {
    registry.act(&at.plugin, action, asked.mark()?).await?;
    show(registry, &at.plugin).await
}

/// Reads the manifest again.
pub(crate) async fn follow(registry: &Arc<Registry>) -> Result<FollowReport, Refusal> {
    let followed = registry.follow_to_end("manifest").await?;
    let told = followed.into_iter().map(|followed| {
        let FollowedEntry {
            plugin,
            outcome,
            took,
        } = followed;
        let (outcome, message) = match outcome {
            Ok(BroughtIn::Nothing) => (FollowOutcome::Unchanged, None),
            Ok(BroughtIn::Live) => (FollowOutcome::Live, None),
            Ok(BroughtIn::Waits(why)) => (FollowOutcome::AwaitingApproval, Some(why.to_string())),
            Err(error) => (FollowOutcome::Failed, Some(error.to_string())),
        };
        FollowedPlugin {
            plugin,
            outcome,
            message,
            took_ms: milliseconds(took),
        }
    });
    let plugins = told.collect();
    Ok(FollowReport { plugins })
}

/// What an operator is told of a change that was not made.
impl From<RegistryError> for Refusal {
    fn from(error: RegistryError) -> Self {
        let code = match error {
            RegistryError::NoPlugin { .. } | RegistryError::Life(LifeError::Unknown { .. }) => {
                Code::NotFound
            }
            RegistryError::Manifest(_) | RegistryError::Load { .. } => Code::ValidationError,
            RegistryError::Life(_)
            | RegistryError::Collision(_)
            | RegistryError::Rejected { .. }
            | RegistryError::Pool { .. } => Code::Conflict,
            RegistryError::Store(_) | RegistryError::NoDescription { .. } => {
                Code::ServiceUnavailable
            }
        };
        let refusal = Refusal::new(code, error.to_string());
        match error {
            RegistryError::Life(
                LifeError::NotGranted { missing, .. } | LifeError::Changed { missing, .. },
            ) => refusal.with("missing", json!(missing)),
            _ if code == Code::ServiceUnavailable => refusal.retry_after(1),
            _ => refusal,
        }
    }
}
