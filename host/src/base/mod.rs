//! What any room may use: clocks, tasks, strict reading, limits of rates and stocks, addresses. Knows nothing of what the host
//! is for.

pub(crate) mod address;
pub(crate) mod clock;
pub(crate) mod entity_tag;
pub(crate) mod folder_watch;
pub(crate) mod json;
pub(crate) mod line_rate;
pub(crate) mod media_type;
pub(crate) mod shared_stock;
pub(crate) mod tasks;
pub(crate) mod token_bucket;
pub(crate) mod toml;
