//! Where a command works: through the operator's API while a server runs, on the store otherwise, never both.

use std::path::{Path, PathBuf};

use clap::Args;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::CommandFailure;
use super::client;
use super::client::Payload;
use crate::stores::{Store, StoreError};
use crate::transport::operator::request::RequestError;

/// What all these commands take.
#[derive(Args)]
pub(super) struct CommonArguments {
    /// The data folder [default: .switchbay beside the plugin manifest]
    #[arg(long, env = "SWITCHBAY_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Where the records are.
pub(super) enum RecordsPlace {
    Store(Store),
    /// A server has them; its data folder.
    Server(PathBuf),
}

impl CommonArguments {
    pub(super) fn folder(&self) -> Result<PathBuf, CommandFailure> {
        folder(self.data.as_deref())
    }

    /// Where records are that somebody wrote before.
    pub(super) async fn place(&self) -> Result<RecordsPlace, CommandFailure> {
        self.place_with(false).await
    }

    async fn place_with(&self, creates: bool) -> Result<RecordsPlace, CommandFailure> {
        let data = self.folder()?;
        let opened = if creates {
            Store::open(&data).await
        } else {
            Store::open_existing(&data).await
        };
        match opened {
            Ok(store) => Ok(RecordsPlace::Store(store)),
            Err(StoreError::InUse { .. }) => Ok(RecordsPlace::Server(data)),
            Err(error @ StoreError::Missing { .. }) => {
                Err(CommandFailure::not_found(error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What `of_store` says, or the server that has the store. What is posted with a body adds a record, and makes the store where
    /// there is none yet.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        payload: Payload,
        of_store: impl AsyncFnOnce(&Store) -> Result<Value, RequestError>,
    ) -> Result<Value, CommandFailure> {
        let adds = method == Method::POST && matches!(payload, Payload::Json(_));
        Ok(match self.place_with(adds).await? {
            RecordsPlace::Store(store) => of_store(&store).await?,
            RecordsPlace::Server(data) => client::call(&data, method, path, payload).await?,
        })
    }

    /// Prints an answer: itself where JSON is wanted, and otherwise as `print` does.
    pub(super) fn show(&self, answer: &Value, print: impl FnOnce()) {
        if self.json {
            say!("{answer:#}");
        } else {
            print();
        }
    }
}

/// The data folder that was named, or the one beside the manifest.
pub(super) fn folder(named: Option<&Path>) -> Result<PathBuf, CommandFailure> {
    match named {
        Some(data) => Ok(data.to_owned()),
        None => Ok(crate::config::find_manifest()?.with_file_name(".switchbay")),
    }
}

/// A path of the operator's API with an id in it.
pub(super) fn path(prefix: &str, id: &str, suffix: &str) -> String {
    format!(
        "{prefix}/{}{suffix}",
        utf8_percent_encode(id, NON_ALPHANUMERIC)
    )
}

/// A member that is text, or nothing.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// A member that is a number, or `-`.
pub(super) fn number(value: &Value, name: &str) -> String {
    value[name]
        .as_u64()
        .map_or("-".to_owned(), |number| number.to_string())
}
