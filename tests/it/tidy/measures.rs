//! The house in numbers, of any checkout: `SWITCHBAY_MEASURED=FOLDER cargo test --test it -- tidy::measures --nocapture`.
//!
//! Sizes say nothing good of code by themselves; one that leaves its bound says that something should be looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::support::workspace;

/// What is measured of one file, its tests left out.
#[derive(Default)]
struct Measured {
    lines: usize,
    code_lines: BTreeSet<usize>,
    /// Characters of the code lines, without their indentation.
    width: usize,
    comments: usize,
    types: Vec<String>,
    bool_matches: usize,
    wiring_takers: usize,
    mapped_errors: usize,
}

/// Walks what is not a test.
#[derive(Default)]
struct Walk {
    tests: Vec<(usize, usize)>,
    types: Vec<String>,
    bool_matches: usize,
    wiring_takers: usize,
}

impl Walk {
    fn skips(&mut self, attributes: &[syn::Attribute], span: proc_macro2::Span) -> bool {
        let is_test = attributes.iter().any(|attribute| {
            attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Ident>()
                    .is_ok_and(|name| name == "test")
        });
        if is_test {
            self.tests.push((span.start().line, span.end().line));
        }
        is_test
    }

    fn signature(&mut self, signature: &syn::Signature) {
        let takes = signature.inputs.iter().any(|input| match input {
            syn::FnArg::Typed(typed) => names(&typed.ty, &["App", "Service"]),
            syn::FnArg::Receiver(_) => false,
        });
        self.wiring_takers += usize::from(takes);
    }
}

/// Whether a type is one of these names, behind references and pointers.
fn names(kind: &syn::Type, wanted: &[&str]) -> bool {
    struct Named<'w>(&'w [&'w str], bool);
    impl<'a> Visit<'a> for Named<'_> {
        fn visit_path_segment(&mut self, segment: &'a syn::PathSegment) {
            self.1 |= self.0.iter().any(|name| segment.ident == name);
            visit::visit_path_segment(self, segment);
        }
    }
    let mut named = Named(wanted, false);
    named.visit_type(kind);
    named.1
}

impl<'a> Visit<'a> for Walk {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let attributes: &[syn::Attribute] = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            _ => &[],
        };
        if self.skips(attributes, item.span()) {
            return;
        }
        match item {
            syn::Item::Struct(item) => self.types.push(item.ident.to_string()),
            syn::Item::Enum(item) => self.types.push(item.ident.to_string()),
            syn::Item::Trait(item) => self.types.push(item.ident.to_string()),
            syn::Item::Type(item) => self.types.push(item.ident.to_string()),
            syn::Item::Fn(item) => self.signature(&item.sig),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if self.skips(&item.attrs, item.span()) {
            return;
        }
        self.signature(&item.sig);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_expr_match(&mut self, matched: &'a syn::ExprMatch) {
        let is_bool = |arm: &syn::Arm| matches!(&arm.pat, syn::Pat::Lit(literal) if matches!(literal.lit, syn::Lit::Bool(_)));
        self.bool_matches += usize::from(matched.arms.iter().any(is_bool));
        visit::visit_expr_match(self, matched);
    }
}

/// The lines that tokens stand on, those of documentation left out.
fn lines_of(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let is_hash = matches!(token, TokenTree::Punct(punct) if punct.as_char() == '#');
        let inner =
            matches!(tokens.get(at + 1), Some(TokenTree::Punct(punct)) if punct.as_char() == '!');
        if is_hash && is_doc(tokens.get(at + 1 + usize::from(inner))) {
            at += 2 + usize::from(inner);
            continue;
        }
        let span = token.span();
        match token {
            TokenTree::Group(group) => {
                lines.insert(group.span_open().start().line);
                lines.insert(group.span_close().end().line);
                lines_of(group.stream(), lines);
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {
                lines.extend(span.start().line..=span.end().line);
            }
        }
        at += 1;
    }
}

fn is_doc(token: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = token else {
        return false;
    };
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

fn measure(text: &str) -> Measured {
    let file = syn::parse_file(text).expect("Rust");
    let mut walk = Walk::default();
    walk.visit_file(&file);
    let is_tested = |line: usize| {
        walk.tests
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&line))
    };
    let mut code_lines = BTreeSet::new();
    lines_of(text.parse().expect("Rust"), &mut code_lines);
    code_lines.retain(|line| !is_tested(*line));
    let (mut width, mut comments) = (0, 0);
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if code_lines.contains(&(index + 1)) {
            width += trimmed.chars().count();
        }
        let is_comment =
            trimmed.starts_with("//") && !trimmed.starts_with("///") && !trimmed.starts_with("//!");
        comments += usize::from(is_comment && !is_tested(index + 1));
    }
    Measured {
        lines: text.lines().count(),
        code_lines,
        width,
        comments,
        types: walk.types,
        bool_matches: walk.bool_matches,
        wiring_takers: walk.wiring_takers,
        mapped_errors: text.matches(".map_err(StoreError::engine)").count(),
    }
}

/// The Rust files below a folder, those that hold nothing but tests left out.
fn sources(folder: &Path) -> BTreeMap<PathBuf, Measured> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("an entry").path();
            let is_tests = path.file_stem().is_some_and(|stem| stem == "tests");
            if path.is_dir() && !is_tests {
                folders.push(path);
            } else if !is_tests && path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                found.insert(path, measure(&text));
            }
        }
    }
    found
}

fn words(name: &str) -> usize {
    let capitals = name.char_indices().filter(|(index, c)| {
        c.is_ascii_uppercase()
            && (*index == 0
                || !name[..*index].ends_with(|before: char| before.is_ascii_uppercase()))
    });
    capitals.count()
}

fn share(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// The table, as one reads it.
struct House {
    host: BTreeMap<PathBuf, Measured>,
    code_lines: usize,
}

impl House {
    fn of(root: &Path) -> Self {
        let host = sources(&root.join("host/src"));
        let mut code_lines = host.values().map(|file| file.code_lines.len()).sum();
        let plugins = std::fs::read_dir(root.join("plugins")).expect("the plugins");
        let plugins = plugins.map(|entry| entry.expect("an entry").path().join("src"));
        for folder in plugins.chain([root.join("sdk/src")]) {
            let files = sources(&folder);
            code_lines += files
                .values()
                .map(|file| file.code_lines.len())
                .sum::<usize>();
        }
        Self { host, code_lines }
    }

    fn total(&self, of: impl Fn(&Measured) -> usize) -> usize {
        self.host.values().map(of).sum()
    }

    /// Median, ninth decile and most lines of a file.
    fn file_lines(&self) -> (usize, usize, usize) {
        let mut lines: Vec<usize> = self.host.values().map(|file| file.lines).collect();
        lines.sort_unstable();
        let at = |part: usize| lines[(lines.len() - 1) * part / 10];
        (at(5), at(9), at(10))
    }

    fn types(&self) -> Vec<&str> {
        let of = |file: &'_ Measured| file.types.len();
        let mut all = Vec::with_capacity(self.total(of));
        for file in self.host.values() {
            all.extend(file.types.iter().map(String::as_str));
        }
        all
    }

    fn one_word_types(&self) -> f64 {
        let types = self.types();
        share(
            types.iter().filter(|name| words(name) == 1).count(),
            types.len(),
        )
    }

    fn shared_types(&self) -> usize {
        let types = self.types();
        let distinct: BTreeSet<&&str> = types.iter().collect();
        types.len() - distinct.len()
    }

    fn table(&self) -> String {
        let (median, ninth, most) = self.file_lines();
        let code = self.total(|file| file.code_lines.len());
        let comments = self.total(|file| file.comments);
        let width = self.total(|file| file.width) as f64 / code as f64;
        let mut table = String::new();
        let mut row = |name: &str, value: String| {
            writeln!(table, "{name:<58} {value}").expect("a String takes text");
        };
        row(
            "functions that take the wiring",
            self.total(|file| file.wiring_takers).to_string(),
        );
        row(
            "file lines, median / ninth decile / most",
            format!("{median} / {ninth} / {most}"),
        );
        row("mean width of a code line", format!("{width:.1}"));
        row(
            "`//` lines of all code and `//` lines",
            format!("{:.1} %", share(comments, code + comments)),
        );
        row(
            "one-word type names",
            format!("{:.0} %", self.one_word_types()),
        );
        row(
            "type names that are defined more than once",
            self.shared_types().to_string(),
        );
        row(
            "`match` on a bool",
            self.total(|file| file.bool_matches).to_string(),
        );
        row(
            "`.map_err(StoreError::engine)`",
            self.total(|file| file.mapped_errors).to_string(),
        );
        row(
            "code lines of host, plugins and SDK",
            self.code_lines.to_string(),
        );
        table
    }
}

#[test]
fn the_house_keeps_its_measures() {
    let root = std::env::var_os("SWITCHBAY_MEASURED")
        .map_or_else(|| workspace().to_owned(), PathBuf::from);
    let house = House::of(&root);
    println!("{}", house.table());
    if root != workspace() {
        return;
    }
    let (median, ninth, most) = house.file_lines();
    assert!(
        median < 160 && ninth < 350 && most <= 500,
        "{median} / {ninth} / {most} lines"
    );
    assert_eq!(
        house.total(|file| file.bool_matches),
        0,
        "`match` on a bool"
    );
    assert_eq!(
        house.shared_types(),
        0,
        "type names that are defined more than once"
    );
    // `native::insert`, and the greeting and the signals of the command line.
    assert!(
        house.total(|file| file.wiring_takers) <= 3,
        "functions that take the wiring"
    );
}
