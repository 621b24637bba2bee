//! Compiled code that one service leaves to others: the files, and their digests in the store of whoever is to load them.

use std::path::Path;
use std::process::Command;

use redb::{Database, TableDefinition};
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// Component and engine → the digest of the compiled code, as the store keeps it: texts that end with 0 and 1, and a record in
/// JSON after a byte that says that there is nothing else.
const CODES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("component.code");

/// Puts compiled code into a data folder that no server runs on yet, as if that had compiled it.
pub(crate) fn lend_compiled(compiled: &Path, data: &Path) {
    let copied = Command::new("cp")
        .arg("-r")
        .arg(compiled)
        .arg(data)
        .status()
        .expect("cp runs");
    assert!(copied.success());
    let store = Database::create(data.join("switchbay.redb")).expect("a store");
    let transaction = store.begin_write().expect("a transaction");
    {
        let mut table = transaction.open_table(CODES).expect("a table");
        for engine in folder(&data.join("compiled")) {
            for code in folder(&engine)
                .iter()
                .filter(|file| file.extension().is_some_and(|end| end == "cwasm"))
            {
                let digest: [u8; 32] =
                    Sha256::digest(std::fs::read(code).expect("it is read")).into();
                let named = |path: &Path| {
                    path.file_stem()
                        .expect("a name")
                        .to_string_lossy()
                        .into_owned()
                };
                let (engine, component) = (named(&engine), named(code));
                let key = format!("{component}\0\x01{engine}\0\x01");
                let record = json!({ "component": component, "engine": engine, "code": digest });
                let value = format!("\0{record}");
                table
                    .insert(key.as_bytes(), value.as_bytes())
                    .expect("it is kept");
            }
        }
    }
    transaction.commit().expect("it is kept");
}

fn folder(path: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(path)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect()
}
