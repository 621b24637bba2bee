//! Plugins as the operator handles them: listed, staged, compared, approved, activated, rolled back, switched off and on.
//!
//! Reads what is asked, asks the registry, and has `told` print what came of it. Decides nothing.

mod told;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use self::told::{plugin, revision, revisions};
use super::routes::BodyForm;
use crate::base::clock::milliseconds;
use crate::contract::error::{Code, Refusal};
use crate::contract::grants::{Atom, AtomError, Grants};
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
    to: Option<u64>,
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
            Refusal::new(
                Code::ValidationError,
                format!("The body is not valid for this route: {error}"),
            )
        };
        let asked = serde_json::from_slice(body).map_err(unread)?;
        let members: serde_json::Map<String, Value> =
            serde_json::from_slice(body).map_err(unread)?;
        match members
            .keys()
            .find(|name| !form.members().any(|(known, _)| known == name))
        {
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
                    return Err(invalid(
                        &name,
                        "is not a parameter of this route, or has an invalid value",
                    ));
                }
            }
        }
        Ok(asked)
    }

    pub(crate) fn mark(&self) -> Result<OperatorNote, Refusal> {
        let words = |name, value: Option<&String>, most, default: &str| {
            let text = value.map_or(default, String::as_str);
            if text.chars().count() <= most && !text.chars().any(char::is_control) {
                Ok(text.to_owned())
            } else {
                Err(invalid(
                    name,
                    &format!("must have at most {most} printable characters"),
                ))
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
    let life = registry.life(name).await.map_err(|error| refusal(&error))?;
    let manifest = registry.manifest();
    let entry = manifest.entries.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| {
        refusal(&RegistryError::NoPlugin {
            name: name.to_owned(),
        })
    })?;
    let mut told = plugin(registry, entry).await?;
    told["revisions"] = json!(revisions(life.as_ref()));
    Ok(told)
}

/// A plugin's revisions, newest first.
pub(crate) async fn list_revisions(registry: &Arc<Registry>, name: &str) -> Result<Value, Refusal> {
    let life = registry.life(name).await.map_err(|error| refusal(&error))?;
    Ok(json!({ "revisions": revisions(life.as_ref()) }))
}

pub(crate) async fn show_revision(
    registry: &Arc<Registry>,
    name: &str,
    number: u64,
) -> Result<Value, Refusal> {
    let life = registry.life(name).await.map_err(|error| refusal(&error))?;
    let life = life.unwrap_or_else(|| PluginRecord::new(name));
    let record = life
        .revision(number)
        .map_err(|error| refusal(&error.into()))?;
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
        against = match (&*name, value.parse()) {
            ("against", Ok(number)) => Some(number),
            _ => {
                return Err(invalid(
                    &name,
                    "must be `against` with the number of a revision",
                ));
            }
        };
    }
    let compared = registry
        .compare(name, number, against)
        .await
        .map_err(|error| refusal(&error))?;
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
            return Err(invalid(
                "path",
                "must be absolute: the server has its own working directory",
            ));
        }
        (None, None) => ComponentSource::Manifest,
    };
    let order = StageOrder {
        from,
        digest: asked.digest,
        goes_live: asked.activate,
        mark,
    };
    let number = registry
        .stage(name, order)
        .await
        .map_err(|error| refusal(&error))?;
    registry.prepare_behind(name, number);
    show_revision(registry, name, number).await
}

pub(crate) async fn approve(
    registry: &Arc<Registry>,
    name: &str,
    number: u64,
    asked: ActRequest,
) -> Result<Value, Refusal> {
    let looked_at = asked
        .grants
        .as_ref()
        .map(Grants::parse)
        .transpose()
        .map_err(|error| no_atom("grants", &error))?;
    let act = PluginAction::Approve {
        number,
        looked_at,
        goes_live: asked.activate,
    };
    done(registry, name, act, &asked, number).await
}

pub(crate) async fn reject(
    registry: &Arc<Registry>,
    name: &str,
    number: u64,
    asked: ActRequest,
) -> Result<Value, Refusal> {
    done(
        registry,
        name,
        PluginAction::Reject { number },
        &asked,
        number,
    )
    .await
}

pub(crate) async fn activate(
    registry: &Arc<Registry>,
    name: &str,
    number: u64,
    asked: ActRequest,
) -> Result<Value, Refusal> {
    done(
        registry,
        name,
        PluginAction::Activate { number },
        &asked,
        number,
    )
    .await
}

pub(crate) async fn rollback(
    registry: &Arc<Registry>,
    name: &str,
    asked: ActRequest,
) -> Result<Value, Refusal> {
    act(
        registry,
        name,
        PluginAction::Rollback { to: asked.to },
        &asked,
    )
    .await
}

pub(crate) async fn disable(
    registry: &Arc<Registry>,
    name: &str,
    asked: ActRequest,
) -> Result<Value, Refusal> {
    act(registry, name, PluginAction::Disable, &asked).await
}

pub(crate) async fn enable(
    registry: &Arc<Registry>,
    name: &str,
    asked: ActRequest,
) -> Result<Value, Refusal> {
    act(registry, name, PluginAction::Enable, &asked).await
}

pub(crate) async fn revoke(
    registry: &Arc<Registry>,
    name: &str,
    asked: ActRequest,
) -> Result<Value, Refusal> {
    let text = asked
        .atom
        .as_deref()
        .ok_or_else(|| invalid("atom", "is missing"))?;
    let atom = Atom::parse(text).map_err(|error| no_atom("atom", &error))?;
    act(registry, name, PluginAction::Revoke { atom }, &asked).await
}

/// Reads the manifest again.
pub(crate) async fn follow(registry: &Arc<Registry>) -> Result<Value, Refusal> {
    let followed = registry.follow_to_end("manifest").await;
    let followed = followed.map_err(|error| refusal(&error))?;
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

async fn done(
    registry: &Arc<Registry>,
    name: &str,
    done: PluginAction,
    asked: &ActRequest,
    number: u64,
) -> Result<Value, Refusal> {
    let life = registry
        .act(name, done, asked.mark()?)
        .await
        .map_err(|error| refusal(&error))?;
    let record = life
        .revision(number)
        .map_err(|error| refusal(&error.into()))?;
    Ok(revision(&life, record))
}

async fn act(
    registry: &Arc<Registry>,
    name: &str,
    act: PluginAction,
    asked: &ActRequest,
) -> Result<Value, Refusal> {
    registry
        .act(name, act, asked.mark()?)
        .await
        .map_err(|error| refusal(&error))?;
    show(registry, name).await
}

/// What an operator is told of a change that was not made.
pub(crate) fn refusal(error: &RegistryError) -> Refusal {
    let code = match error {
        RegistryError::NoPlugin { .. } | RegistryError::Life(LifeError::Unknown { .. }) => {
            Code::NotFound
        }
        RegistryError::Manifest(_) | RegistryError::Load { .. } => Code::ValidationError,
        RegistryError::Life(_)
        | RegistryError::Collision(_)
        | RegistryError::Rejected { .. }
        | RegistryError::Pool { .. } => Code::Conflict,
        RegistryError::Store(_) | RegistryError::NoDescription { .. } => Code::ServiceUnavailable,
    };
    let refusal = Refusal::new(code, error.to_string());
    match error {
        RegistryError::Life(
            LifeError::NotGranted { missing, .. } | LifeError::Changed { missing, .. },
        ) => refusal.with("missing", json!(missing)),
        RegistryError::Store(_) | RegistryError::NoDescription { .. } => refusal.retry_after(1),
        RegistryError::NoPlugin { .. }
        | RegistryError::Life(_)
        | RegistryError::Manifest(_)
        | RegistryError::Load { .. }
        | RegistryError::Collision(_)
        | RegistryError::Rejected { .. }
        | RegistryError::Pool { .. } => refusal,
    }
}
