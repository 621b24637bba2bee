//! `[ip_databases]`: which files stand behind the names of IP databases.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::ConfigError;
use crate::ip_databases::Source;

/// The most databases that are named.
const DATABASES_MAX: usize = 32;
/// The most files of one database.
const FILES_MAX: usize = 2;
/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenIpDatabase {
    /// A file, or one for each family.
    files: Vec<PathBuf>,
    /// What it is called where it is credited; its type without this.
    title: Option<String>,
    /// The licence that it is credited by.
    license: Option<String>,
}

pub(super) fn databases(written: BTreeMap<String, WrittenIpDatabase>) -> Result<BTreeMap<String, Source>, ConfigError> {
    let refused = |value: String, rule: String| ConfigError::Value { name: "ip_databases", value, rule };
    if written.len() > DATABASES_MAX {
        return Err(refused(format!("{} databases", written.len()), format!("at most {DATABASES_MAX}")));
    }
    let mut all = BTreeMap::new();
    for (name, WrittenIpDatabase { files, title, license }) in written {
        if !is_name(&name) {
            let rule = format!("by names of a-z, 0-9, - and _, a letter first, of at most {NAME_BYTES_MAX} bytes");
            return Err(refused(name, rule));
        }
        if !(1..=FILES_MAX).contains(&files.len()) {
            let value = format!("{name} with {} files", files.len());
            return Err(refused(value, "one file each, or one for IPv4 and one for IPv6".to_owned()));
        }
        all.insert(name, Source { title, license, files });
    }
    Ok(all)
}

/// As in an atom.
fn is_name(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
}
