//! The developer guide: Markdown for people and agents, generated from the operations, with requests to copy for each.
//!
//! This file has the order of its parts. `conventions` is what holds for all operations, `fields` writes what one takes and
//! answers, `curl` the requests.

mod conventions;
mod curl;
mod fields;

use std::fmt::{self, Write as _};

use http::StatusCode;

use super::Site;
use super::refusals;
use crate::catalogue::Bound;
use crate::contract::error::Code;
use crate::contract::operation::{
    Consumed, DeclaredError, IdempotencySource, Operation, RestFace, ToolFace,
};
use crate::contract::schema::OutputSchema;

/// The guide for these operations.
pub(crate) fn document(bound: &[Bound], site: &Site) -> String {
    let mut text = String::with_capacity(64 * 1024);
    write_guide(&mut text, bound, site).expect("writing to a String does not fail");
    text
}

fn write_guide(text: &mut String, bound: &[Bound], site: &Site) -> fmt::Result {
    conventions::write_opening(text, site)?;
    write_overview(text, bound)?;
    conventions::write(text, site)?;
    conventions::write_codes(text)?;
    writeln!(text, "## Operations\n")?;
    bound
        .iter()
        .try_for_each(|one| write_operation(text, one, site))
}

fn write_overview(text: &mut String, bound: &[Bound]) -> fmt::Result {
    writeln!(
        text,
        "| operation | REST | tool | scope |\n| - | - | - | - |"
    )?;
    for one in bound {
        let title = &one.operation.title;
        let route = one.rest().map_or_else(String::new, |face| {
            format!("`{} {}`", face.method, face.path)
        });
        let tool = one
            .tool()
            .map_or_else(String::new, |face| format!("`{}`", face.name));
        let scope = one
            .rest()
            .map(|face| &face.scope)
            .or(one.tool().map(|face| &face.scope));
        let scope = scope.map_or_else(String::new, |scope| format!("`{scope}`"));
        writeln!(
            text,
            "| [{title}](#{}) | {route} | {tool} | {scope} |",
            anchor(title)
        )?;
    }
    writeln!(text)
}

/// Where a heading is linked to, as most renderers make it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn write_operation(text: &mut String, bound: &Bound, site: &Site) -> fmt::Result {
    let operation = &bound.operation;
    writeln!(text, "### {}\n", operation.title)?;
    if let Some(face) = &operation.rest {
        writeln!(
            text,
            "`{} {}`, scope `{}`",
            face.method, face.path, face.scope
        )?;
    }
    if let Some(tool) = &operation.tool {
        writeln!(text, "\nMCP tool `{}`, scope `{}`", tool.name, tool.scope)?;
    }
    writeln!(text, "\n{}\n", operation.description)?;
    write_arguments(text, operation)?;
    if let Some(face) = &operation.rest {
        curl::write_examples(text, operation, face, &site.base_url)?;
    }
    write_answer(text, operation)?;
    write_own_codes(text, operation)?;
    write_terms(text, bound, site)
}

/// What a call takes of the caller's limits, and how long it may take.
fn write_terms(text: &mut String, bound: &Bound, site: &Site) -> fmt::Result {
    let (operation, terms) = (&bound.operation, &bound.operation.terms);
    writeln!(text, "#### Limits\n")?;
    match terms.per_minute {
        Some(calls) => writeln!(
            text,
            "- {calls} calls per minute for each credential, in addition to its own limits"
        )?,
        None => writeln!(
            text,
            "- no window of its own: only the credential's limits apply"
        )?,
    }
    if let Some(calls) = terms.first_party_per_minute {
        writeln!(
            text,
            "- {calls} calls per minute for each address without a credential, from this service's own pages"
        )?;
    }
    let counted = [
        (Consumed::Window, "the credential's windows"),
        (Consumed::Month, "its month"),
    ];
    let counted: Vec<&str> = counted
        .into_iter()
        .filter(|(limit, _)| terms.consumes(*limit))
        .map(|(_, name)| name)
        .collect();
    if !counted.is_empty() {
        writeln!(text, "- counts toward {}", counted.join(" and "))?;
    }
    write_price(text, bound, site)?;
    match terms.idempotency {
        IdempotencySource::Key => {
            writeln!(text, "- accepts `Idempotency-Key` from self-service keys")?;
        }
        IdempotencySource::RequestId => {
            writeln!(
                text,
                "- runs once for each `requestId`; `Idempotency-Key` is ignored"
            )?;
        }
    }
    let bytes = operation.rest.as_ref().map(|face| face.body_bytes_max);
    if let Some(bytes) = bytes.or(operation.tool.as_ref().map(|tool| tool.bytes_max)) {
        writeln!(
            text,
            "- accepts at most {bytes} bytes in a body, or in a tool's arguments"
        )?;
    }
    let seconds = operation.deadline.as_millis().div_ceil(1000);
    let late = &operation.on_deadline;
    writeln!(
        text,
        "- responds within {seconds} s, or with {} `{}`",
        late.status.as_u16(),
        late.code
    )?;
    if let Some(face) = &operation.rest {
        write_keeping(text, face)?;
    }
    writeln!(text)
}

fn write_price(text: &mut String, bound: &Bound, site: &Site) -> fmt::Result {
    let (operation, terms) = (&bound.operation, &bound.operation.terms);
    let cost = site
        .credits
        .cost(&bound.revision.plugin, &operation.id)
        .unwrap_or(terms.cost);
    match (terms.consumes(Consumed::Credits), cost) {
        (false, _) | (true, 0) => writeln!(text, "- costs no credits"),
        (true, 1) => writeln!(
            text,
            "- costs 1 credit of a self-service key's account if it succeeds"
        ),
        (true, cost) => writeln!(
            text,
            "- costs {cost} credits of a self-service key's account if it succeeds"
        ),
    }
}

fn write_keeping(text: &mut String, face: &RestFace) -> fmt::Result {
    if let Some(value) = face
        .cache_control
        .as_ref()
        .and_then(|value| value.to_str().ok())
    {
        writeln!(text, "- `Cache-Control: {value}`")?;
    }
    if face.etag {
        writeln!(
            text,
            "- sends an `ETag`; the same value in `If-None-Match` is answered with 304 and no body"
        )?;
    }
    Ok(())
}

fn write_arguments(text: &mut String, operation: &Operation) -> fmt::Result {
    writeln!(text, "#### Arguments\n")?;
    let face = operation
        .rest
        .as_ref()
        .map(|face| &*face.input)
        .or(operation.tool.as_ref().map(|tool| &tool.input));
    if let Some(input) = face {
        fields::write_input(text, input)?;
    }
    match (&operation.rest, &operation.tool) {
        (Some(rest), Some(tool)) => write_differences(text, rest, tool),
        _ => Ok(()),
    }
}

/// Arguments of one face that the other does not have.
fn write_differences(text: &mut String, rest: &RestFace, tool: &ToolFace) -> fmt::Result {
    let added: Vec<&str> = tool
        .input
        .properties()
        .map(|(name, _)| name.as_str())
        .collect();
    let added: Vec<&str> = added
        .into_iter()
        .filter(|name| rest.input.type_of(name).is_none())
        .collect();
    if !added.is_empty() {
        writeln!(text, "The tool also takes:\n")?;
        fields::write_some(text, &tool.input, &added)?;
    }
    let gone = rest
        .input
        .properties()
        .map(|(name, _)| name)
        .filter(|name| tool.input.type_of(name).is_none());
    let gone: Vec<String> = gone.map(|name| format!("`{name}`")).collect();
    if gone.is_empty() {
        return Ok(());
    }
    writeln!(text, "The tool does not take {}.\n", gone.join(", "))
}

fn write_answer(text: &mut String, operation: &Operation) -> fmt::Result {
    writeln!(text, "#### Response\n")?;
    let mut outcomes: Vec<(&StatusCode, &str)> = Vec::new();
    if let Some(face) = &operation.rest {
        outcomes = face
            .outcomes
            .iter()
            .map(|(outcome, status)| (status, outcome.as_str()))
            .collect();
        outcomes.sort_unstable();
        let statuses: Vec<String> = outcomes
            .iter()
            .map(|(status, _)| status.as_u16().to_string())
            .collect();
        writeln!(text, "{} with this `data`:\n", statuses.join(" or "))?;
    }
    let narrowed = |outcome: &str| {
        operation
            .rest
            .as_ref()
            .and_then(|face| face.narrowed.get(outcome))
    };
    if let [(_, only)] = outcomes.as_slice() {
        return fields::write_output(text, narrowed(only).unwrap_or(&operation.output).document());
    }
    fields::write_output(text, operation.output.document())?;
    for (status, schema) in outcomes
        .iter()
        .filter_map(|(status, outcome)| Some((status.as_u16(), narrowed(outcome)?)))
    {
        write_narrowed(text, status, &operation.output, schema)?;
    }
    Ok(())
}

fn write_narrowed(
    text: &mut String,
    status: u16,
    output: &OutputSchema,
    narrowed: &OutputSchema,
) -> fmt::Result {
    let [wide, narrow] = [output, narrowed].map(|schema| &schema.document()["properties"]);
    let members = narrow.as_object().into_iter().flatten();
    let changed = members.filter(|(name, schema)| wide.get(name.as_str()) != Some(schema));
    let told: Vec<String> = changed
        .map(|(name, schema)| format!("`{name}` is {}", fields::value(schema)))
        .collect();
    writeln!(text, "With {status}, {}.\n", told.join("; "))
}

fn write_own_codes(text: &mut String, operation: &Operation) -> fmt::Result {
    writeln!(text, "#### Errors\n")?;
    let by_terms = refusals::of_terms(operation).into_iter().map(Code::name);
    let by_terms =
        by_terms.filter(|code| !operation.errors.iter().any(|error| error.code == *code));
    let by_terms: Vec<String> = by_terms.map(|code| format!("`{code}`")).collect();
    write!(text, "The [codes of every operation](#error-codes)")?;
    if !by_terms.is_empty() {
        write!(text, ", {}", by_terms.join(", "))?;
    }
    if operation.errors.is_empty() {
        return writeln!(text, ".\n");
    }
    writeln!(text, ", and:\n\n| status | code | when |\n| - | - | - |")?;
    let mut errors: Vec<&DeclaredError> = operation.errors.iter().collect();
    errors.sort_by_key(|error| error.status.as_u16());
    for DeclaredError { status, code, when } in errors {
        writeln!(
            text,
            "| {} | {code} | {} |",
            status.as_u16(),
            fields::cell(when)
        )?;
    }
    writeln!(text)
}
