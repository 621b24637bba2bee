//! A provider's markup made safe: what is passed on is written anew from what is known, and everything else is left out.
//!
//! A tokenizer is enough, because nothing that was read is copied: each element and attribute of the output is on a list
//! here, text and values are escaped, and no element of the list switches a browser's tokenizer (a frame, the one that would,
//! has no content). So whatever tree a browser makes of it holds nothing else, and what is left out may be told apart
//! wrongly without harm. Scripts are told by their addresses; nothing runs.

mod attribute;
mod element;

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{EndTag, StartTag, Token, Tokenizer};

use crate::networks::Naming;
use attribute::Values;
use element::ElementKind;

pub(crate) use attribute::Script;

/// Elements within each other; deeper ones are left out, and their text is kept.
const DEPTH_MAX: usize = 64;
/// Scripts that are told of.
const SCRIPTS_MAX: usize = 8;
/// The longest title that is taken from text, in characters.
const TITLE_CHARACTERS_MAX: usize = 280;

/// What of a network's markup is passed on.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Addresses of scripts; a star stands for one segment.
    pub(crate) scripts: &'static [&'static str],
    /// Beginnings of the addresses of frames.
    pub(crate) frames: &'static [&'static str],
    /// Beginnings of the names of the widget's own attributes.
    pub(crate) data: &'static [&'static str],
}

/// What was read of a piece of markup.
#[derive(Debug, Default)]
pub(crate) struct Clean {
    pub(crate) html: String,
    /// In the order of the markup, each once.
    pub(crate) scripts: Vec<Script>,
}

/// Reads markup by the rules of a network, whose pictures are on these hosts.
pub(crate) fn clean(html: &str, rules: &Rules, pictures: &[&str]) -> Clean {
    let mut writer = Writer {
        rules,
        pictures,
        clean: Clean::default(),
        open: Vec::new(),
        left_out: None,
    };
    for token in tokens(html) {
        match token {
            Token::StartTag(tag) => writer.start(&tag),
            Token::EndTag(tag) => writer.end(&tag),
            Token::String(text) => writer.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    while let Some(name) = writer.open.pop() {
        writer.close(name);
    }
    writer.clean
}

/// The text of the first paragraph, as a title.
pub(crate) fn first_paragraph(html: &str) -> Option<String> {
    let (mut text, mut is_within) = (String::new(), false);
    for token in tokens(html) {
        match token {
            Token::StartTag(tag) => match tag.name.as_slice() {
                b"p" if is_within => break,
                b"p" => is_within = true,
                b"br" if is_within => text.push(' '),
                _ => {}
            },
            Token::EndTag(tag) if is_within && tag.name.as_slice() == b"p" => break,
            Token::String(more) if is_within => text.push_str(&String::from_utf8_lossy(&more)),
            Token::EndTag(_)
            | Token::String(_)
            | Token::Comment(_)
            | Token::Doctype(_)
            | Token::Error(_) => {}
        }
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let title: String = words.join(" ").chars().take(TITLE_CHARACTERS_MAX).collect();
    (!title.is_empty()).then(|| title.trim_end().to_owned())
}

/// What the markup says in each of these attributes, where any element has it: the first counts.
pub(crate) fn named(html: &str, by: &[Naming]) -> Vec<(Naming, String)> {
    let mut found: Vec<Option<String>> = vec![None; by.len()];
    for token in tokens(html) {
        let Token::StartTag(tag) = token else {
            continue;
        };
        for (naming, found) in by.iter().zip(&mut found) {
            let (Naming::Url(attribute) | Naming::Id(attribute)) = naming;
            if let (None, Some(value)) = (&found, tag.attributes.get(attribute.as_bytes())) {
                *found = Some(String::from_utf8_lossy(value).into_owned());
            }
        }
    }
    by.iter()
        .zip(found)
        .filter_map(|(naming, found)| Some((*naming, found?)))
        .collect()
}

fn tokens(html: &str) -> impl Iterator<Item = Token> {
    let mut emitter = DefaultEmitter::default();
    // As a browser does for what holds no markup, such as the text of a script.
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(html, emitter).map(|token| match token {
        Ok(token) => token,
        Err(never) => match never {},
    })
}

/// What is being written.
struct Writer<'r> {
    rules: &'r Rules,
    pictures: &'r [&'r str],
    clean: Clean,
    /// Elements that were written and not closed.
    open: Vec<&'static str>,
    /// An element that is left out with its content, and how many of its name are open within.
    left_out: Option<(Vec<u8>, usize)>,
}

impl Writer<'_> {
    fn start(&mut self, tag: &StartTag<()>) {
        let name = tag.name.as_slice();
        if let Some((left_out, depth)) = &mut self.left_out {
            if left_out == name {
                *depth += 1;
            }
            return;
        }
        let values = Values::of(tag, self.rules, self.pictures);
        match element::kind(name) {
            ElementKind::Kept(name) if self.open.len() < DEPTH_MAX => {
                self.write_tag(name, &values);
                self.open.push(name);
            }
            ElementKind::Kept(_) | ElementKind::Unwrapped => {}
            ElementKind::Void(name) => self.write_tag(name, &values),
            // Without its picture it is nothing.
            ElementKind::Picture => {
                if values.has("src") {
                    self.write_tag("img", &values);
                }
            }
            ElementKind::Frame => {
                if values.has("src") {
                    self.write_tag("iframe", &values);
                    self.close("iframe");
                }
                self.leave_out(name);
            }
            ElementKind::Script => {
                if let Some(script) = values.script().filter(|script| !self.knows(script)) {
                    self.clean.scripts.push(script);
                }
                self.leave_out(name);
            }
            // The only two that may close themselves.
            ElementKind::LeftOut if tag.self_closing && matches!(name, b"svg" | b"math") => {}
            ElementKind::LeftOut => self.leave_out(name),
        }
    }

    fn end(&mut self, tag: &EndTag<()>) {
        let name = tag.name.as_slice();
        if let Some((left_out, depth)) = &mut self.left_out {
            if left_out == name {
                *depth -= 1;
            }
            if *depth == 0 {
                self.left_out = None;
            }
            return;
        }
        let Some(at) = self.open.iter().rposition(|open| open.as_bytes() == name) else {
            return;
        };
        while self.open.len() > at {
            if let Some(name) = self.open.pop() {
                self.close(name);
            }
        }
    }

    fn text(&mut self, text: &str) {
        if self.left_out.is_none() {
            attribute::escape(text, &mut self.clean.html);
        }
    }

    fn leave_out(&mut self, name: &[u8]) {
        self.left_out = Some((name.to_vec(), 1));
    }

    fn knows(&self, script: &Script) -> bool {
        self.clean.scripts.len() >= SCRIPTS_MAX
            || self
                .clean
                .scripts
                .iter()
                .any(|known| known.src == script.src)
    }

    fn write_tag(&mut self, name: &str, values: &Values<'_>) {
        self.clean.html.push('<');
        self.clean.html.push_str(name);
        values.write(name, &mut self.clean.html);
        self.clean.html.push('>');
    }

    fn close(&mut self, name: &str) {
        self.clean.html.push_str("</");
        self.clean.html.push_str(name);
        self.clean.html.push('>');
    }
}
