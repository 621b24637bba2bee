//! Requests to copy: each runs as it stands in a POSIX shell, as often as it is run.

use std::fmt::{self, Write as _};

use http::Method;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value};

use super::fields;
use crate::contract::faces::path_parameters;
use crate::contract::operation::{IdempotencySource, InputExample, Operation, RestFace};

const IN_URL: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'\'')
    .add(b'+')
    .add(b'/')
    .add(b'=')
    .add(b'?');
/// The argument that names a submission.
const REQUEST_ID: &str = "requestId";
/// A new UUID, on systems with `uuidgen` and on those that have Linux alone.
const FRESH_UUID: &str = "$(uuidgen 2>/dev/null || cat /proc/sys/kernel/random/uuid)";

/// The operation's examples as commands.
pub(crate) fn write_examples(
    text: &mut String,
    operation: &Operation,
    face: &RestFace,
    base_url: &str,
) -> fmt::Result {
    for example in &operation.examples {
        writeln!(text, "{}:\n", example.title)?;
        for (name, schema) in face
            .input
            .properties()
            .filter(|(name, schema)| is_readers(face, name, schema))
        {
            let meaning = schema
                .get("description")
                .and_then(Value::as_str)
                .unwrap_or_default();
            writeln!(
                text,
                "Set `{}` yourself. {}\n",
                variable(name),
                fields::cell(meaning)
            )?;
        }
        writeln!(text, "```sh")?;
        write_curl(text, operation, face, example, base_url)?;
        writeln!(text, "```\n")?;
    }
    Ok(())
}

/// Whether a value is made by this service, so that no example can have it.
fn is_readers(face: &RestFace, name: &str, schema: &Value) -> bool {
    path_parameters(&face.path).any(|parameter| parameter == name)
        && schema.get("format").and_then(Value::as_str) == Some("uuid")
}

/// The shell's variable for an argument.
fn variable(name: &str) -> String {
    name.to_ascii_uppercase()
}

fn write_curl(
    text: &mut String,
    operation: &Operation,
    face: &RestFace,
    example: &InputExample,
    base_url: &str,
) -> fmt::Result {
    let mut rest = example.input.clone();
    let mut path = face.path.clone();
    for (name, schema) in face.input.properties() {
        let place = format!("{{{name}}}");
        if is_readers(face, name, schema) {
            rest.remove(name);
            path = path.replace(&place, &format!("'\"${}\"'", variable(name)));
        } else if path.contains(&place) {
            path = path.replace(
                &place,
                &rest
                    .remove(name)
                    .map_or_else(String::new, |value| plain(&value)),
            );
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
    let url = format!("'{base_url}{path}'").replace("''", "");
    writeln!(text, "curl -sS {method}{url} \\")?;
    write!(text, "  -H \"Authorization: Bearer $SWITCHBAY_KEY\"")?;
    if posts && !rest.is_empty() {
        write!(
            text,
            " \\\n  -H 'Content-Type: application/json' \\\n  -d '{}'",
            body(operation, rest)
        )?;
    }
    writeln!(text)
}

/// A body within single quotes. The name of a submission is made anew each time, because the service takes one once.
fn body(operation: &Operation, mut input: Map<String, Value>) -> String {
    // No text of an example has this character in it, which a shell could not carry either.
    const PLACE: &str = "\u{0}";
    if operation.terms.idempotency == IdempotencySource::RequestId
        && let Some(id) = input.get_mut(REQUEST_ID)
    {
        *id = Value::from(PLACE);
    }
    let place = Value::from(PLACE).to_string();
    let text = Value::Object(input).to_string().replace('\'', "'\\''");
    text.replace(&place, &format!("\"'\"{FRESH_UUID}\"'\""))
}

fn query(input: &Map<String, Value>) -> String {
    let pairs: Vec<String> = input
        .iter()
        .map(|(name, value)| format!("{name}={}", plain(value)))
        .collect();
    if pairs.is_empty() {
        String::new()
    } else {
        format!("?{}", pairs.join("&"))
    }
}

fn plain(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    utf8_percent_encode(&text, IN_URL).to_string()
}
