//! Compiled code that one service leaves to others: the files, and their digests in the store of whoever is to load them.

use std::path::Path;
use std::process::Command;

use redb::{Database, TableDefinition};
use sha2::{Digest as _, Sha256};

/// Engine and component → the digest of the compiled code, as the store keeps it.
const CODES: TableDefinition<'_, (&str, &str), [u8; 32]> = TableDefinition::new("compiled-code");

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
                table
                    .insert((&*named(&engine), &*named(code)), digest)
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
