//! The REST face of an operation: its route, the form of its successes, and how they may be cached.
//!
//! Only the host reads it; the handler knows none of it.

use serde_json::{Map, Value, json};

/// The REST face of an operation.
pub struct Rest {
    method: &'static str,
    path: &'static str,
    scope: &'static str,
    body_bytes_max: Option<u32>,
    outcomes: Vec<(&'static str, u16)>,
    narrowed: Map<String, Value>,
    headers: Vec<&'static str>,
    cache_control: Option<&'static str>,
    etag: bool,
    decoded_length: bool,
}

impl Rest {
    /// `GET path` for credentials with `scope`. Input properties that are not a `{name}` in the path come
    /// from the query.
    pub fn get(path: &'static str, scope: &'static str) -> Self {
        Self::method("GET", path, scope)
    }

    /// `POST path` for credentials with `scope`. Input properties that are not a `{name}` in the path come
    /// from the JSON body.
    pub fn post(path: &'static str, scope: &'static str) -> Self {
        Self::method("POST", path, scope)
    }

    /// `DELETE path` for credentials with `scope`. Input properties that are not a `{name}` in the path
    /// come from the query.
    pub fn delete(path: &'static str, scope: &'static str) -> Self {
        Self::method("DELETE", path, scope)
    }

    fn method(method: &'static str, path: &'static str, scope: &'static str) -> Self {
        Self {
            method,
            path,
            scope,
            body_bytes_max: None,
            outcomes: vec![("ok", 200)],
            narrowed: Map::new(),
            headers: Vec::new(),
            cache_control: None,
            etag: false,
            decoded_length: false,
        }
    }

    /// Limits the request body, in bytes. The default is 16,384.
    #[must_use]
    pub fn body_bytes_max(mut self, bytes: u32) -> Self {
        self.body_bytes_max = Some(bytes);
        self
    }

    /// Declares another successful outcome and its status.
    #[must_use]
    pub fn outcome(mut self, outcome: &'static str, status: u16) -> Self {
        self.outcomes.push((outcome, status));
        self
    }

    /// Narrows the output schema for one outcome: these JSON Schemas replace those of the output for the
    /// named properties. The host publishes them with the outcome's status and checks replies against
    /// them.
    #[must_use]
    pub fn narrows(mut self, outcome: &'static str, properties: Value) -> Self {
        self.narrowed.insert(outcome.to_owned(), properties);
        self
    }

    /// Declares a response header that replies may carry.
    #[must_use]
    pub fn header(mut self, name: &'static str) -> Self {
        self.headers.push(name);
        self
    }

    /// Sets the `Cache-Control` of successes. The default is `private, no-store`.
    #[must_use]
    pub fn cache_control(mut self, value: &'static str) -> Self {
        self.cache_control = Some(value);
        self
    }

    /// Sends an `ETag` of the data, and 304 in answer to a matching `If-None-Match`.
    #[must_use]
    pub fn etag(mut self) -> Self {
        self.etag = true;
        self
    }

    /// Sends `X-Decoded-Content-Length`, the length before compression.
    #[must_use]
    pub fn decoded_length(mut self) -> Self {
        self.decoded_length = true;
        self
    }

    pub(crate) fn describe(&self) -> Value {
        let outcomes: Map<String, Value> = self
            .outcomes
            .iter()
            .map(|(outcome, status)| ((*outcome).to_owned(), json!(status)))
            .collect();
        let mut row = json!({
            "method": self.method,
            "path": self.path,
            "access": { "scope": self.scope },
            "outcomes": outcomes,
            "headers": self.headers,
            "cache_control": self.cache_control,
            "etag": self.etag,
            "decoded_length": self.decoded_length,
        });
        if !self.narrowed.is_empty() {
            row["narrowed"] = json!(self.narrowed);
        }
        if let Some(bytes) = self.body_bytes_max {
            row["body_bytes_max"] = json!(bytes);
        }
        row
    }
}
