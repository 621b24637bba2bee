//! A guest that keeps what the caller tells it to, in memory and on disk, and tells what came of it.

mod cache;
mod records;

use switchbay_sdk::{Operation, Plugin, Rest};

fn plugin() -> Plugin {
    Plugin::new("keeps", "0.1.0", "Keeps what it is told to")
        .wants("cache:8MiB", "to keep what it is told to, for a while")
        .wants("state:64KiB", "to keep what it is told to, for good")
        .operation(
            Operation::new("cache", cache::run)
                .title("Cache")
                .description("Uses the plugin's cache as the caller says.")
                .rest(Rest::post("/api/v1/test/keeps/cache", "test:keeps")),
        )
        .operation(
            Operation::new("records", records::run)
                .title("Records")
                .description("Uses the plugin's records as the caller says.")
                .rest(Rest::post("/api/v1/test/keeps/records", "test:keeps")),
        )
}

switchbay_sdk::export!(plugin);
