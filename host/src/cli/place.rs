//! Where a command works: through the operator's API while a server runs, on the store otherwise, never both.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{CommandFailure, client};
use crate::stores::{Store, StoreError};
use crate::transport::operator::endpoint::{Endpoint, EndpointRequest, Enveloped};
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

impl CommonArguments {
    fn folder(&self) -> Result<PathBuf, CommandFailure> {
        folder(self.data.as_deref())
    }

    /// What `of_store` says of records that somebody wrote before, or the server that has the store.
    pub(super) async fn ask<E, T, const STATUS: u16>(
        &self,
        request: EndpointRequest<E>,
        of_store: impl AsyncFnOnce(&Arc<Store>, EndpointRequest<E>) -> Result<T, RequestError>,
    ) -> Result<T, CommandFailure>
    where
        E: Endpoint<Answer = Enveloped<T, STATUS>>,
        T: DeserializeOwned,
    {
        self.ask_with(false, request, of_store).await
    }

    /// The same of a request that adds a record: it makes the store where there is none yet.
    pub(super) async fn add<E, T, const STATUS: u16>(
        &self,
        request: EndpointRequest<E>,
        of_store: impl AsyncFnOnce(&Arc<Store>, EndpointRequest<E>) -> Result<T, RequestError>,
    ) -> Result<T, CommandFailure>
    where
        E: Endpoint<Answer = Enveloped<T, STATUS>>,
        T: DeserializeOwned,
    {
        self.ask_with(true, request, of_store).await
    }

    async fn ask_with<E, T, const STATUS: u16>(
        &self,
        makes_store: bool,
        request: EndpointRequest<E>,
        of_store: impl AsyncFnOnce(&Arc<Store>, EndpointRequest<E>) -> Result<T, RequestError>,
    ) -> Result<T, CommandFailure>
    where
        E: Endpoint<Answer = Enveloped<T, STATUS>>,
        T: DeserializeOwned,
    {
        let data = self.folder()?;
        let opened = if makes_store {
            Store::open(&data).await
        } else {
            Store::open_existing(&data).await
        };
        match opened {
            Ok(store) => Ok(of_store(&Arc::new(store), request).await?),
            Err(StoreError::InUse { .. }) => Ok(client::call(&data, request).await?),
            Err(error @ StoreError::Missing { .. }) => {
                Err(CommandFailure::not_found(error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What a server says.
    pub(super) async fn ask_server<E, T, const STATUS: u16>(
        &self,
        request: EndpointRequest<E>,
    ) -> Result<T, CommandFailure>
    where
        E: Endpoint<Answer = Enveloped<T, STATUS>>,
        T: DeserializeOwned,
    {
        Ok(client::call(&self.folder()?, request).await?)
    }

    /// Prints an answer: itself where JSON is wanted, and otherwise as `print` does.
    pub(super) fn show(&self, answer: &impl Serialize, print: impl FnOnce()) {
        if self.json {
            say!("{:#}", json!(answer));
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

/// A value as a cell of a table has it; `-` where there is none.
pub(super) fn cell(value: Option<impl Display>) -> String {
    value.map_or("-".to_owned(), |number| number.to_string())
}
