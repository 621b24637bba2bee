//! What a plugin says of itself: the JSON of `describe`, checked and turned into operations.
//!
//! Everything that could be wrong with an operation is found here, at load, so that the road and the transports may trust
//! each row. Unknown keys are errors. Must not know which plugin it reads.

mod written;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::written::{
    WrittenDescription, WrittenError, WrittenExample, WrittenFailure, WrittenOperation, WrittenWant,
};
use super::error::Code;
use super::faces::{is_identifier, rest_face, schema_error, tool_face, tool_input, twice};
use super::grants::{Atom, AtomError, Grants};
use super::operation::{
    DeclaredError, DeclaredFailure, FeatureFace, InputExample, Operation, OperatorFace,
};
use super::profile;
use super::schema::{FaceSchema, OutputSchema};
use super::terms;

/// The schemas of descriptions that are read side by side.
const SCHEMAS: [u32; 2] = [1, 2];
const BODY_BYTES_DEFAULT: usize = 16 * 1024;
const BODY_BYTES_MAX: usize = 1 << 20;
const DEADLINE_MS_DEFAULT: u32 = 10_000;
const DEADLINE_MS_MAX: u32 = 150_000;
const OPERATIONS_MAX: usize = 64;
const WHY_BYTES_MAX: usize = 200;

/// A description that cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DescriptionError {
    #[error("its description is not JSON of the expected form: {0}")]
    Malformed(#[source] serde_json::Error),
    #[error("its description has schema {found}; this host reads {}", schemas())]
    Schema { found: u32 },
    #[error("its description has the name `{0}`, not that of its manifest entry")]
    Name(String),
    #[error("its description {0}")]
    Rule(String),
    #[error("its description has an invalid want: {0}")]
    Want(#[source] AtomError),
    #[error("operation `{operation}` {rule}")]
    Operation { operation: String, rule: String },
    #[error("operation `{operation}`, {part}: {rule}")]
    Part {
        operation: String,
        part: &'static str,
        rule: String,
    },
}

fn schemas() -> String {
    SCHEMAS.map(|schema| schema.to_string()).join(" and ")
}

/// What is wrong with a part of an operation.
fn in_part<E: Display>(operation: &str, part: &'static str) -> impl FnOnce(E) -> DescriptionError {
    let operation = operation.to_owned();
    move |error| DescriptionError::Part {
        operation,
        part,
        rule: error.to_string(),
    }
}

/// A checked description.
pub(crate) struct Description {
    pub(crate) version: String,
    pub(crate) summary: String,
    /// What the plugin asks for, each atom once.
    pub(crate) wants: Vec<Want>,
    pub(crate) operations: Vec<Operation>,
}

/// A wish for a right, with the reason that an operator reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Want {
    pub(crate) atom: Atom,
    pub(crate) why: String,
    /// Whether the plugin works without it, and so does not wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) optional: bool,
}

impl Description {
    /// Reads the description of the plugin that the manifest calls `name`.
    pub(crate) fn read(text: &str, name: &str) -> Result<Self, DescriptionError> {
        let written: WrittenDescription =
            serde_json::from_str(text).map_err(DescriptionError::Malformed)?;
        if !SCHEMAS.contains(&written.schema) {
            return Err(DescriptionError::Schema {
                found: written.schema,
            });
        }
        if written.name != name {
            return Err(DescriptionError::Name(written.name));
        }
        let found = written.operations.len();
        if !(1..=OPERATIONS_MAX).contains(&found) {
            let rule = format!("must have 1 to {OPERATIONS_MAX} operations, not {found}");
            return Err(DescriptionError::Rule(rule));
        }
        about(&written).map_err(DescriptionError::Rule)?;
        let mut operations: Vec<Operation> = Vec::with_capacity(written.operations.len());
        for row in written.operations {
            if operations.iter().any(|other| other.id == row.id) {
                return Err(DescriptionError::Operation {
                    operation: row.id,
                    rule: "appears more than once".to_owned(),
                });
            }
            later_than(written.schema, &row)?;
            operations.push(operation(name, row)?);
        }
        Ok(Self {
            version: written.version,
            summary: written.summary,
            wants: wants(written.wants)?,
            operations,
        })
    }

    /// All that the plugin asks for.
    pub(crate) fn wanted(&self) -> Grants {
        self.wants.iter().map(|want| want.atom.clone()).collect()
    }
}

/// What an operation says must be of the schema that its description names.
fn later_than(schema: u32, row: &WrittenOperation) -> Result<(), DescriptionError> {
    let later = [
        ("operator", row.operator.is_some(), 2),
        ("feature_input", !row.feature_input.is_empty(), 2),
    ];
    match later
        .into_iter()
        .find(|(_, is_there, since)| *is_there && schema < *since)
    {
        None => Ok(()),
        Some((member, _, since)) => Err(DescriptionError::Operation {
            operation: row.id.clone(),
            rule: format!(
                "has `{member}`, which came with schema {since}; its description has schema {schema}"
            ),
        }),
    }
}

fn about(written: &WrittenDescription) -> Result<(), String> {
    let version = &written.version;
    if !(1..=64).contains(&version.len()) || !version.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(
            "must have a version of 1 to 64 printable ASCII characters without spaces".to_owned(),
        );
    }
    match written.summary.len() {
        1..=200 => Ok(()),
        bytes => Err(format!(
            "must have a summary of 1 to 200 bytes, not {bytes}"
        )),
    }
}

fn wants(written: Vec<WrittenWant>) -> Result<Vec<Want>, DescriptionError> {
    Grants::parse(written.iter().map(|want| &want.atom)).map_err(DescriptionError::Want)?;
    let mut wants = Vec::with_capacity(written.len());
    for want in written {
        let (atom, bytes) = (&want.atom, want.why.len());
        if !(1..=WHY_BYTES_MAX).contains(&bytes) {
            let rule = format!(
                "must say in 1 to {WHY_BYTES_MAX} bytes why it wants `{atom}`, not {bytes}"
            );
            return Err(DescriptionError::Rule(rule));
        }
        wants.push(Want {
            atom: Atom::parse(atom).map_err(DescriptionError::Want)?,
            why: want.why,
            optional: want.optional,
        });
    }
    Ok(wants)
}

fn operation(plugin: &str, mut row: WrittenOperation) -> Result<Operation, DescriptionError> {
    let id = row.id.clone();
    let broken = |rule: String| DescriptionError::Operation {
        operation: id.clone(),
        rule,
    };
    words(&row).map_err(&broken)?;
    faces_together(&row).map_err(&broken)?;
    let terms = terms::terms(written_terms(&row)).map_err(&broken)?;
    let errors = std::mem::take(&mut row.errors);
    let errors = errors.into_iter().map(declared_error);
    let errors: Vec<_> = errors.collect::<Result<_, _>>().map_err(&broken)?;
    if let Some(code) = twice(errors.iter().map(|error| &error.code)) {
        return Err(broken(format!("declares `{code}` more than once")));
    }
    let deadline = deadline(row.deadline_ms).map_err(&broken)?;
    profile::check_input(&row.input).map_err(in_part(&id, "input"))?;
    profile::check_output(&row.output).map_err(in_part(&id, "output"))?;
    said_of_input(&row.input, &row.judges).map_err(&broken)?;
    let rest_max = row.rest.as_ref().and_then(|rest| rest.body_bytes_max);
    let operator_max = row.operator.as_ref().and_then(|face| face.body_bytes_max);
    let bytes_max = rest_max.or(operator_max);
    let bytes_max = body_bytes_max(bytes_max).map_err(&broken)?;
    let base = FaceSchema::compile(row.input.clone(), &row.judges);
    let base = Arc::new(base.map_err(in_part(&id, "input"))?);
    let feature = feature_face(&row, &base, bytes_max)?;
    let tool = match row.tool {
        None => None,
        Some(tool) => {
            let input = tool_input(&row.input, &tool).map_err(&broken)?;
            profile::check_input(&input).map_err(in_part(&id, "tool input"))?;
            let input =
                FaceSchema::compile(input, &row.judges).map_err(in_part(&id, "tool input"))?;
            Some(tool_face(tool, input, bytes_max).map_err(&broken)?)
        }
    };
    let operator = row.operator.as_ref().map(|_| OperatorFace {
        input: Arc::clone(&base),
        bytes_max,
    });
    let rest = match row.rest {
        None => None,
        Some(rest) => {
            let input = Arc::clone(&base);
            Some(rest_face(rest, input, &row.output, bytes_max).map_err(&broken)?)
        }
    };
    let faces = rest.as_ref().map(|face| &*face.input);
    let faces = faces.or(tool.as_ref().map(|face| &face.input));
    let faces = faces.or(operator.as_ref().map(|face| &*face.input));
    let examples = examples(row.examples, faces).map_err(&broken)?;
    let failure = |written, default| own_failure(written, default, &errors).map_err(&broken);
    Ok(Operation {
        terms,
        output: OutputSchema::compile(row.output).map_err(in_part(&id, "output"))?,
        deadline,
        on_deadline: failure(row.on_deadline, Code::UpstreamTimeout)?,
        on_unavailable: failure(row.on_unavailable, Code::ServiceUnavailable)?,
        counted_as: format!("{plugin}/{}", row.id),
        id: row.id,
        title: row.title,
        description: row.description,
        rest,
        tool,
        operator,
        feature,
        errors,
        examples,
    })
}

/// An operation has a face, and what only the operator calls is served to nobody else and limits and costs nothing.
fn faces_together(row: &WrittenOperation) -> Result<(), String> {
    let is_served = row.rest.is_some() || row.tool.is_some();
    match (&row.operator, is_served) {
        (None, true) => return Ok(()),
        (None, false) => return Err("has no face; declare `rest`, `tool` or `operator`".to_owned()),
        (Some(_), true) => {
            let rule =
                "has `operator` and another face; an operation for the operator has no other";
            return Err(rule.to_owned());
        }
        (Some(_), false) => {}
    }
    let terms = [
        ("window_per_minute", row.window_per_minute.is_some()),
        (
            "first_party_per_minute",
            row.first_party_per_minute.is_some(),
        ),
        ("consumes", row.consumes.is_some()),
        ("cost", row.cost.is_some()),
        ("settle", row.settle.is_some()),
        ("idempotency", row.idempotency.is_some()),
        ("feature_input", !row.feature_input.is_empty()),
    ];
    match terms.into_iter().find(|(_, is_there)| *is_there) {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "has `{name}`, which an operation with the face `operator` cannot have"
        )),
    }
}

/// What other plugins may send.
fn feature_face(
    row: &WrittenOperation,
    base: &Arc<FaceSchema>,
    bytes_max: usize,
) -> Result<FeatureFace, DescriptionError> {
    if row.feature_input.is_empty() {
        let input = Arc::clone(base);
        return Ok(FeatureFace { input, bytes_max });
    }
    let broken = |rule| DescriptionError::Operation {
        operation: row.id.clone(),
        rule,
    };
    let mut input = row.input.clone();
    let Some(properties) = input["properties"].as_object_mut() else {
        let rule = "has `feature_input`, but its `input` has no `properties`";
        return Err(broken(rule.to_owned()));
    };
    for (name, property) in &row.feature_input {
        if properties.insert(name.clone(), property.clone()).is_some() {
            let rule = format!("has `{name}` in both `input` and `feature_input`");
            return Err(broken(rule));
        }
    }
    profile::check_input(&input).map_err(in_part(&row.id, "feature input"))?;
    let input = FaceSchema::compile(input, &row.judges);
    let input = Arc::new(input.map_err(in_part(&row.id, "feature input"))?);
    Ok(FeatureFace { input, bytes_max })
}

fn deadline(written_ms: Option<u32>) -> Result<Duration, String> {
    match written_ms.unwrap_or(DEADLINE_MS_DEFAULT) {
        ms @ 1..=DEADLINE_MS_MAX => Ok(Duration::from_millis(u64::from(ms))),
        ms => Err(format!(
            "has a deadline of {ms} ms; it must be from 1 to {DEADLINE_MS_MAX}"
        )),
    }
}

fn body_bytes_max(written: Option<usize>) -> Result<usize, String> {
    match written.unwrap_or(BODY_BYTES_DEFAULT) {
        bytes @ 1..=BODY_BYTES_MAX => Ok(bytes),
        bytes => Err(format!(
            "has `body_bytes_max` {bytes}; it must be from 1 to {BODY_BYTES_MAX}"
        )),
    }
}

fn written_terms(row: &WrittenOperation) -> terms::WrittenTerms {
    terms::WrittenTerms {
        window_per_minute: row.window_per_minute,
        first_party_per_minute: row.first_party_per_minute,
        consumes: row.consumes.clone(),
        cost: row.cost,
        settle: row.settle,
        idempotency: row.idempotency,
    }
}

/// What a row says of its input's properties fits the properties that are there.
fn said_of_input(input: &Value, judges: &[String]) -> Result<(), String> {
    let is_absent = |name: &&String| input["properties"].get(name.as_str()).is_none();
    if let Some(name) = judges.iter().find(is_absent) {
        return Err(format!(
            "names `{name}` in `judges`, which its input does not have"
        ));
    }
    let Some(offence) = schema_error(input, &defaults(input))? else {
        return Ok(());
    };
    let (field, rule) = (offence.field.as_deref().unwrap_or_default(), offence.told());
    Err(format!("has a default for `{field}`, which {rule}"))
}

/// What the arguments are where a caller leaves them out, as the schema says.
fn defaults(input: &Value) -> Map<String, Value> {
    let properties = input["properties"].as_object().into_iter().flatten();
    properties
        .filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone())))
        .collect()
}

fn words(row: &WrittenOperation) -> Result<(), String> {
    if !is_identifier(&row.id, 40) {
        return Err(
            "must have an id of 1 to 40 characters of a-z, 0-9 and _, starting with a letter"
                .to_owned(),
        );
    }
    let (title, description) = (row.title.chars().count(), row.description.chars().count());
    if !(1..=60).contains(&title) {
        return Err(format!(
            "must have a title of 1 to 60 characters, not {title}"
        ));
    }
    if !(20..=1000).contains(&description) {
        return Err(format!(
            "must have a description of 20 to 1000 characters, not {description}"
        ));
    }
    Ok(())
}

fn declared_error(row: WrittenError) -> Result<DeclaredError, String> {
    let code = row.code;
    let is_word = code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    if !is_word || !(1..=64).contains(&code.len()) {
        return Err(format!(
            "declares the error code `{code}`; write upper-case words with underscores"
        ));
    }
    let Some(status) = error_status(row.status) else {
        let status = row.status;
        return Err(format!(
            "declares `{code}` with status {status}; it must be from 400 to 599"
        ));
    };
    let known = Code::from_name(&code);
    if let Some(known) = known.filter(|known| known.status() != status) {
        return Err(format!(
            "declares `{code}` with status {status}; this service uses {}",
            known.status()
        ));
    }
    // The host alone judges credentials: a client reads these as a challenge.
    if matches!(known, Some(Code::Unauthorized | Code::Forbidden)) {
        return Err(format!("declares `{code}`, which is reserved for the host"));
    }
    Ok(DeclaredError {
        code,
        status,
        when: row.when,
    })
}

fn error_status(status: u16) -> Option<StatusCode> {
    StatusCode::from_u16(status)
        .ok()
        .filter(|status| status.is_client_error() || status.is_server_error())
}

fn own_failure(
    written: Option<WrittenFailure>,
    default: Code,
    errors: &[DeclaredError],
) -> Result<DeclaredFailure, String> {
    let Some(written) = written else {
        return Ok(DeclaredFailure {
            code: default.name().to_owned(),
            status: default.status(),
            retry_after_s: None,
        });
    };
    let WrittenFailure { code, .. } = written;
    let declared = errors.iter().find(|error| error.code == code);
    let declared = declared.map(|error| error.status);
    let Some(status) = declared.or_else(|| Code::from_name(&code).map(Code::status)) else {
        return Err(format!(
            "assigns the undeclared code `{code}` to a failure of the host"
        ));
    };
    Ok(DeclaredFailure {
        code,
        status,
        retry_after_s: written.retry_after_s,
    })
}

fn examples(
    rows: Vec<WrittenExample>,
    input: Option<&FaceSchema>,
) -> Result<Vec<InputExample>, String> {
    let example = |WrittenExample {
                       title,
                       input: example,
                   }| {
        let checked = input.map(|schema| schema.check(&Value::Object(example.clone())));
        if let Some(Err(offence)) = checked {
            let (field, rule) = (offence.field.as_deref().unwrap_or_default(), offence.told());
            return Err(format!("has the example `{title}`, whose `{field}` {rule}"));
        }
        let input = example;
        Ok(InputExample { title, input })
    };
    rows.into_iter().map(example).collect()
}
