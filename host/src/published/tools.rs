//! The result of `tools/list`.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::catalogue::Bound;
use crate::contract::profile;

/// Where a tool's scopes stand in its `_meta`: the protocol has no field for them.
const SCOPES_META: &str = "dev.switchbay/requiredScopes";

/// The result of `tools/list`, as JSON text; the tools by name.
pub(crate) fn list(bound: &[Bound]) -> Bytes {
    let mut tools: Vec<(&str, Value)> = bound
        .iter()
        .filter_map(|one| {
            let tool = one.tool()?;
            let published = json!({
                "name": tool.name,
                "title": one.operation.title,
                "description": one.operation.description,
                "inputSchema": tool.input.document(),
                "outputSchema": profile::tool_output(one.operation.output.document()),
                "annotations": tool.annotations,
                "_meta": { SCOPES_META: [tool.scope.as_str()] },
            });
            Some((tool.name.as_str(), published))
        })
        .collect();
    tools.sort_by(|a, b| a.0.cmp(b.0));
    let tools: Vec<Value> = tools.into_iter().map(|(_, tool)| tool).collect();
    Bytes::from(json!({ "tools": tools }).to_string())
}
