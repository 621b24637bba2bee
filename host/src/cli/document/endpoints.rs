//! docs/endpoints.md: the operator's API, read from its table of routes.

use super::{columns, heading, row};
use crate::transport::operator::routes::ROUTES;

const ABOUT: &str = "\
The operator's API has a listener of its own (`--operator-listen`) and wants the token in the file `operator-token` of the data
folder, as `Authorization: Bearer`. `GET /admin/v1/openapi.json` describes bodies and answers.";

pub(super) fn page() -> String {
    let mut page = heading("Operator endpoints", "endpoints", ABOUT);
    page.push_str(&columns(&["method", "path", "does", "query"]));
    for route in &ROUTES {
        let query: Vec<String> = route
            .query
            .iter()
            .map(|(name, meaning)| format!("`{name}`: {meaning}"))
            .collect();
        let path = format!("`{}`", route.path);
        page.push_str(&row(&[
            route.method,
            &path,
            route.summary,
            &query.join(" "),
        ]));
    }
    page
}
