//! The rooms of the host: a room uses only rooms that stand before it in the table, and of those the ones that it names.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};

use super::{File, files};

/// Each room with the rooms that it uses.
const ROOMS: [(&str, &[&str]); 22] = [
    ("base", &[]),
    ("contract", &["base"]),
    ("config", &["base", "contract"]),
    ("records", &["base", "contract"]),
    ("observe", &["contract", "config"]),
    ("stores", &["base", "contract", "records"]),
    ("places", &["base", "contract", "config", "observe"]),
    (
        "metering",
        &["base", "contract", "records", "observe", "stores"],
    ),
    ("egress", &["base", "contract", "config", "observe"]),
    (
        "auth",
        &[
            "base", "contract", "config", "records", "stores", "places", "egress",
        ],
    ),
    ("lookup", &["base", "config"]),
    (
        "queue",
        &["base", "contract", "config", "records", "stores"],
    ),
    (
        "runtime",
        &[
            "base", "contract", "config", "records", "observe", "stores", "egress", "lookup",
            "queue",
        ],
    ),
    ("catalogue", &["contract", "observe", "runtime"]),
    (
        "published",
        &["base", "contract", "config", "metering", "catalogue"],
    ),
    (
        "registry",
        &[
            "base",
            "contract",
            "config",
            "records",
            "stores",
            "egress",
            "runtime",
            "catalogue",
            "published",
        ],
    ),
    (
        "pipeline",
        &[
            "base",
            "contract",
            "config",
            "records",
            "observe",
            "stores",
            "places",
            "metering",
            "auth",
            "runtime",
            "catalogue",
            "registry",
        ],
    ),
    (
        "runner",
        &[
            "base", "records", "stores", "queue", "runtime", "registry", "pipeline",
        ],
    ),
    (
        "transport",
        &[
            "base",
            "contract",
            "config",
            "records",
            "observe",
            "stores",
            "places",
            "metering",
            "egress",
            "auth",
            "queue",
            "runtime",
            "catalogue",
            "published",
            "registry",
            "pipeline",
        ],
    ),
    (
        "serve",
        &[
            "base",
            "contract",
            "config",
            "records",
            "stores",
            "places",
            "metering",
            "egress",
            "auth",
            "lookup",
            "queue",
            "runtime",
            "published",
            "registry",
            "pipeline",
            "runner",
            "transport",
        ],
    ),
    ("native", &["contract", "catalogue", "serve"]),
    (
        "cli",
        &[
            "base",
            "contract",
            "config",
            "records",
            "observe",
            "stores",
            "egress",
            "auth",
            "lookup",
            "runtime",
            "registry",
            "transport",
            "serve",
        ],
    ),
];

/// The room that a file of the host stands in; `lib.rs` and `main.rs` stand in none.
fn room(path: &str) -> Option<&str> {
    let below = path.strip_prefix("host/src/")?;
    let name = below.split('/').next()?.trim_end_matches(".rs");
    (!["lib", "main"].contains(&name)).then_some(name)
}

/// The rooms that a file names by `crate::`. It may not climb out of its own by `super::`.
fn used(file: &File) -> BTreeSet<String> {
    let tokens: TokenStream = file.text.parse().expect("Rust");
    let modules = file.path.trim_end_matches("/mod.rs").split('/').count() - 2;
    let mut used = BTreeSet::new();
    collect(&tokens, modules, &file.path, &mut used);
    used
}

/// `modules` is how many modules stand around these tokens.
fn collect(tokens: &TokenStream, modules: usize, path: &str, used: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let is = |at: usize, name: &str| matches!(tokens.get(at), Some(TokenTree::Ident(ident)) if *ident == name);
    let leads_on = |at: usize| is_colon(tokens.get(at + 1)) && is_colon(tokens.get(at + 2));
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            let is_module = at >= 2 && is(at - 2, "mod");
            collect(
                &group.stream(),
                modules + usize::from(is_module),
                path,
                used,
            );
        }
        let climbs = (0..)
            .take_while(|step| is(at + 3 * step, "super") && leads_on(at + 3 * step))
            .count();
        assert!(
            climbs < modules,
            "{path} climbs out of its room by `super::`: write `crate::`"
        );
        if !is(at, "crate") || !leads_on(at) {
            continue;
        }
        match tokens.get(at + 3) {
            Some(TokenTree::Ident(room)) => {
                used.insert(room.to_string());
            }
            Some(TokenTree::Group(rooms)) => used.extend(first_names(&rooms.stream())),
            Some(TokenTree::Punct(_) | TokenTree::Literal(_)) | None => {}
        }
    }
}

fn is_colon(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':')
}

/// The first name of each path of a group, `{a::b, c}`.
fn first_names(tokens: &TokenStream) -> Vec<String> {
    let (mut names, mut begins) = (Vec::new(), true);
    for token in tokens.clone() {
        match token {
            TokenTree::Ident(ident) if begins => {
                names.push(ident.to_string());
                begins = false;
            }
            TokenTree::Punct(punct) if punct.as_char() == ',' => begins = true,
            TokenTree::Ident(_)
            | TokenTree::Punct(_)
            | TokenTree::Group(_)
            | TokenTree::Literal(_) => {}
        }
    }
    names
}

#[test]
fn a_room_uses_only_rooms_that_stand_below_it() {
    for (index, (room, uses)) in ROOMS.iter().enumerate() {
        for used in *uses {
            let place = ROOMS.iter().position(|(known, _)| known == used);
            assert!(
                place.is_some_and(|place| place < index),
                "`{room}` uses `{used}`, which does not stand below it"
            );
        }
    }
    let mut arrows = BTreeSet::new();
    for file in files("host/src") {
        let Some(own) = room(&file.path) else {
            continue;
        };
        let row = ROOMS.iter().find(|(known, _)| *known == own);
        let (_, uses) =
            row.unwrap_or_else(|| panic!("{}: `{own}` is no room of the table", file.path));
        for used in used(&file) {
            assert!(
                used == own || uses.contains(&&*used),
                "{}: `{own}` may not use `{used}`",
                file.path
            );
            arrows.insert((own.to_owned(), used));
        }
    }
    for (room, uses) in ROOMS {
        for used in uses {
            let arrow = (room.to_owned(), (*used).to_owned());
            assert!(
                arrows.contains(&arrow),
                "`{room}` does not use `{used}` any more"
            );
        }
    }
}
