//! The invariants of the code itself, as `host/src/lib.rs` states them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::workspace;

mod measures;
mod rooms;

const LINES_MAX: usize = 500;

struct File {
    /// From the project's root.
    path: String,
    text: String,
}

/// All Rust files below a folder.
fn files(folder: &str) -> Vec<File> {
    let mut found = Vec::new();
    let mut folders = vec![workspace().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                let path = path
                    .strip_prefix(workspace())
                    .expect("below the root")
                    .display()
                    .to_string();
                found.push(File { path, text });
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has no Rust files");
    found
}

fn all() -> Vec<File> {
    ["host/src", "toolchain", "sdk/src", "plugins", "tests"]
        .into_iter()
        .flat_map(files)
        .collect()
}

/// No line of the files matches, but in the rooms that may.
fn only_in(files: &[File], rooms: &[&str], what: &str, matches: impl Fn(&str) -> bool) {
    for file in files
        .iter()
        .filter(|file| !rooms.iter().any(|room| file.path.starts_with(room)))
    {
        for (number, line) in file.text.lines().enumerate() {
            assert!(
                !matches(line),
                "{}:{}: {what} stands outside {rooms:?}: {line}",
                file.path,
                number + 1
            );
        }
    }
}

fn folders(path: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(workspace().join(path)).expect("the folder");
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|p| p.is_dir())
        .collect();
    folders.sort();
    folders
}

fn name(path: &Path) -> String {
    path.file_name()
        .and_then(|name| name.to_str())
        .expect("a name")
        .to_owned()
}

#[test]
fn every_file_opens_with_its_purpose_and_is_short() {
    for file in all() {
        assert!(
            file.text.starts_with("//!"),
            "{} does not open with `//!`",
            file.path
        );
        let lines = file.text.lines().count();
        assert!(
            lines <= LINES_MAX,
            "{} has {lines} lines; at most {LINES_MAX} are readable",
            file.path
        );
    }
}

/// Types that share their name with another of their crate.
const SHARED_NAMES: [(&str, &str); 1] = [
    // Of the cache and of the state: authors write `cache::Entry` and `state::Entry`.
    ("sdk/src", "Entry"),
];

/// The name that a line defines a type by, outside of all blocks.
fn defined_type(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let (kind, rest) = line.split_once(' ')?;
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    ["struct", "enum", "trait", "type", "union"]
        .contains(&kind)
        .then_some(&rest[..end])
}

#[test]
fn a_type_has_a_name_of_its_own() {
    let plugins = folders("plugins")
        .into_iter()
        .map(|folder| format!("plugins/{}/src", name(&folder)));
    for folder in ["host/src".to_owned(), "sdk/src".to_owned()]
        .into_iter()
        .chain(plugins)
    {
        let mut defined = BTreeMap::new();
        for file in files(&folder) {
            for name in file.text.lines().filter_map(defined_type) {
                let is_shared = SHARED_NAMES.contains(&(&*folder, name));
                let other = defined
                    .insert(name.to_owned(), file.path.clone())
                    .filter(|_| !is_shared);
                assert_eq!(other, None, "{} defines `{name}` too", file.path);
            }
        }
        assert!(!defined.is_empty(), "{folder} defines no type");
    }
}

#[test]
fn the_host_names_no_plugin() {
    let host = files("host/src");
    for plugin in folders("plugins").iter().map(|folder| name(folder)) {
        let literal = format!("\"{plugin}\"");
        only_in(&host, &[], "a plugin's name", |line| {
            line.contains(&literal)
        });
    }
}

/// Libraries that one part of the house knows, and where.
const LIBRARIES: [(&str, &[&str]); 8] = [
    // The command line's client speaks to the operator's listener.
    (
        "hyper",
        &[
            "host/src/transport/",
            "host/src/egress/",
            "host/src/cli/client.rs",
        ],
    ),
    ("rustls", &["host/src/egress/"]),
    ("hickory_resolver", &["host/src/egress/"]),
    ("wasmtime", &["host/src/runtime/"]),
    ("wasmtime_wasi", &["host/src/runtime/"]),
    ("reqwest", &["host/src/egress/"]),
    ("redb", &["host/src/stores/"]),
    ("maxminddb", &["host/src/lookup/"]),
];

#[test]
fn libraries_stay_in_their_rooms() {
    let host = files("host/src");
    for (library, rooms) in LIBRARIES {
        let path = format!("{library}::");
        only_in(&host, rooms, library, |line| {
            line.contains(&path) && !line.trim_start().starts_with("//")
        });
    }
    let dials = |line: &str| line.contains("TcpStream::connect") || line.contains("legacy::Client");
    let rooms = ["host/src/egress/", "host/src/cli/client.rs"];
    only_in(&host, &rooms, "a connection outwards", dials);
    let environment = |line: &str| line.contains("env::var");
    let rooms = ["host/src/config/", "host/src/cli/build.rs"];
    only_in(&host, &rooms, "the environment", environment);
}

#[test]
fn the_pipeline_alone_invokes_plugins() {
    let rooms = [
        "host/src/pipeline/",
        "host/src/catalogue/revision.rs",
        "host/src/runtime/",
    ];
    only_in(&files("host/src"), &rooms, "a call of a plugin", |line| {
        line.contains(".invoke(")
    });
}

#[test]
fn status_numbers_stand_in_the_transports_their_description_and_the_table() {
    let numbers = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        code.contains("StatusCode::")
            && code
                .split("StatusCode::")
                .skip(1)
                .any(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    };
    let rooms = [
        "host/src/contract/error.rs",
        "host/src/published/openapi/",
        "host/src/transport/",
        "host/src/egress/proxy/",
    ];
    only_in(&files("host/src"), &rooms, "a status", numbers);
}

/// A package of `wit/deps` has a folder, and each later version of it one that ends with its number.
#[test]
fn an_interface_and_its_capability_have_one_name() {
    let packages: BTreeSet<String> = folders("wit/deps")
        .iter()
        .map(|folder| {
            let name = name(folder);
            let is_version =
                |(_, end): &(&str, &str)| end.starts_with(|c: char| c.is_ascii_digit());
            match name.rsplit_once('-').filter(is_version) {
                Some((package, _)) => package.to_owned(),
                None => name,
            }
        })
        .filter(|package| package != "plugin")
        .collect();
    let capabilities = workspace().join("host/src/runtime/capabilities");
    for package in &packages {
        let file = package.replace('-', "_");
        assert!(
            capabilities.join(format!("{file}.rs")).is_file()
                || capabilities.join(&file).join("mod.rs").is_file(),
            "wit/deps/{package} has no host/src/runtime/capabilities/{file}"
        );
    }
    let entries = std::fs::read_dir(&capabilities).expect("a folder");
    for entry in entries {
        let file = entry.expect("an entry").file_name();
        let file = file.to_string_lossy();
        let stem = file.trim_end_matches(".rs").replace('_', "-");
        let known = stem == "mod" || stem == "instance" || packages.contains(&stem);
        assert!(known, "{file} has no wit/deps/{stem}");
    }
}

#[test]
fn every_plugin_is_served_and_tested() {
    let manifest =
        std::fs::read_to_string(workspace().join("plugin-manifest.toml")).expect("the manifest");
    for plugin in folders("plugins").iter().map(|folder| name(folder)) {
        assert!(
            manifest.contains(&format!("source = \"plugins/{plugin}\"")),
            "{plugin} has no manifest entry"
        );
        let tests = workspace().join(format!("tests/it/{}.rs", plugin.replace('-', "_")));
        assert!(tests.is_file(), "{plugin} has no {}", tests.display());
    }
}

#[test]
fn nothing_is_left_undone() {
    let marks = [
        "todo!(",
        "unimplemented!(",
        "#[ignore",
        "allow(dead_code",
        "FIXME",
        "#[should_panic",
    ];
    let files: Vec<File> = all()
        .into_iter()
        .filter(|file| file.path != "tests/it/tidy.rs")
        .collect();
    for mark in marks {
        only_in(&files, &[], "a mark of unfinished work", |line| {
            line.contains(mark)
        });
    }
}
