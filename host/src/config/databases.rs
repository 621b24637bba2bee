//! `[ip_databases]`: which files stand behind the names of IP databases.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::contract::grants::Grants;

/// The most databases that are named.
const DATABASES_MAX: usize = 32;
/// The most files of one database.
const FILES_MAX: usize = 2;

/// Where a database is, and how it is credited.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseSource {
    /// What it is called; its type where this is not said.
    pub(crate) title: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenIpDatabase {
    /// A file, or one for each family.
    files: Vec<PathBuf>,
    /// What it is called where it is credited; its type without this.
    title: Option<String>,
    /// The licence that it is credited by.
    license: Option<String>,
}

pub(super) fn databases(
    written: BTreeMap<String, WrittenIpDatabase>,
) -> Result<BTreeMap<String, DatabaseSource>, ConfigError> {
    let refused = |value: String, rule: &str| ConfigError::value("ip_databases", value, rule);
    if written.len() > DATABASES_MAX {
        let value = format!("{} databases", written.len());
        return Err(refused(value, &format!("at most {DATABASES_MAX}")));
    }
    let mut all = BTreeMap::new();
    for (name, database) in written {
        let files = database.files;
        if Grants::parse([format!("ip-database:{name}")]).is_err() {
            let rule =
                "named with a-z, 0-9, - and _, starting with a letter, as in `ip-database:NAME`";
            return Err(refused(name, rule));
        }
        if !(1..=FILES_MAX).contains(&files.len()) {
            let value = format!("{name} with {} files", files.len());
            let rule = "one file, or one for IPv4 and one for IPv6";
            return Err(refused(value, rule));
        }
        let (title, license) = (database.title, database.license);
        let source = DatabaseSource {
            title,
            license,
            files,
        };
        all.insert(name, source);
    }
    Ok(all)
}
