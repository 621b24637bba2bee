//! A POST to `/mcp`: a message with the headers of its era, and its answer in one line.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Answer, Service};

/// The version whose requests carry their own metadata.
pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What is sent; without a credential unless one is added.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Post {
    /// Any text, with the two headers that every POST needs.
    pub(crate) fn raw(body: impl Into<String>) -> Self {
        let headers = vec![
            ("accept", "application/json, text/event-stream".to_owned()),
            ("content-type", "application/json".to_owned()),
        ];
        Self {
            path: "/mcp".to_owned(),
            headers,
            body: body.into(),
        }
    }

    /// A request of one of the versions with `initialize`.
    pub(crate) fn legacy(version: &str, method: &str, params: Value) -> Self {
        Self::raw(request(method, params).to_string()).header("mcp-protocol-version", version)
    }

    /// A request of any of the four versions.
    pub(crate) fn of(version: &str, method: &str, params: Value) -> Self {
        match version {
            MODERN => Self::modern(method, params),
            _ => Self::legacy(version, method, params),
        }
    }

    /// A call of a tool, of 2025-11-25.
    pub(crate) fn call(tool: &str, arguments: &Value) -> Self {
        Self::legacy(
            "2025-11-25",
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// A request of 2026-07-28 with its metadata and headers.
    pub(crate) fn modern(method: &str, mut params: Value) -> Self {
        params["_meta"] = json!({ META_VERSION: MODERN, META_CAPABILITIES: {} });
        let named = match method {
            "tools/call" | "prompts/get" => params["name"].as_str().map(str::to_owned),
            "resources/read" => params["uri"].as_str().map(str::to_owned),
            _ => None,
        };
        let post = Self::raw(request(method, params).to_string())
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", method);
        match named {
            Some(name) => post.header("mcp-name", &name),
            None => post,
        }
    }

    /// Sets a header, in the place of one that is there.
    pub(crate) fn header(self, name: &'static str, value: &str) -> Self {
        self.without(name).repeated(name, value)
    }

    /// Sends a header once more.
    pub(crate) fn repeated(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    pub(crate) fn bearer(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    /// Sends it to another path, or with a query.
    pub(crate) fn to(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub(crate) async fn send(&self, service: &Service) -> Answer {
        let mut request = service
            .bare(Method::POST, &self.path)
            .body(self.body.clone());
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        Service::send(request).await
    }

    /// Sends it to the shared service and compares the line.
    pub(crate) async fn check(&self, expected: &str) {
        let answer = self.send(Service::shared()).await;
        let body = String::from_utf8_lossy(&answer.bytes);
        assert_eq!(outcome(&answer), expected, "{self:?} was answered {body}");
    }
}

/// A request with the id 7.
pub(crate) fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// An answer in one line: `202`, `200 result`, `200 isError VALIDATION_ERROR`, `400 -32600`, `401 401`; `#7` follows where the
/// id came back. What no answer may be fails here.
pub(crate) fn outcome(answer: &Answer) -> String {
    let status = answer.status;
    assert!(
        answer.headers.get("mcp-session-id").is_none(),
        "the server keeps no sessions: {answer:?}"
    );
    if answer.bytes.is_empty() {
        assert!(answer.headers.get("content-type").is_none(), "{answer:?}");
        return status.to_string();
    }
    assert_eq!(answer.header("content-type"), "application/json");
    let message = answer.json();
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let code = &message["error"]["code"];
    let line = match (message.get("result"), message.get("error")) {
        (Some(result), None) if result["isError"] == true => {
            format!("{status} isError {}", failure(result).0)
        }
        (Some(_), None) => format!("{status} result"),
        (None, Some(error)) => {
            assert!(
                error["message"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{message}"
            );
            format!("{status} {code}")
        }
        _ => panic!("neither a result nor an error: {message}"),
    };
    match message.get("id") {
        Some(id) => format!("{line} #{id}"),
        None => line,
    }
}

/// The code of a failed call, and its envelope; the form of the result is checked.
pub(crate) fn failure(result: &Value) -> (String, Value) {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "{result}");
    let blocks = result["content"].as_array().expect("content");
    assert_eq!(
        (blocks.len(), &blocks[0]["type"]),
        (1, &json!("text")),
        "{result}"
    );
    let text = blocks[0]["text"].as_str().expect("text");
    let envelope: Value = serde_json::from_str(text).expect("the text is JSON");
    assert_eq!(envelope.to_string(), text, "the text is compact");
    assert_eq!(envelope["success"], false, "{envelope}");
    (
        envelope["error"]["code"]
            .as_str()
            .expect("a code")
            .to_owned(),
        envelope,
    )
}
