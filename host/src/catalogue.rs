//! What is served at one moment: all revisions, their routes and tools, and the documents that publish them.
//!
//! Built once a change and swapped as a whole, so that a route, its schema and its place in every document always come from
//! the same set of revisions. No work that could be done here is left to a request.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use http::Method;

use crate::http::router::{RouteTable, RouteTableError};
use crate::operation::{Operation, RestFace, ToolFace};
use crate::published::{PublishedDocuments, Site};
use crate::registry::revision::Revision;

/// Two operations that cannot be served together, of two plugins or of one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CollisionError {
    #[error("{pair} both serve {method} {path}")]
    Route { pair: Pair, method: Method, path: String },
    #[error("{pair} serve paths of which {path} {source}")]
    Path { pair: Pair, path: String, source: RouteTableError },
    #[error("{pair} both have the tool `{tool}`")]
    Tool { pair: Pair, tool: String },
}

/// The two, as a message begins with them.
#[derive(Debug)]
pub(crate) enum Pair {
    Plugins(String, String),
    Operations { plugin: String, first: String, second: String },
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
            Self::Plugins(first.revision.plugin.to_string(), second.revision.plugin.to_string())
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugins(first, second) => write!(f, "plugins `{first}` and `{second}`"),
            Self::Operations { plugin, first, second } => {
                write!(f, "plugin `{plugin}`: its operations `{first}` and `{second}`")
            }
        }
    }
}

/// An operation together with the revision that runs it.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) revision: Arc<Revision>,
    pub(crate) operation: Arc<Operation>,
}

impl Bound {
    pub(crate) fn rest(&self) -> Option<&RestFace> {
        self.operation.rest.as_ref()
    }

    pub(crate) fn tool(&self) -> Option<&ToolFace> {
        self.operation.tool.as_ref()
    }
}

/// The immutable snapshot.
pub(crate) struct Catalogue {
    site: Site,
    revisions: Vec<Arc<Revision>>,
    routes: RouteTable,
    tools: HashMap<String, Bound>,
    published: PublishedDocuments,
}

impl Catalogue {
    /// A catalogue without plugins.
    pub(crate) fn empty(site: &Site) -> Self {
        Self {
            site: site.clone(),
            revisions: Vec::new(),
            routes: RouteTable::default(),
            tools: HashMap::new(),
            published: PublishedDocuments::new(&[], site),
        }
    }

    /// Puts revisions together, or says which two collide.
    pub(crate) fn new(revisions: Vec<Arc<Revision>>, site: &Site) -> Result<Self, CollisionError> {
        let bound: Vec<Bound> = revisions
            .iter()
            .flat_map(|revision| {
                let bind = |operation: &Arc<Operation>| Bound {
                    revision: Arc::clone(revision),
                    operation: Arc::clone(operation),
                };
                revision.operations.iter().map(bind)
            })
            .collect();
        let routes = routes(&bound)?;
        let tools = tools(&bound)?;
        let published: Vec<Bound> = bound.into_iter().filter(|one| one.revision.is_published()).collect();
        let published = PublishedDocuments::new(&published, site);
        Ok(Self { site: site.clone(), revisions, routes, tools, published })
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    pub(crate) fn revisions(&self) -> &[Arc<Revision>] {
        &self.revisions
    }

    pub(crate) fn routes(&self) -> &RouteTable {
        &self.routes
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Bound> {
        self.tools.get(name)
    }

    pub(crate) fn published(&self) -> &PublishedDocuments {
        &self.published
    }
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
            CollisionError::Path { pair: Pair::new(other, &one), path: path.to_owned(), source }
        })?;
    }
    Ok(table)
}

fn tools(bound: &[Bound]) -> Result<HashMap<String, Bound>, CollisionError> {
    let mut tools: HashMap<String, Bound> = HashMap::new();
    for one in bound {
        let Some(tool) = one.tool() else { continue };
        if let Some(other) = tools.insert(tool.name.clone(), one.clone()) {
            return Err(CollisionError::Tool { pair: Pair::new(&other, one), tool: tool.name.clone() });
        }
    }
    Ok(tools)
}
