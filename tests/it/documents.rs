//! The documents: what is made from the code is as the code makes it, links lead somewhere, and commands and settings exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::workspace;

/// A Markdown file of the project, by its path from the root.
struct Document {
    path: PathBuf,
    text: String,
}

/// All that people read: at the root, in `docs/`, and of each plugin.
fn documents() -> Vec<Document> {
    let plugins = std::fs::read_dir(workspace().join("plugins")).expect("the plugins");
    let plugins = plugins.map(|entry| entry.expect("an entry").path());
    let folders = [workspace().to_owned(), workspace().join("docs")];
    let mut found = Vec::new();
    for folder in folders.into_iter().chain(plugins) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(&path).expect("text");
                found.push(Document { path, text });
            }
        }
    }
    assert!(found.len() > 10, "{} documents", found.len());
    found
}

fn read(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).expect("the page")
}

/// The text without what stands in fences, and each fence with its language.
fn fences(text: &str) -> (String, Vec<(String, String)>) {
    let (mut prose, mut fences, mut open) = (String::new(), Vec::new(), None::<(String, String)>);
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => fences.extend(open.take()),
            (None, Some((_, code))) => code.extend([line, "\n"]),
            (None, None) => prose.extend([line, "\n"]),
        }
    }
    (prose, fences)
}

/// The anchor that a heading has where the documents are read.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let (prose, _) = fences(text);
    prose
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(anchor)
        .collect()
}

#[test]
fn the_reference_pages_are_as_the_code_makes_them() {
    for page in ["configure", "commands", "endpoints"] {
        let made = Command::new(env!("CARGO_BIN_EXE_switchbay"))
            .args(["document", page])
            .env_clear()
            .output()
            .expect("the program");
        let made = String::from_utf8(made.stdout).expect("text");
        assert!(
            made == read(&format!("docs/{page}.md")),
            "docs/{page}.md is not what the code says: run `cargo run -- document {page} > docs/{page}.md`"
        );
    }
}

#[test]
fn a_reader_that_went_away_ends_a_command_without_a_word() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let done = Command::new(env!("CARGO_BIN_EXE_switchbay"))
        .args(["document", "commands"])
        .stdout(writer)
        .output()
        .expect("the program");
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}

#[test]
fn every_link_leads_somewhere() {
    for document in documents() {
        let (prose, _) = fences(&document.text);
        for link in prose.split("](").skip(1) {
            let target = link.split(')').next().unwrap_or_default();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = document.path.parent().expect("a folder");
            let file = if path.is_empty() {
                document.path.clone()
            } else {
                folder.join(path)
            };
            let shown = document.path.display();
            assert!(file.exists(), "{shown}: {target} leads nowhere");
            if !heading.is_empty() {
                let text = std::fs::read_to_string(&file).expect("text");
                assert!(
                    anchors(&text).contains(heading),
                    "{shown}: {target} names no heading"
                );
            }
        }
    }
}

/// The lines that a shell would run, put together where they are broken.
fn shell_lines(document: &Document) -> Vec<String> {
    let (_, fences) = fences(&document.text);
    // What a person typed stands behind a `$` where the answer stands too.
    let shells = fences.into_iter().map(|(language, code)| {
        let lines = code.lines().filter_map(|line| line.strip_prefix("$ "));
        match language.as_str() {
            "sh" => code.clone(),
            "console" => lines.collect::<Vec<_>>().join("\n"),
            _ => String::new(),
        }
    });
    let joined = shells.map(|code| code.replace("\\\n", " "));
    joined
        .flat_map(|code| code.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// The words of a `switchbay` command in a line of a shell.
fn command_words(line: &str) -> Option<Vec<&str>> {
    let line = line
        .split(" #")
        .next()?
        .split('|')
        .next()?
        .split('>')
        .next()?;
    let mut words = line
        .split_whitespace()
        .skip_while(|word| word.contains('=') || *word == "sudo");
    let first = words.next()?;
    let rest: Vec<&str> = words.collect();
    match (first, rest.as_slice()) {
        ("cargo", ["run", "--", words @ ..]) => Some(words.to_vec()),
        (program, _) if program == "switchbay" || program.ends_with("/switchbay") => Some(rest),
        _ => None,
    }
}

/// The heading and the text below it of the longest command that words begin with.
fn command_of<'c>(words: &[&str], commands: &'c str) -> Option<&'c str> {
    let lengths = (1..=words.len().min(3)).rev();
    lengths.into_iter().find_map(|length| {
        let heading = format!("## `switchbay {}`\n", words[..length].join(" "));
        let rest = commands.split_once(&heading)?.1;
        rest.split("\n## ").next()
    })
}

#[test]
fn every_command_in_the_documents_exists() {
    let (commands, mut found) = (read("docs/commands.md"), 0);
    for document in documents() {
        for line in shell_lines(&document) {
            let Some(words) = command_words(&line) else {
                continue;
            };
            let (shown, begins) = (
                document.path.display(),
                words.first().copied().unwrap_or_default(),
            );
            if begins.is_empty()
                || begins.starts_with('-')
                || ["document", "help"].contains(&begins)
            {
                continue;
            }
            let told = command_of(&words, &commands);
            let told = told.unwrap_or_else(|| panic!("{shown}: `{line}` is no command"));
            for flag in words
                .iter()
                .filter(|word| word.starts_with("--") && word.len() > 2)
            {
                let name = flag.split('=').next().unwrap_or(flag);
                let is_known = [" ", "`"]
                    .iter()
                    .any(|end| told.contains(&format!("`{name}{end}")));
                assert!(
                    is_known || name == "--help",
                    "{shown}: `{line}`: `{name}` is no flag of it"
                );
            }
            found += 1;
        }
    }
    assert!(found > 20, "{found} commands");
}

/// What the configuration's page says of a table.
fn section<'s>(settings: &'s str, table: &str) -> Option<&'s str> {
    let rest = settings.split_once(&format!("## `[{table}]`\n"))?.1;
    rest.split("\n## ").next()
}

#[test]
fn every_setting_in_the_documents_exists() {
    let (settings, mut found) = (read("docs/configure.md"), 0);
    for document in documents()
        .iter()
        .filter(|document| !is_made(&document.path))
    {
        let shown = document.path.display();
        let (prose, fences) = fences(&document.text);
        let mut named: Vec<(String, String)> = Vec::new();
        for (_, code) in fences.iter().filter(|(language, _)| language == "toml") {
            let table: toml::Table = code
                .parse()
                .unwrap_or_else(|error| panic!("{shown}: {error}"));
            for (name, value) in &table {
                let keys = value.as_table().into_iter().flat_map(|table| table.keys());
                named.extend(keys.map(|key| (name.clone(), key.clone())));
            }
        }
        let code = prose.split('`').skip(1).step_by(2);
        let dotted = code.filter_map(|code| code.split_once('.'));
        named.extend(dotted.map(|(table, key)| (table.to_owned(), key.to_owned())));
        for (table, key) in named {
            let is_name =
                !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            let Some(section) =
                section(&settings, &table).filter(|_| is_name && table != "ip_databases")
            else {
                continue;
            };
            assert!(
                section.contains(&format!("| `{key}` |")),
                "{shown}: `{table}.{key}` is not a setting"
            );
            found += 1;
        }
    }
    assert!(found > 10, "{found} settings");
}

fn is_made(path: &Path) -> bool {
    ["configure.md", "commands.md", "endpoints.md"]
        .iter()
        .any(|name| path.ends_with(name))
}

#[test]
fn the_readme_is_read_at_a_sitting() {
    let readme = read("README.md");
    let lines = readme.lines().count();
    assert!(
        lines <= 120,
        "README.md has {lines} lines; at most 120 are read"
    );
    assert_eq!(readme.matches("```mermaid").count(), 1, "one picture");
}

/// The names in code of a Markdown text, such as `Refusal`, that could be types.
fn type_names(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split('`').skip(1).step_by(2);
    names.filter(|name| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(char::is_alphanumeric)
    })
}

/// The Rust code below some folders of the workspace, file by file.
fn sources(folders: &[&str]) -> Vec<(PathBuf, String)> {
    let mut folders: Vec<_> = folders.iter().map(|name| workspace().join(name)).collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                found.push((path, text));
            }
        }
    }
    found
}

#[test]
fn every_type_of_the_glossary_exists() {
    let sources: String = sources(&["host/src"])
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let glossary = read("docs/glossary.md");
    let names: Vec<&str> = type_names(&glossary).collect();
    assert!(names.len() > 30, "{} types", names.len());
    for name in names {
        let is_defined = ["struct", "enum"].iter().any(|kind| {
            let definition = format!("{kind} {name}");
            let rest = sources.split(&definition).skip(1);
            rest.map(|rest| rest.chars().next())
                .any(|next| next.is_some_and(|c| !c.is_alphanumeric()))
        });
        assert!(
            is_defined,
            "docs/glossary.md names `{name}`, which is no type of the host"
        );
    }
}

/// The comments of a file as one text, so that a citation may run over the end of a line.
fn comments(source: &str) -> String {
    let lines = source.lines().map(str::trim_start);
    let lines = lines.filter_map(|line| line.strip_prefix("//"));
    let lines = lines.map(|line| line.trim_start_matches(['/', '!']).trim());
    lines.collect::<Vec<_>>().join(" ")
}

#[test]
fn comments_cite_headings_that_exist() {
    let citation = regex_lite::Regex::new(r#"(docs/[a-z-]+\.md), "([^"]+)""#).expect("a pattern");
    let mut cited = 0;
    for (path, source) in sources(&["host/src", "plugins", "sdk/src", "tests/it"]) {
        for found in citation.captures_iter(&comments(&source)) {
            let text = read(&found[1]);
            let headings = text.lines().filter(|line| line.starts_with('#'));
            let mut titles = headings.map(|line| line.trim_start_matches('#').trim());
            assert!(
                titles.any(|title| title.split(": `").next() == Some(&found[2])),
                "{} cites {}, which has no heading {:?}",
                path.display(),
                &found[1],
                &found[2]
            );
            cited += 1;
        }
    }
    assert!(cited > 20, "{cited} citations");
}

#[test]
fn log_lines_that_are_worth_an_alert_exist() {
    let operate = read("docs/operate.md");
    let (_, alerts) = operate
        .split_once("**Log lines** worth an alert")
        .expect("the log lines");
    let (alerts, _) = alerts.split_once("\n\n").expect("they end");
    let lines: Vec<&str> = alerts.split('`').skip(1).step_by(2).collect();
    assert!(lines.len() > 3, "{lines:?}");
    let sources: String = sources(&["host/src"])
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    for line in lines {
        assert!(
            sources.contains(&format!("\"{line}")),
            "docs/operate.md names the log line `{line}`, which nothing writes"
        );
    }
}
