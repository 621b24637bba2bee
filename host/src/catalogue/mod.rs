//! What is served at one moment: all revisions, with their routes and tools.
//!
//! Built once a change and swapped as a whole, so that a route and its schema always come from the same set of revisions. No
//! work that could be done here is left to a request. Knows no document and no transport.

mod feature_circle;
pub(crate) mod operation_state;
pub(crate) mod revision;
pub(crate) mod route_table;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use http::Method;

use self::operation_state::OperationState;
use self::revision::Revision;
use self::route_table::{RouteTable, RouteTableError};
use crate::contract::feature_call::feature_name;
use crate::contract::operation::{Operation, OperatorFace, RestFace, ToolFace};

/// What cannot be served together: two operations, of two plugins or of one, or plugins that call each other.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CollisionError {
    #[error("{pair} both serve {method} {path}")]
    Route {
        pair: Pair,
        method: Method,
        path: String,
    },
    #[error("{pair} serve conflicting paths: {path} {source}")]
    Path {
        pair: Pair,
        path: String,
        source: RouteTableError,
    },
    #[error("{pair} both define the tool `{tool}`")]
    Tool { pair: Pair, tool: String },
    /// The plugins in the order of their calls, the first again at the end.
    #[error("plugins are granted each other's operations in a circle: {}", .0.join(" → "))]
    Circle(Vec<String>),
}

/// The two, as a message begins with them.
#[derive(Debug)]
pub(crate) enum Pair {
    Plugins(String, String),
    Operations {
        plugin: String,
        first: String,
        second: String,
    },
}

impl Pair {
    fn new(first: &Bound, second: &Bound) -> Self {
        if first.revision.plugin == second.revision.plugin {
            Self::Operations {
                plugin: first.revision.plugin.to_string(),
                first: first.operation.id.clone(),
                second: second.operation.id.clone(),
            }
        } else {
            Self::Plugins(
                first.revision.plugin.to_string(),
                second.revision.plugin.to_string(),
            )
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugins(first, second) => write!(f, "plugins `{first}` and `{second}`"),
            Self::Operations {
                plugin,
                first,
                second,
            } => {
                write!(
                    f,
                    "plugin `{plugin}`: its operations `{first}` and `{second}`"
                )
            }
        }
    }
}

/// An operation together with the revision that runs it.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) revision: Arc<Revision>,
    pub(crate) operation: Arc<Operation>,
    /// What stands beside its row.
    pub(crate) state: Arc<OperationState>,
}

impl Bound {
    pub(crate) fn rest(&self) -> Option<&RestFace> {
        self.operation.rest.as_ref()
    }

    pub(crate) fn tool(&self) -> Option<&ToolFace> {
        self.operation.tool.as_ref()
    }
}

/// The immutable table of what is served.
pub(crate) struct Catalogue {
    revisions: Vec<Arc<Revision>>,
    routes: RouteTable,
    tools: HashMap<String, Bound>,
    bound: Vec<Bound>,
    /// The place in `bound` of each operation, by its name in grants.
    features: HashMap<String, usize>,
    /// Operations that a plugin may call, by the same name.
    granted: HashSet<String>,
}

impl Catalogue {
    /// Puts revisions together, or says which of them cannot stand side by side.
    pub(crate) fn new(revisions: Vec<Arc<Revision>>) -> Result<Self, CollisionError> {
        if let Some(plugins) = feature_circle::find(&revisions) {
            return Err(CollisionError::Circle(plugins));
        }
        let bound: Vec<Bound> = revisions
            .iter()
            .flat_map(|revision| {
                revision.operations().map(|(operation, state)| Bound {
                    revision: Arc::clone(revision),
                    operation: Arc::clone(operation),
                    state: Arc::clone(state),
                })
            })
            .collect();
        Ok(Self {
            routes: routes(&bound)?,
            tools: tools(&bound)?,
            features: features(&bound),
            granted: granted(&revisions),
            revisions,
            bound,
        })
    }

    /// The operations that the published documents name.
    pub(crate) fn published(&self) -> Vec<Bound> {
        let is_served = |one: &&Bound| one.rest().is_some() || one.tool().is_some();
        let published = self.bound.iter().filter(is_served);
        let published = published.filter(|one| one.revision.is_published());
        published.cloned().collect()
    }

    /// The operations that only the operator calls.
    pub(crate) fn of_the_operator(&self) -> impl Iterator<Item = (&Bound, &OperatorFace)> {
        self.bound
            .iter()
            .filter_map(|one| Some((one, one.operation.operator.as_ref()?)))
    }

    pub(crate) fn revisions(&self) -> &[Arc<Revision>] {
        &self.revisions
    }

    /// The revision that serves a plugin.
    pub(crate) fn revision_of(&self, plugin: &str) -> Option<&Revision> {
        let mut revisions = self.revisions.iter().map(Arc::as_ref);
        revisions.find(|revision| *revision.plugin == *plugin)
    }

    pub(crate) fn routes(&self) -> &RouteTable {
        &self.routes
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Bound> {
        self.tools.get(name)
    }

    /// The operation that another plugin calls.
    pub(crate) fn feature(&self, plugin: &str, operation: &str) -> Option<&Bound> {
        let at = self.features.get(&feature_name(plugin, operation))?;
        self.bound.get(*at)
    }

    /// Whether a plugin may call the operation.
    pub(crate) fn is_granted(&self, plugin: &str, operation: &str) -> bool {
        self.granted.contains(&feature_name(plugin, operation))
    }
}

fn features(bound: &[Bound]) -> HashMap<String, usize> {
    let named = |(at, one): (usize, &Bound)| {
        let name = feature_name(&one.revision.plugin, &one.operation.id);
        (name, at)
    };
    bound.iter().enumerate().map(named).collect()
}

fn granted(revisions: &[Arc<Revision>]) -> HashSet<String> {
    let names = revisions
        .iter()
        .flat_map(|revision| revision.rights.called_operations());
    names.map(str::to_owned).collect()
}

fn routes(bound: &[Bound]) -> Result<RouteTable, CollisionError> {
    let mut paths: BTreeMap<&str, Vec<(Method, Bound)>> = BTreeMap::new();
    for one in bound {
        let Some(rest) = one.rest() else { continue };
        let methods = paths.entry(rest.path.as_str()).or_default();
        if let Some((_, other)) = methods.iter().find(|(method, _)| *method == rest.method) {
            return Err(CollisionError::Route {
                pair: Pair::new(other, one),
                method: rest.method.clone(),
                path: rest.path.clone(),
            });
        }
        methods.push((rest.method.clone(), one.clone()));
    }
    let mut table = RouteTable::default();
    for (path, methods) in paths {
        let one = methods[0].1.clone();
        table.insert(path, methods).map_err(|source| {
            let at = |other: &&Bound| match (&source, other.rest()) {
                (RouteTableError::Parameters { with }, Some(rest)) => rest.path == *with,
                (RouteTableError::Parameters { .. } | RouteTableError::Form, _) => false,
            };
            let other = bound.iter().find(at).unwrap_or(&one);
            CollisionError::Path {
                pair: Pair::new(other, &one),
                path: path.to_owned(),
                source,
            }
        })?;
    }
    Ok(table)
}

fn tools(bound: &[Bound]) -> Result<HashMap<String, Bound>, CollisionError> {
    let mut tools: HashMap<String, Bound> = HashMap::new();
    for one in bound {
        let Some(tool) = one.tool() else { continue };
        if let Some(other) = tools.insert(tool.name.clone(), one.clone()) {
            return Err(CollisionError::Tool {
                pair: Pair::new(&other, one),
                tool: tool.name.clone(),
            });
        }
    }
    Ok(tools)
}
