//! A service with the guest whose operations differ in what a call takes, and accounts and keys for it.

use std::sync::{Arc, OnceLock};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Answer, Options, Post, Service, operator, workspace};

/// The service, which subjects without settings of their own share.
pub(crate) struct Metered {
    pub(crate) service: Service,
}

impl Metered {
    pub(crate) async fn shared() -> &'static Self {
        static SHARED: OnceLock<tokio::sync::OnceCell<Metered>> = OnceLock::new();
        SHARED
            .get_or_init(tokio::sync::OnceCell::new)
            .get_or_init(|| Self::start("", None))
            .await
    }

    /// A service of its own, with this configuration and perhaps the data folder of an earlier one.
    pub(crate) async fn start(config: &str, data: Option<Arc<TempDir>>) -> Self {
        let manifest = Some(workspace().join("tests/programs/metered.toml"));
        let service = Service::start(Options {
            config: config.to_owned(),
            manifest,
            data,
            ..Options::default()
        })
        .await;
        Self { service }
    }

    /// Asks the service to stop, waits for its end, and gives back its data folder.
    pub(crate) fn stop(self) -> Arc<TempDir> {
        self.service.stop();
        self.into_data()
    }

    /// The data folder of a service that was killed.
    pub(crate) fn into_data(self) -> Arc<TempDir> {
        Arc::clone(&self.service.data)
    }

    /// Opens an account; gives back its id.
    pub(crate) async fn account(&self, mut request: Value) -> String {
        request["label"] = json!("test");
        let opened = operator(&self.service, Method::POST, "/admin/v1/accounts", &request).await;
        assert_eq!(opened.status, 201, "{opened:?}");
        opened.json()["data"]["id"]
            .as_str()
            .expect("an id")
            .to_owned()
    }

    /// Issues a key with all scopes.
    pub(crate) async fn key(&self, mut request: Value) -> String {
        (request["label"], request["scopes"]) = (json!("test"), json!(["*"]));
        let issued = operator(&self.service, Method::POST, "/admin/v1/keys", &request).await;
        assert_eq!(issued.status, 201, "{issued:?}");
        issued.json()["data"]["key"]
            .as_str()
            .expect("a key")
            .to_owned()
    }

    /// Calls an operation over REST with more headers.
    pub(crate) async fn rest(
        &self,
        key: &str,
        operation: &str,
        input: &Value,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = self
            .service
            .bare(Method::POST, &format!("/api/v1/test/{operation}"))
            .bearer_auth(key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Service::send(request.json(input)).await
    }

    /// Calls an operation as a tool.
    pub(crate) async fn tool(&self, key: &str, operation: &str, input: &Value) -> Answer {
        Post::call(&format!("call_{operation}"), input)
            .bearer(key)
            .send(&self.service)
            .await
    }
}
