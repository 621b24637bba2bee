//! From a method and a path to an operation. Routes are data: the table is rebuilt with each catalogue.

use http::Method;

use super::Bound;

/// A path that cannot stand beside another.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RouteTableError {
    #[error("differs from {with} only in its parameter names")]
    Parameters { with: String },
    #[error("cannot be routed")]
    Form,
}

/// The REST routes of one catalogue.
#[derive(Default)]
pub(crate) struct RouteTable {
    paths: matchit::Router<Vec<(Method, Bound)>>,
}

/// What a request's method and path lead to.
pub(crate) enum RouteMatch<'t> {
    /// An operation, with the raw values of its path parameters.
    Operation(&'t Bound, Vec<(String, String)>),
    /// The path is served, with other methods; the value of `Allow`.
    OtherMethods(String),
    Nothing,
}

impl RouteTable {
    /// Adds a path with all its methods.
    pub(crate) fn insert(
        &mut self,
        path: &str,
        methods: Vec<(Method, Bound)>,
    ) -> Result<(), RouteTableError> {
        self.paths
            .insert(path, methods)
            .map_err(|error| match error {
                matchit::InsertError::Conflict { with } => RouteTableError::Parameters { with },
                _ => RouteTableError::Form,
            })
    }

    /// Finds what serves a request. HEAD is served wherever GET is.
    pub(crate) fn find(&self, method: &Method, path: &str) -> RouteMatch<'_> {
        let Ok(matched) = self.paths.at(path) else {
            return RouteMatch::Nothing;
        };
        let wanted = if *method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        match matched.value.iter().find(|(served, _)| served == wanted) {
            Some((_, bound)) => {
                let params = matched
                    .params
                    .iter()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect();
                RouteMatch::Operation(bound, params)
            }
            None => RouteMatch::OtherMethods(allow(matched.value.iter().map(|(served, _)| served))),
        }
    }
}

/// The value of `Allow` for the methods that a path serves.
pub(crate) fn allow<'m>(methods: impl Iterator<Item = &'m Method>) -> String {
    let mut names: Vec<&str> = methods.map(Method::as_str).collect();
    if names.contains(&"GET") {
        names.push("HEAD");
    }
    names.sort_unstable();
    names.join(", ")
}
