//! The developer guide: Markdown for people and agents, generated from the operations, with a request to copy for each.

use std::fmt::Write as _;

use http::Method;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::catalogue::Bound;
use crate::error::{COMMON, Code};
use crate::operation::{Example, Operation, RestFace};
use crate::registry::faces::path_parameters;

const IN_URL: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'\'').add(b'+').add(b'/').add(b'=').add(b'?');

/// The guide for these operations.
pub(crate) fn document(bound: &[Bound], base_url: &str) -> String {
    let mut text = String::with_capacity(16 * 1024);
    write_guide(&mut text, bound, base_url).expect("writing to a String does not fail");
    text
}

fn write_guide(text: &mut String, bound: &[Bound], base_url: &str) -> std::fmt::Result {
    writeln!(text, "# Switchbay developer guide\n")?;
    writeln!(text, "The REST API is described by [OpenAPI]({base_url}/openapi.json); agents use `{base_url}/mcp`.\n")?;
    write_conventions(text)?;
    writeln!(text, "## Operations\n")?;
    for one in bound {
        write_operation(text, &one.operation, base_url)?;
    }
    writeln!(text, "## Error codes\n")?;
    writeln!(text, "Every operation may answer these; its own are listed with it.\n")?;
    writeln!(text, "| status | code | when |\n| - | - | - |")?;
    let of_transport = [Code::NotFound, Code::MethodNotAllowed, Code::UnsupportedMediaType, Code::RequestTimeout];
    for code in COMMON.iter().chain(&of_transport) {
        writeln!(text, "| {} | {} | {} |", code.status().as_u16(), code.name(), code.when())?;
    }
    Ok(())
}

fn write_conventions(text: &mut String) -> std::fmt::Result {
    text.write_str(
        "## Authentication\n\n\
         Send an API key as `Authorization: Bearer KEY` or in the header `x-service-api-key`. A key carries scopes; each \
         operation names the one that it needs. Never put a key into a URL. The examples read it from `SWITCHBAY_KEY`.\n\n\
         Where `/.well-known/oauth-protected-resource` names an authorization server, an access token of its (RFC 9068) is \
         sent as `Authorization: Bearer TOKEN`; its limits are those of its client and subject together.\n\n\
         ## Answers\n\n\
         A success is `{ \"success\": true, \"data\": … }`, a failure `{ \"success\": false, \"error\": { \"code\", \
         \"message\" }, \"data\": { \"requestId\", … } }`. Branch on `error.code`; the message is for people. `data.field` \
         names an offending field. Where `data.retryAfter` (also `Retry-After`) is present, wait that many seconds. \
         `X-Request-Id` is the same id as `data.requestId`.\n\n\
         ## Limits\n\n\
         A key may have a limit of calls a minute. `X-ApiKey-RateLimit-Limit`, `-Remaining`, `-Reset` (Unix seconds) and \
         `-Window` (seconds) show where it stands; a key without a limit gets none of them.\n\n",
    )
}

fn write_operation(text: &mut String, operation: &Operation, base_url: &str) -> std::fmt::Result {
    writeln!(text, "### {}\n", operation.title)?;
    if let Some(face) = &operation.rest {
        writeln!(text, "`{} {}`, scope `{}`", face.method, face.path, face.scope)?;
    }
    if let Some(tool) = &operation.tool {
        writeln!(text, "\nMCP tool `{}`, scope `{}`", tool.name, tool.scope)?;
    }
    writeln!(text, "\n{}\n", operation.description)?;
    let Some(face) = &operation.rest else { return Ok(()) };
    write_fields(text, face)?;
    for example in &operation.examples {
        writeln!(text, "{}:\n\n```sh", example.title)?;
        write_curl(text, face, example, base_url)?;
        writeln!(text, "```\n")?;
    }
    if !operation.errors.is_empty() {
        writeln!(text, "| status | code | when |\n| - | - | - |")?;
        for error in &operation.errors {
            writeln!(text, "| {} | {} | {} |", error.status.as_u16(), error.code, error.when)?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn write_fields(text: &mut String, face: &RestFace) -> std::fmt::Result {
    let required = face.input.document().get("required").and_then(Value::as_array);
    let mut rows = String::new();
    for (name, schema) in face.input.properties() {
        let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let need = if is_required { "yes" } else { "no" };
        writeln!(rows, "| {name} | {kind} | {need} | {} | {} |", bounds(schema), description.replace('\n', " "))?;
    }
    if rows.is_empty() {
        return writeln!(text, "It takes no fields.\n");
    }
    writeln!(text, "| field | type | required | bounds | meaning |\n| - | - | - | - | - |\n{rows}")
}

fn bounds(schema: &Value) -> String {
    let of = |name: &str| schema.get(name).map(ToString::to_string);
    let span = |min: Option<String>, max: Option<String>, unit: &str| match (min, max) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}{unit}")),
        (Some(min), None) => Some(format!("at least {min}{unit}")),
        (None, Some(max)) => Some(format!("at most {max}{unit}")),
        (None, None) => None,
    };
    let pattern =
        schema.get("pattern").and_then(Value::as_str).map(|pattern| format!("`{}`", pattern.replace('|', "\\|")));
    let allowed = schema.get("enum").and_then(Value::as_array).map(|values| {
        values.iter().filter_map(Value::as_str).map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
    });
    let all = [
        span(of("minimum"), of("maximum"), ""),
        span(of("minLength"), of("maxLength"), " characters"),
        span(of("minItems"), of("maxItems"), " items"),
        pattern,
        allowed,
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A request that runs as it stands in a POSIX shell.
fn write_curl(text: &mut String, face: &RestFace, example: &Example, base_url: &str) -> std::fmt::Result {
    let mut rest = example.input.clone();
    let mut path = face.path.clone();
    for name in path_parameters(&face.path) {
        if let Some(value) = rest.remove(name) {
            path = path.replace(&format!("{{{name}}}"), &plain(&value));
        }
    }
    let posts = face.method == Method::POST;
    if !posts {
        path.push_str(&query(&rest));
    }
    let method = match face.method {
        Method::GET => "",
        Method::DELETE => "-X DELETE ",
        _ => "-X POST ",
    };
    writeln!(text, "curl -sS {method}'{base_url}{path}' \\")?;
    write!(text, "  -H \"Authorization: Bearer $SWITCHBAY_KEY\"")?;
    if posts && !rest.is_empty() {
        let body = Value::Object(rest).to_string().replace('\'', "'\\''");
        write!(text, " \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'")?;
    }
    writeln!(text)
}

fn query(input: &Map<String, Value>) -> String {
    let pairs: Vec<String> = input.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

fn plain(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    utf8_percent_encode(&text, IN_URL).to_string()
}
