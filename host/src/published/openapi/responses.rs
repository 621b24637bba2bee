//! The responses of an operation, with every header and every code that can come; and the headers and schemas that they share.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::contract::error::Code;
use crate::contract::operation::{Operation, RestFace};
use crate::published::refusals;
use crate::published::refusals::DocumentedRefusal;

/// On every answer.
const ALWAYS: [&str; 3] = ["X-Request-Id", "Server-Timing", "Cache-Control"];
/// On the answers to calls that were admitted.
const METERS: [&str; 10] = [
    "X-ApiKey-RateLimit-Limit",
    "X-ApiKey-RateLimit-Remaining",
    "X-ApiKey-RateLimit-Reset",
    "X-ApiKey-RateLimit-Window",
    "X-ApiKey-Monthly-Limit",
    "X-ApiKey-Monthly-Remaining",
    "X-ApiKey-Monthly-Reset",
    "X-ApiKey-Credit-Cost",
    "X-ApiKey-Credit-Limit",
    "X-ApiKey-Credit-Reset",
];
/// On the same, where the caller is an address.
const FIRST_PARTY: [&str; 3] = [
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
];

/// What an operation answers, by status.
pub(crate) fn of(operation: &Operation, face: &RestFace) -> Value {
    let mut responses: BTreeMap<String, Value> = successes(operation, face);
    if face.etag {
        let response = json!({
            "description": "The data still has the tag given in `If-None-Match`. There is no body.",
            "headers": headers(is_first_party(operation), &[&ALWAYS[..], &METERS, &["ETag"]]),
        });
        responses.insert(StatusCode::NOT_MODIFIED.as_str().to_owned(), response);
    }
    let mut by_status: BTreeMap<String, Vec<DocumentedRefusal<'_>>> = BTreeMap::new();
    for refused in refusals::of(operation) {
        by_status
            .entry(refused.status.as_str().to_owned())
            .or_default()
            .push(refused);
    }
    for (status, refused) in by_status {
        let response = match shared_name(operation, &refused) {
            Some(name) => json!({ "$ref": format!("#/components/responses/{name}") }),
            None => refusal(is_first_party(operation), &refused),
        };
        responses.entry(status).or_insert(response);
    }
    json!(responses)
}

/// A response for each status of an outcome. Outcomes of one status share the wider schema.
fn successes(operation: &Operation, face: &RestFace) -> BTreeMap<String, Value> {
    let mut by_status: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (outcome, status) in &face.outcomes {
        by_status
            .entry(status.as_str().to_owned())
            .or_default()
            .push(outcome);
    }
    let mut responses = BTreeMap::new();
    for (status, mut outcomes) in by_status {
        outcomes.sort_unstable();
        let schema = match outcomes.as_slice() {
            [only] => face.narrowed.get(*only).unwrap_or(&operation.output),
            _ => &operation.output,
        };
        let mut headers = headers(is_first_party(operation), &[&ALWAYS[..], &METERS]);
        for (name, is_sent) in [
            ("ETag", face.etag),
            ("X-Decoded-Content-Length", face.decoded_length),
        ] {
            if is_sent {
                headers.insert(name.to_owned(), reference(name));
            }
        }
        for name in &face.headers {
            headers.insert(
                name.as_str().to_owned(),
                json!({ "schema": { "type": "string" } }),
            );
        }
        let named: Vec<String> = outcomes
            .iter()
            .map(|outcome| format!("`{outcome}`"))
            .collect();
        let envelope = json!({
            "type": "object",
            "properties": { "success": { "const": true }, "data": schema.document() },
            "required": ["success", "data"],
        });
        let response = json!({
            "description": format!("The outcome {}.", named.join(" or ")),
            "headers": headers,
            "content": { "application/json": { "schema": envelope } },
        });
        responses.insert(status, response);
    }
    responses
}

/// The name of a response that operations have in common: that of a code of the host's which comes alone.
fn shared_name(operation: &Operation, refused: &[DocumentedRefusal<'_>]) -> Option<String> {
    match refused {
        [only] if only.is_declared || (only.is_metered() && is_first_party(operation)) => None,
        [only] => Some(name_of(only.code)),
        _ => None,
    }
}

fn is_first_party(operation: &Operation) -> bool {
    operation.terms.first_party_per_minute.is_some()
}

/// `PAYLOAD_TOO_LARGE` as `PayloadTooLarge`.
fn name_of(code: &str) -> String {
    let word = |word: &str| word[..1].to_owned() + &word[1..].to_ascii_lowercase();
    code.split('_')
        .filter(|part| !part.is_empty())
        .map(word)
        .collect()
}

fn refusal(is_first_party: bool, refused: &[DocumentedRefusal<'_>]) -> Value {
    let mut names = ALWAYS.to_vec();
    if refused.iter().any(DocumentedRefusal::is_metered) {
        names.extend(METERS);
    }
    if refused.iter().any(DocumentedRefusal::may_tell_when) {
        names.push("Retry-After");
    }
    let challenged = [Code::Unauthorized.name(), Code::Forbidden.name()];
    if refused.iter().any(|one| challenged.contains(&one.code)) {
        names.push("WWW-Authenticate");
    }
    let text: Vec<String> = refused
        .iter()
        .map(|one| format!("`{}`: {}", one.code, one.when.join(" ")))
        .collect();
    let codes: Vec<&str> = refused.iter().map(|one| one.code).collect();
    json!({
        "description": text.join("\n\n"),
        "headers": headers(is_first_party, &[&names]),
        "content": { "application/json": { "schema": error_of(&codes) } },
    })
}

/// An error whose code is one of these.
fn error_of(codes: &[&str]) -> Value {
    let code =
        json!({ "properties": { "error": { "properties": { "code": { "enum": codes } } } } });
    json!({ "allOf": [{ "$ref": "#/components/schemas/Error" }, code] })
}

/// References to these headers; the first party's stand beside the meters.
fn headers(is_first_party: bool, names: &[&[&str]]) -> Map<String, Value> {
    let names = || names.iter().copied().flatten().copied();
    let more = FIRST_PARTY
        .into_iter()
        .filter(|_| is_first_party && names().any(|name| name == METERS[0]));
    names()
        .chain(more)
        .map(|name| (name.to_owned(), reference(name)))
        .collect()
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

/// The responses that operations refer to, and those of the routes themselves.
pub(crate) fn shared() -> Value {
    let of_routes = [Code::NotFound, Code::MethodNotAllowed].into_iter();
    let codes = of_routes
        .chain(refusals::COMMON)
        .chain([Code::UpstreamTimeout]);
    let response = |code: Code| {
        let refused = DocumentedRefusal {
            status: code.status(),
            code: code.name(),
            when: vec![code.when()],
            is_declared: false,
        };
        let mut response = refusal(false, &[refused]);
        if code == Code::MethodNotAllowed {
            response["headers"]["Allow"] = reference("Allow");
        }
        (name_of(code.name()), response)
    };
    Value::Object(codes.map(response).collect())
}

/// All headers, by name.
pub(crate) fn shared_headers() -> Value {
    let text =
        |description: &str| json!({ "description": description, "schema": { "type": "string" } });
    let number = |description: &str, least: u8| json!({ "description": description, "schema": { "type": "integer", "minimum": least } });
    let uuid = json!({ "type": "string", "format": "uuid" });
    json!({
        "X-Request-Id": { "description": "The request's id, which also identifies it in the service's log.", "schema": uuid },
        "Server-Timing": text("How long the parts of the request took, in milliseconds."),
        "Cache-Control": text("Who may cache the response, and for how long. A failure is never cached."),
        "ETag": text("The tag of the data, for `If-None-Match`."),
        "Allow": text("The methods that the route supports."),
        "WWW-Authenticate": text(
            "A `Bearer` challenge (RFC 6750) with the `scope` that the operation needs. `error` is `invalid_token` \
             if the credential is unknown, was revoked or has expired, and `insufficient_scope` if it lacks the \
             scope.",
        ),
        "Retry-After": number("Seconds until a retry may help; equal to `data.retryAfter`.", 1),
        "X-Decoded-Content-Length": number("The length of the JSON before compression, in bytes.", 1),
        "X-ApiKey-RateLimit-Limit": number("Calls that the credential may make per window.", 0),
        "X-ApiKey-RateLimit-Remaining": number("Calls left in this window.", 0),
        "X-ApiKey-RateLimit-Reset": number("When the window ends, in Unix seconds.", 0),
        "X-ApiKey-RateLimit-Window": number("The length of the window, in seconds.", 1),
        "X-RateLimit-Limit": number("Calls per minute that an address may make without a credential.", 0),
        "X-RateLimit-Remaining": number("Calls that the address has left in this minute.", 0),
        "X-RateLimit-Reset": number("When the minute ends, in Unix seconds.", 0),
        "X-ApiKey-Monthly-Limit": number("Calls that the credential may make per calendar month (UTC).", 0),
        "X-ApiKey-Monthly-Remaining": number("Calls left in this month.", 0),
        "X-ApiKey-Monthly-Reset": number("When the month ends, in Unix seconds.", 0),
        "X-ApiKey-Credit-Cost": number("Credits reserved for this call; a failure returns them.", 0),
        "X-ApiKey-Credit-Limit": number("Credits that the account has per calendar month (UTC).", 0),
        "X-ApiKey-Credit-Reset": number("When the month ends, in Unix seconds.", 0),
    })
}

/// The error envelope.
pub(crate) fn error_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "success": { "const": false },
            "error": {
                "type": "object",
                "properties": {
                    "code": { "type": "string", "description": "The error code: branch on this." },
                    "message": { "type": "string", "description": "What went wrong, for people to read." },
                },
                "required": ["code", "message"],
            },
            "data": {
                "type": "object",
                "properties": {
                    "requestId": {
                        "type": "string",
                        "format": "uuid",
                        "description": "The request's id, as in `X-Request-Id`.",
                    },
                    "retryAfter": { "type": "integer", "minimum": 1, "description": "Seconds until a retry may help." },
                    "resetAt": {
                        "type": "string",
                        "format": "date-time",
                        "description": "When the limit that was reached resets.",
                    },
                    "field": { "type": "string", "description": "The offending field." },
                    "max": { "type": "number", "description": "The upper bound that was exceeded." },
                    "min": { "type": "number", "description": "The lower bound that was not reached." },
                },
                "required": ["requestId"],
            },
        },
        "required": ["success", "error", "data"],
    })
}
