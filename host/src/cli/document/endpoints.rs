//! docs/endpoints.md: the operator's API, read from its table of endpoints.

use super::{columns, heading, row};
use crate::transport::operator::endpoint::EndpointSchemas;
use crate::transport::operator::routes::ENDPOINTS;

const ABOUT: &str = "\
The operator's API has a listener of its own (`--operator-listen`) and wants the token in the file `operator-token` of the data
folder, as `Authorization: Bearer`. `GET /admin/v1/openapi.json` describes bodies and answers.";

pub(super) fn page() -> String {
    let mut page = heading("Operator endpoints", "endpoints", ABOUT);
    page.push_str(&columns(&["method", "path", "does", "query"]));
    let mut schemas = EndpointSchemas::default();
    for endpoint in ENDPOINTS {
        let query = (endpoint.describe)(&mut schemas).query;
        let query = query.iter().map(|(name, schema)| {
            let meaning = schema["description"].as_str().unwrap_or_default();
            format!("`{name}`: {meaning}")
        });
        let query: Vec<String> = query.collect();
        let path = format!("`{}`", endpoint.path);
        page.push_str(&row(&[
            endpoint.method,
            &path,
            endpoint.summary,
            &query.join(" "),
        ]));
    }
    page
}
