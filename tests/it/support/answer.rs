//! One HTTP answer, whole.

use std::fmt;

use reqwest::header::HeaderMap;
use serde_json::Value;

/// Status, headers and body of an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {:?} {}",
            self.status,
            self.headers,
            String::from_utf8_lossy(&self.bytes)
        )
    }
}

impl Answer {
    pub(crate) async fn read(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.expect("the body arrives").to_vec();
        Self {
            status,
            headers,
            bytes,
        }
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| {
            panic!(
                "no JSON ({error}): {}",
                String::from_utf8_lossy(&self.bytes)
            )
        })
    }

    /// A header that must be there, as text.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .unwrap_or_else(|| panic!("no header {name} in {:?}", self.headers))
            .to_str()
            .expect("the header is text")
    }

    /// Status and error code of a refusal, with its envelope checked: the request id in the header and in the body agree,
    /// it has no other members than the contract's, and no cache may keep it.
    pub(crate) fn refusal(&self) -> (u16, String) {
        let body = self.json();
        assert_eq!(body["success"], false, "{body}");
        assert_eq!(
            body["data"]["requestId"],
            self.header("x-request-id"),
            "{body}"
        );
        assert!(
            body["error"]["message"]
                .as_str()
                .is_some_and(|message| !message.is_empty()),
            "{body}"
        );
        let members = |value: &Value| value.as_object().map_or(0, serde_json::Map::len);
        assert_eq!((members(&body), members(&body["error"])), (3, 2), "{body}");
        assert_eq!(self.header("content-type"), "application/json", "{body}");
        assert_eq!(self.header("cache-control"), "private, no-store", "{body}");
        (
            self.status,
            body["error"]["code"].as_str().expect("a code").to_owned(),
        )
    }
}

/// The names of an object's members, in their order.
pub(crate) fn members(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap_or_else(|| panic!("{value} is no object"))
        .keys()
        .map(String::as_str)
        .collect()
}
