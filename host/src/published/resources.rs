//! The two resources: the developer guide and the OpenAPI document, the same bytes as over HTTP.

use bytes::Bytes;
use serde_json::json;

use super::Document;

const GUIDE: &str = "service://developer-guide";
const OPENAPI: &str = "service://openapi";

/// What is answered of the resources: made with the documents, and shared by all answers.
pub(crate) struct McpResources {
    /// The result of `resources/list`.
    pub(crate) list: Bytes,
    guide: Bytes,
    openapi: Bytes,
}

impl McpResources {
    pub(crate) fn new(guide: &Document, openapi: &Document) -> Self {
        Self {
            list: list(guide, openapi),
            guide: contents(GUIDE, guide),
            openapi: contents(OPENAPI, openapi),
        }
    }

    /// The result of `resources/read` for one of them.
    pub(crate) fn read(&self, uri: &str) -> Option<&Bytes> {
        match uri {
            GUIDE => Some(&self.guide),
            OPENAPI => Some(&self.openapi),
            _ => None,
        }
    }
}

fn contents(uri: &str, document: &Document) -> Bytes {
    let contents =
        json!([{ "uri": uri, "mimeType": document.media_type, "text": document.text() }]);
    Bytes::from(json!({ "contents": contents }).to_string())
}

fn list(guide: &Document, openapi: &Document) -> Bytes {
    let row = |uri: &str, name: &str, title: &str, description: &str, document: &Document| {
        json!({
            "uri": uri,
            "name": name,
            "title": title,
            "description": description,
            "mimeType": document.media_type,
            "size": document.bytes.len(),
        })
    };
    let guide = row(
        GUIDE,
        "developer-guide",
        "Developer guide",
        "How to authenticate, the arguments and results of every operation, and the error codes, with examples.",
        guide,
    );
    let openapi = row(
        OPENAPI,
        "openapi",
        "OpenAPI",
        "The OpenAPI 3.1 description of the REST operations.",
        openapi,
    );
    Bytes::from(json!({ "resources": [guide, openapi] }).to_string())
}
