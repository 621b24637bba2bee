//! An operation: its typed handler, and the row that describes it to the host.
//!
//! The row says everything about how the operation is served (route, tool, outcomes, errors, deadline);
//! the handler knows none of it.

use std::pin::Pin;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::bindings::switchbay::plugin0_2_0::types as wire;
use crate::{Call, ErrorCode, Failure, OperationError, Reply, Rest, schema};

type Answer = Pin<Box<dyn Future<Output = Result<wire::Reply, wire::Failure>>>>;
type Handler = Box<dyn Fn(Call, String) -> Answer + Send + Sync>;

/// An operation under construction. The host's defaults apply to anything that is not set.
pub struct Operation {
    id: &'static str,
    title: &'static str,
    description: &'static str,
    input: fn() -> Value,
    output: fn() -> Value,
    rest: Option<Rest>,
    tool: Option<Tool>,
    operator: Option<Value>,
    errors: Vec<ErrorCode>,
    examples: Vec<(&'static str, &'static str)>,
    deadline_ms: Option<u32>,
    on_deadline: Option<(&'static str, Option<u32>)>,
    on_unavailable: Option<&'static str>,
    terms: Vec<(&'static str, Value)>,
    feature_input: Map<String, Value>,
    handler: Handler,
    worker: Option<Handler>,
}

impl Operation {
    /// `id` names the operation within the plugin; `handler` takes its input type and returns its output
    /// type. For several output shapes, use an untagged enum.
    pub fn new<I, O, H, F>(id: &'static str, handler: H) -> Self
    where
        I: DeserializeOwned + JsonSchema,
        O: Serialize + JsonSchema,
        H: Fn(Call, I) -> F + Copy + Send + Sync + 'static,
        F: Future<Output = Result<Reply<O>, Failure>> + 'static,
    {
        Self {
            id,
            title: "",
            description: "",
            input: schema::of_input::<I>,
            output: schema::of_output::<O>,
            rest: None,
            tool: None,
            operator: None,
            errors: Vec::new(),
            examples: Vec::new(),
            deadline_ms: None,
            on_deadline: None,
            on_unavailable: None,
            terms: Vec::new(),
            feature_input: Map::new(),
            handler: boxed(handler),
            worker: None,
        }
    }

    /// Sets the worker that runs the jobs that the operation submits (see [`crate::jobs`]). `worker`
    /// takes the job's input; the data of its reply becomes the job's output.
    #[must_use]
    pub fn worker<I, O, W, F>(mut self, worker: W) -> Self
    where
        I: DeserializeOwned,
        O: Serialize,
        W: Fn(Call, I) -> F + Copy + Send + Sync + 'static,
        F: Future<Output = Result<Reply<O>, Failure>> + 'static,
    {
        self.worker = Some(boxed(worker));
        self
    }

    /// Sets a short title, at most 60 characters.
    #[must_use]
    pub fn title(mut self, title: &'static str) -> Self {
        self.title = title;
        self
    }

    /// Sets the description for the published documents and for agents that choose a tool: 20 to 1,000
    /// characters, the contract first.
    #[must_use]
    pub fn description(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// Serves the operation as a REST route.
    #[must_use]
    pub fn rest(mut self, rest: Rest) -> Self {
        self.rest = Some(rest);
        self
    }

    /// Serves the operation as an MCP tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tool = Some(tool);
        self
    }

    /// Serves the operation to the operator of the service alone (`switchbay plugin call`, and the operator's API), without
    /// a route, a tool, a scope, a window or a price. Places and processor time apply. [`CallerKind`](crate::CallerKind) is
    /// `Operator`.
    #[must_use]
    pub fn operator(mut self) -> Self {
        self.operator.get_or_insert_with(|| json!({}));
        self
    }

    /// The same, with an input of at most so many bytes: 1 to 1,048,576. The default is 16,384.
    #[must_use]
    pub fn operator_with_body(mut self, bytes_max: u32) -> Self {
        self.operator = Some(json!({ "body_bytes_max": bytes_max }));
        self
    }

    /// Declares an error code that the operation may fail with.
    #[must_use]
    pub fn error(mut self, error: ErrorCode) -> Self {
        self.errors.push(error);
        self
    }

    /// Declares several, in this order.
    #[must_use]
    pub fn errors(mut self, errors: impl IntoIterator<Item = ErrorCode>) -> Self {
        self.errors.extend(errors);
        self
    }

    /// Declares the codes of an error type, in its order.
    #[must_use]
    pub fn errors_of<E: OperationError>(self) -> Self {
        self.errors(E::CODES.iter().copied())
    }

    /// Adds an example input (a JSON object), which the developer guide shows as a request.
    #[must_use]
    pub fn example(mut self, title: &'static str, input: &'static str) -> Self {
        self.examples.push((title, input));
        self
    }

    /// Sets how long a call may take: 1 to 150,000 milliseconds. The default is 10,000.
    #[must_use]
    pub fn deadline_ms(mut self, milliseconds: u32) -> Self {
        self.deadline_ms = Some(milliseconds);
        self
    }

    /// Sets the declared code for a missed deadline, with the seconds to wait before a retry. The default
    /// is `UPSTREAM_TIMEOUT`.
    #[must_use]
    pub fn on_deadline(mut self, error: &ErrorCode, retry_after_s: Option<u32>) -> Self {
        self.on_deadline = Some((error.code, retry_after_s));
        self
    }

    /// Sets the declared code for when the plugin cannot take the call. The default is
    /// `SERVICE_UNAVAILABLE`.
    #[must_use]
    pub fn on_unavailable(mut self, error: &ErrorCode) -> Self {
        self.on_unavailable = Some(error.code);
        self
    }

    /// Limits the calls of each caller per minute, in addition to the limits of its key.
    #[must_use]
    pub fn window_per_minute(self, calls: u32) -> Self {
        self.term("window_per_minute", json!(calls))
    }

    /// Allows calls without a credential from the operator's own web pages, this many per address and
    /// minute. Without it, there are none.
    #[must_use]
    pub fn first_party_per_minute(self, calls: u32) -> Self {
        self.term("first_party_per_minute", json!(calls))
    }

    /// Sets what a successful call costs the account of a self-service key, in credits. The default is 1;
    /// the operator may set another price.
    #[must_use]
    pub fn cost(self, credits: u32) -> Self {
        self.term("cost", json!(credits))
    }

    /// Declares that the input has its own `requestId`, so the header `Idempotency-Key` is ignored.
    #[must_use]
    pub fn named_by_request_id(self) -> Self {
        self.term("idempotency", json!("request-id"))
    }

    /// Declares that the operation itself checks these input properties, by rules that a schema can only
    /// hint at and with its own codes and messages. The host publishes their schemas in full, but
    /// enforces only their types.
    #[must_use]
    pub fn judges(self, properties: &[&str]) -> Self {
        self.term("judges", json!(properties))
    }

    /// Adds an optional property to the input, with its JSON Schema, that only other plugins may send
    /// ([`crate::features`]); no published document shows it. The handler's input type must have the field
    /// and skip it in its own schema (`#[schemars(skip)]`).
    #[must_use]
    pub fn feature_input(mut self, property: &str, schema: impl Into<Value>) -> Self {
        self.feature_input
            .insert(property.to_owned(), schema.into());
        self
    }

    /// Sets which of the caller's limits a call counts toward. The default is all of them.
    #[must_use]
    pub fn consumes(self, limits: &[Limit]) -> Self {
        let names: Vec<&str> = limits.iter().map(Limit::name).collect();
        self.term("consumes", json!(names))
    }

    fn term(mut self, name: &'static str, value: Value) -> Self {
        self.terms.push((name, value));
        self
    }

    pub(crate) fn id(&self) -> &'static str {
        self.id
    }

    pub(crate) fn run(&self, call: Call, input: String) -> Answer {
        (self.handler)(call, input)
    }

    pub(crate) fn work(&self, call: Call, input: String) -> Answer {
        let worker = self
            .worker
            .as_ref()
            .unwrap_or_else(|| panic!("the operation `{}` has no worker", self.id));
        worker(call, input)
    }

    pub(crate) fn describe(&self) -> Value {
        let error = |e: &ErrorCode| json!({ "code": e.code, "status": e.status, "when": e.when });
        let examples = self.examples.iter();
        let mut row = Map::new();
        let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
        put("id", json!(self.id));
        put("title", json!(self.title));
        put("description", json!(self.description));
        put("input", (self.input)());
        put("output", (self.output)());
        put("errors", self.errors.iter().map(error).collect());
        put(
            "examples",
            examples
                .map(|(title, input)| example(title, input))
                .collect(),
        );
        if let Some(rest) = &self.rest {
            put("rest", rest.describe());
        }
        if let Some(tool) = &self.tool {
            put("tool", tool.describe());
        }
        if let Some(operator) = &self.operator {
            put("operator", operator.clone());
        }
        if let Some(milliseconds) = self.deadline_ms {
            put("deadline_ms", json!(milliseconds));
        }
        if let Some((code, retry_after_s)) = self.on_deadline {
            let missed = json!({ "code": code, "retry_after_s": retry_after_s });
            put("on_deadline", missed);
        }
        if let Some(code) = self.on_unavailable {
            put("on_unavailable", json!({ "code": code }));
        }
        if !self.feature_input.is_empty() {
            put("feature_input", json!(self.feature_input));
        }
        for (name, value) in &self.terms {
            put(name, value.clone());
        }
        Value::Object(row)
    }
}

fn boxed<I, O, H, F>(handler: H) -> Handler
where
    I: DeserializeOwned,
    O: Serialize,
    H: Fn(Call, I) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Result<Reply<O>, Failure>> + 'static,
{
    Box::new(move |call, input| {
        Box::pin(async move {
            let input = serde_json::from_str(&input).unwrap_or_else(|error| {
                panic!("the input fits its schema but not its type: {error}")
            });
            handler(call, input)
                .await
                .map(Reply::into_wire)
                .map_err(Failure::into_wire)
        })
    })
}

fn example(title: &str, input: &str) -> Value {
    let input: Value = serde_json::from_str(input)
        .unwrap_or_else(|error| panic!("the example `{title}` is not valid JSON: {error}"));
    json!({ "title": title, "input": input })
}

/// A caller's limit that a call may count toward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The rate windows of the key and the account.
    Window,
    /// The monthly quota of the key.
    Month,
    /// The credits of the account.
    Credits,
}

impl Limit {
    fn name(&self) -> &'static str {
        match self {
            Limit::Window => "window",
            Limit::Month => "month",
            Limit::Credits => "credits",
        }
    }
}

/// The MCP face of an operation.
pub struct Tool {
    name: &'static str,
    scope: &'static str,
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
    fixed: Map<String, Value>,
    hidden: Vec<&'static str>,
    added: Map<String, Value>,
}

impl Tool {
    /// `name` is 3 to 40 characters of `[a-z0-9_]`, starting with a letter; `scope` is the scope that the
    /// credential must have. By default the hints say that a call changes things, destroys nothing, is
    /// not idempotent and stays within this service.
    pub fn new(name: &'static str, scope: &'static str) -> Self {
        Self {
            name,
            scope,
            read_only: false,
            destructive: false,
            idempotent: false,
            open_world: false,
            fixed: Map::new(),
            hidden: Vec::new(),
            added: Map::new(),
        }
    }

    /// A tool that looks something up outside this service: [`Tool::read_only`] and [`Tool::open_world`].
    pub fn lookup(name: &'static str, scope: &'static str) -> Self {
        Self::new(name, scope).read_only().open_world()
    }

    /// Hints that a call changes nothing, so it may be repeated.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self.idempotent = true;
        self
    }

    /// Hints that a call may destroy something.
    #[must_use]
    pub fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }

    /// Hints that repeating a call has no further effect.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Hints that a call reaches things outside this service.
    #[must_use]
    pub fn open_world(mut self) -> Self {
        self.open_world = true;
        self
    }

    /// Fixes the value of an input property and removes it from the tool's arguments.
    #[must_use]
    pub fn fixed(mut self, property: &str, value: impl Into<Value>) -> Self {
        self.fixed.insert(property.to_owned(), value.into());
        self
    }

    /// Removes an optional input property from the tool's arguments.
    #[must_use]
    pub fn hidden(mut self, property: &'static str) -> Self {
        self.hidden.push(property);
        self
    }

    /// Adds an optional argument, with its JSON Schema, that the REST face does not have. The handler's
    /// input type must have the field and skip it in its own schema (`#[schemars(skip)]`).
    #[must_use]
    pub fn added(mut self, property: &str, schema: impl Into<Value>) -> Self {
        self.added.insert(property.to_owned(), schema.into());
        self
    }

    /// Adds an optional argument of type `T`, an enum of words, that the REST face does not have: see [`Tool::added`].
    /// Without it, the handler gets the type's default.
    #[must_use]
    pub fn choice<T: JsonSchema + Default + Serialize>(
        self,
        property: &str,
        description: &str,
    ) -> Self {
        let kind = schema::of_input::<T>();
        let schema = json!({
            "type": kind["type"],
            "enum": kind["enum"],
            "default": T::default(),
            "description": description,
        });
        self.added(property, schema)
    }

    fn describe(&self) -> Value {
        json!({
            "name": self.name,
            "access": { "scope": self.scope },
            "annotations": {
                "readOnlyHint": self.read_only,
                "destructiveHint": self.destructive,
                "idempotentHint": self.idempotent,
                "openWorldHint": self.open_world,
            },
            "fixed": self.fixed,
            "hidden": self.hidden,
            "added": self.added,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Form {
        #[default]
        Plain,
        #[expect(dead_code, reason = "it is named in the schema alone")]
        Rich,
    }

    #[test]
    fn a_choice_is_an_argument_with_the_default_of_its_type() {
        let tool = Tool::lookup("find_it", "it:find").choice::<Form>("form", "How it is written.");
        let described = tool.describe();
        let expected = json!({
            "type": "string",
            "enum": ["plain", "rich"],
            "default": "plain",
            "description": "How it is written.",
        });
        assert_eq!(described["added"]["form"], expected);
        let hints = &described["annotations"];
        assert_eq!(
            (&hints["readOnlyHint"], &hints["openWorldHint"]),
            (&json!(true), &json!(true))
        );
    }
}
