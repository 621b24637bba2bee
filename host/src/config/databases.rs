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
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseSource {
    /// A file, or one for each family.
    pub(crate) files: Vec<PathBuf>,
    /// What it is called where it is credited; its type without this.
    pub(crate) title: Option<String>,
    /// The licence that it is credited by.
    pub(crate) license: Option<String>,
}

pub(super) fn check(databases: &BTreeMap<String, DatabaseSource>) -> Result<(), ConfigError> {
    let refused = |value: String, rule: &str| ConfigError::value("ip_databases", value, rule);
    if databases.len() > DATABASES_MAX {
        let value = format!("{} databases", databases.len());
        return Err(refused(value, &format!("at most {DATABASES_MAX}")));
    }
    for (name, DatabaseSource { files, .. }) in databases {
        if Grants::parse([format!("ip-database:{name}")]).is_err() {
            let rule =
                "named with a-z, 0-9, - and _, starting with a letter, as in `ip-database:NAME`";
            return Err(refused(name.clone(), rule));
        }
        if !(1..=FILES_MAX).contains(&files.len()) {
            let value = format!("{name} with {} files", files.len());
            let rule = "one file, or one for IPv4 and one for IPv6";
            return Err(refused(value, rule));
        }
    }
    Ok(())
}
