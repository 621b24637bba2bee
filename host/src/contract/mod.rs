//! What a plugin says and may: its description, its operations and their schemas, the terms of a call, and what an operator
//! grants. Values that are read and checked here and only carried elsewhere. Knows no component, no store and no transport.

pub(crate) mod description;
pub(crate) mod error;
pub(crate) mod faces;
pub(crate) mod feature_call;
pub(crate) mod grants;
pub(crate) mod manifest;
pub(crate) mod operation;
mod pattern;
pub(crate) mod profile;
pub(crate) mod request_headers;
pub(crate) mod schema;
pub(crate) mod secret_binding;
pub(crate) mod tenant;
mod terms;
