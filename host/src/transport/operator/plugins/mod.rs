//! Plugins as the operator handles them: listed, staged, compared, approved, activated, rolled back, switched off and on.
//!
//! Reads what is asked, asks the registry, and has `told` print what came of it. Decides nothing.

mod told;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::told::{plugin, revision, revisions};
use super::routes::BodyForm;
use crate::base::clock::milliseconds;
use crate::contract::error::{Code, Refusal};
use crate::contract::grants::{Atom, AtomError, Grants};
use crate::contract::manifest::{Manifest, ManifestEntry};
use crate::registry::lifecycle::{LifeError, OperatorNote, PluginRecord};
use crate::registry::{
    BroughtIn, ComponentSource, FollowedEntry, PluginAction, Registry, RegistryError, StageOrder,
    mark,
};

/// Characters of a reason, and of a name.
const WHY_CHARACTERS_MAX: usize = 500;
const BY_CHARACTERS_MAX: usize = 100;
/// The actor where a request names nobody.
const OPERATOR: &str = "operator";

/// What the body of every act may say.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ActRequest {
    by: Option<String>,
    why: Option<String>,
    /// Of `stage`: a file that the server can read; the source of the manifest's entry where it is absent.
    path: Option<PathBuf>,
    /// Of `stage`: the component's SHA-256, in hexadecimal.
    digest: Option<String>,
    /// Of `stage` and `approve`: serve it as soon as everything that it wants is granted.
    activate: bool,
    /// Of `approve`: the atoms that the operator was shown. Nothing else is granted.
    grants: Option<Vec<String>>,
    /// Of `rollback`: the revision.
    pub(crate) to: Option<u64>,
    /// Of `revoke`.
    atom: Option<String>,
    /// Of `proxy`: for how long.
    pub(crate) seconds: Option<u64>,
}

impl ActRequest {
    /// From a body of the route's form. None at all asks for nothing in particular.
    pub(crate) fn read(body: &[u8], form: BodyForm) -> Result<Self, Refusal> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        let unread = |error: serde_json::Error| {
            let message = format!("The body is not valid for this route: {error}");
            Refusal::new(Code::ValidationError, message)
        };
        let asked = serde_json::from_slice(body).map_err(unread)?;
        let members: Map<String, Value> = serde_json::from_slice(body).map_err(unread)?;
        let is_foreign = |name: &&String| !form.members().any(|(known, _)| known == name);
        match members.keys().find(is_foreign) {
            Some(foreign) => Err(invalid(foreign, "is not a member of this route's body")),
            None => Ok(asked),
        }
    }

    /// From the query, where the body is a component.
    pub(crate) fn read_query(query: &str) -> Result<Self, Refusal> {
        let mut asked = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "by" => asked.by = Some(value.into_owned()),
                "why" => asked.why = Some(value.into_owned()),
                "digest" => asked.digest = Some(value.into_owned()),
                "activate" if value == "true" => asked.activate = true,
                "activate" if value == "false" => asked.activate = false,
                _ => {
                    let rule = "is not a parameter of this route, or has an invalid value";
                    return Err(invalid(&name, rule));
                }
            }
        }
        Ok(asked)
    }

    /// The approval of a revision.
    pub(crate) fn approval(&self, number: u64) -> Result<PluginAction, Refusal> {
        let looked_at = self.grants.as_ref().map(Grants::parse).transpose();
        Ok(PluginAction::Approve {
            number,
            looked_at: looked_at.map_err(|error| no_atom("grants", &error))?,
            goes_live: self.activate,
        })
    }

    /// That an approval is taken back.
    pub(crate) fn revocation(&self) -> Result<PluginAction, Refusal> {
        let text = self.atom.as_deref();
        let text = text.ok_or_else(|| invalid("atom", "is missing"))?;
        let atom = Atom::parse(text).map_err(|error| no_atom("atom", &error))?;
        Ok(PluginAction::Revoke { atom })
    }

    pub(crate) fn mark(&self) -> Result<OperatorNote, Refusal> {
        let words = |name, value: Option<&String>, most, default: &str| {
            let text = value.map_or(default, String::as_str);
            if text.chars().count() <= most && !text.chars().any(char::is_control) {
                Ok(text.to_owned())
            } else {
                let rule = format!("must have at most {most} printable characters");
                Err(invalid(name, &rule))
            }
        };
        let by = words("by", self.by.as_ref(), BY_CHARACTERS_MAX, OPERATOR)?;
        Ok(mark(
            if by.is_empty() { OPERATOR } else { &by },
            &words("why", self.why.as_ref(), WHY_CHARACTERS_MAX, "")?,
        ))
    }
}

pub(crate) fn invalid(field: &str, rule: &str) -> Refusal {
    Refusal::new(Code::ValidationError, format!("`{field}` {rule}")).with("field", field)
}

fn no_atom(field: &str, error: &AtomError) -> Refusal {
    Refusal::new(Code::ValidationError, error.to_string()).with("field", field)
}

/// All plugins of the manifest, in its order.
pub(crate) async fn list(registry: &Arc<Registry>) -> Result<Value, Refusal> {
    let mut plugins = Vec::new();
    for entry in &registry.manifest().entries {
        plugins.push(plugin(registry, entry).await?);
    }
    Ok(json!({ "plugins": plugins }))
}

/// One plugin with its revisions.
pub(crate) async fn show(registry: &Arc<Registry>, name: &str) -> Result<Value, Refusal> {
    let life = registry.life(name).await?;
    let manifest = registry.manifest();
    let mut told = plugin(registry, entry(&manifest, name)?).await?;
    told["revisions"] = json!(revisions(life.as_ref()));
    Ok(told)
}

/// The manifest's entry of a plugin.
pub(crate) fn entry<'m>(manifest: &'m Manifest, name: &str) -> Result<&'m ManifestEntry, Refusal> {
    let entry = manifest.entries.iter().find(|entry| entry.name == name);
    let name = || name.to_owned();
    Ok(entry.ok_or_else(|| RegistryError::NoPlugin { name: name() })?)
}

/// A plugin's revisions, newest first.
pub(crate) async fn list_revisions(registry: &Arc<Registry>, name: &str) -> Result<Value, Refusal> {
    let life = registry.life(name).await?;
    Ok(json!({ "revisions": revisions(life.as_ref()) }))
}

pub(crate) async fn show_revision(
    registry: &Arc<Registry>,
    name: &str,
    number: u64,
) -> Result<Value, Refusal> {
    let life = registry.life(name).await?;
    let life = life.unwrap_or_else(|| PluginRecord::new(name));
    let record = life.revision(number).map_err(RegistryError::from)?;
    Ok(revision(&life, record))
}

pub(crate) async fn compare(
    registry: &Arc<Registry>,
    name: &str,
    number: u64,
    query: Option<&str>,
) -> Result<Value, Refusal> {
    let mut against = None;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let ("against", Ok(number)) = (&*name, value.parse()) else {
            let rule = "must be `against` with the number of a revision";
            return Err(invalid(&name, rule));
        };
        against = Some(number);
    }
    let compared = registry.compare(name, number, against).await?;
    let mut told =
        serde_json::to_value(&compared).map_err(|error| Refusal::internal(error.to_string()))?;
    told["text"] = json!(compared.to_string());
    Ok(told)
}

/// Stages a component, and prepares it behind the answer.
pub(crate) async fn stage(
    registry: &Arc<Registry>,
    name: &str,
    asked: ActRequest,
    upload: Option<Bytes>,
) -> Result<Value, Refusal> {
    let mark = asked.mark()?;
    let from = match (upload, asked.path) {
        (Some(bytes), _) => ComponentSource::Upload(bytes),
        (None, Some(path)) if path.is_absolute() => ComponentSource::File(path),
        (None, Some(_)) => {
            let rule = "must be absolute: the server has its own working directory";
            return Err(invalid("path", rule));
        }
        (None, None) => ComponentSource::Manifest,
    };
    let order = StageOrder {
        from,
        digest: asked.digest,
        goes_live: asked.activate,
        mark,
    };
    let number = registry.stage(name, order).await?;
    registry.prepare_behind(name, number);
    show_revision(registry, name, number).await
}

/// Does something to a plugin, and shows the revision that it is about, or else the plugin.
pub(crate) async fn act(
    registry: &Arc<Registry>,
    name: &str,
    action: PluginAction,
    asked: &ActRequest,
) -> Result<Value, Refusal> {
    let number = match action {
        PluginAction::Approve { number, .. }
        | PluginAction::Reject { number }
        | PluginAction::Activate { number } => Some(number),
        PluginAction::Rollback { .. }
        | PluginAction::Disable
        | PluginAction::Enable
        | PluginAction::Revoke { .. } => None,
    };
    let life = registry.act(name, action, asked.mark()?).await?;
    let Some(number) = number else {
        return show(registry, name).await;
    };
    let record = life.revision(number).map_err(RegistryError::from)?;
    Ok(revision(&life, record))
}

/// Reads the manifest again.
pub(crate) async fn follow(registry: &Arc<Registry>) -> Result<Value, Refusal> {
    let followed = registry.follow_to_end("manifest").await?;
    let told = followed.into_iter().map(|FollowedEntry { plugin, outcome, took }| {
        let (outcome, message) = match outcome {
            Ok(BroughtIn::Nothing) => ("unchanged", None),
            Ok(BroughtIn::Live) => ("live", None),
            Ok(BroughtIn::Waits(why)) => ("awaiting-approval", Some(why.to_string())),
            Err(error) => ("failed", Some(error.to_string())),
        };
        json!({ "plugin": plugin, "outcome": outcome, "message": message, "tookMs": milliseconds(took) })
    });
    Ok(json!({ "plugins": told.collect::<Vec<Value>>() }))
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
