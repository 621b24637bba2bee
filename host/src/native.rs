//! A native operation on the same road: the yardstick of the benchmarks.
//!
//! It shows what a component costs by serving the same work, with the same description, from a function of this process.
//! No manifest can name one, so no operator can run one by accident.

use crate::catalogue::revision::{CallRunner, Revision};
use crate::contract::description::{Description, DescriptionError};
use crate::contract::grants::Rights;
use crate::contract::operation::{Success, UncheckedAnswer};
use crate::serve::{Service, StartError};

/// A description that cannot be served.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DescriptionFault(#[from] DescriptionError);

/// Serves the operations of `description` (the JSON of a plugin named `name`) with a function that takes an operation's id
/// and its input and gives the JSON text of its data, with the outcome `ok`.
///
/// # Errors
/// The description is not one that a plugin could have, or it collides with what is served.
pub async fn insert(
    service: &Service,
    name: &str,
    description: &str,
    handler: impl Fn(&str, &str) -> String + Send + Sync + 'static,
) -> Result<(), NativeError> {
    let description = Description::read(description, name).map_err(DescriptionFault)?;
    let runner = CallRunner::Native(Box::new(move |call| {
        let data = handler(&call.operation, &call.input);
        UncheckedAnswer::Success(Success {
            outcome: "ok".to_owned(),
            data,
            headers: Vec::new(),
            attachments: 0,
        })
    }));
    let revision = Revision::new(name, 0, "native", description, Rights::default(), runner);
    service
        .registry
        .insert(revision)
        .await
        .map_err(StartError::from)?;
    Ok(())
}

/// Why a native operation is not served.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// The description.
    #[error(transparent)]
    Description(#[from] DescriptionFault),
    /// A collision.
    #[error(transparent)]
    Start(#[from] StartError),
}
