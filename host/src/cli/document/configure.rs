//! docs/configure.md: flags with their variables, and every setting of the configuration file.

use clap::Command;
use serde_json::{Map, Value};

use super::commands::options;
use super::{columns, heading, row};
use crate::config;

const ABOUT: &str = "\
Flags say where things are; a TOML file, named by `--config`, says how much of everything. All of it is read and checked
before a port is bound, and an unknown key is an error. Settings are read once: a change takes a restart. SIGHUP reads the
plugin manifest and the IP databases again, not this file. `GET /admin/v1/config` prints the settings in effect.";

pub(super) fn page(program: &Command) -> String {
    let mut page = heading("Configuration", "configure", ABOUT);
    page.push_str("\n## Flags of `serve` and `dev`\n");
    if let Some(serve) = program.find_subcommand("serve") {
        page.push_str(&options(serve));
    }
    let schema = config::schema();
    let none = Map::new();
    let tables = schema["properties"].as_object().unwrap_or(&none);
    for (name, table) in tables {
        write_table(&mut page, name, table, &schema);
    }
    page
}

fn write_table(page: &mut String, name: &str, written: &Value, schema: &Value) {
    let table = resolved(written, schema);
    let about = meaning(written).or_else(|| meaning(table));
    page.push_str(&format!(
        "\n## `[{name}]`\n\n{}\n",
        about.unwrap_or_default()
    ));
    let Some(settings) = table["properties"].as_object() else {
        let rows = resolved(&table["additionalProperties"], schema);
        if let Some(members) = rows["properties"].as_object() {
            page.push_str(&columns(&["member", "type", "meaning"]));
            for (member, value) in members {
                let told = meaning(value).unwrap_or_default();
                page.push_str(&row(&[&format!("`{member}`"), &kind(value, schema), &told]));
            }
        }
        return;
    };
    page.push_str(&columns(&["setting", "type", "default", "meaning"]));
    for (setting, value) in settings {
        let default = default_of(setting, value, table, written);
        let told = meaning(value).unwrap_or_default();
        page.push_str(&row(&[
            &format!("`{setting}`"),
            &kind(value, schema),
            &default,
            &told,
        ]));
    }
}

fn meaning(value: &Value) -> Option<String> {
    let text = value["description"].as_str()?;
    Some(text.replace('\n', " "))
}

/// What a reference names.
fn resolved<'s>(value: &'s Value, schema: &'s Value) -> &'s Value {
    let alternatives = value["anyOf"].as_array().into_iter().flatten();
    let reference = std::iter::once(value)
        .chain(alternatives)
        .find_map(|one| one["$ref"].as_str());
    let found = reference.and_then(|name| schema.pointer(name.trim_start_matches('#')));
    found.unwrap_or(value)
}

fn default_of(name: &str, value: &Value, table: &Value, written: &Value) -> String {
    let of_table = written["default"].get(name);
    let found = value.get("default").or(of_table);
    let is_required = table["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|required| required == name));
    match found {
        _ if is_required => "required".to_owned(),
        None | Some(Value::Null) => "none".to_owned(),
        Some(found) => format!("`{found}`"),
    }
}

fn kind(value: &Value, schema: &Value) -> String {
    let value = resolved(value, schema);
    let of = |name: &str| match name {
        "integer" => "whole number".to_owned(),
        "array" => format!("list of {}s", kind(&value["items"], schema)),
        "object" => "table".to_owned(),
        "string" => "text".to_owned(),
        other => other.to_owned(),
    };
    match &value["type"] {
        Value::String(name) => of(name),
        Value::Array(names) => {
            let name = names
                .iter()
                .filter_map(Value::as_str)
                .find(|name| *name != "null");
            name.map(of).unwrap_or_default()
        }
        _ => "text or table".to_owned(),
    }
}
