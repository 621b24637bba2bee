//! The shapes of port-43 answers: lines to entries of a room, a key and a value.
//!
//! Five shapes cover the registries: `Key: value` (with dots or spaces before the colon), `[Key] value`, headings with
//! indented or bare lines below them, paragraphs that are objects, and lists that go on in the next line. Knows no
//! field.

use super::keys::{self, Field, Room};

/// Lines of an answer that are read.
const LINES_MAX: usize = 3000;
/// Lines of a paragraph in which its handle is looked for.
const PARAGRAPH_MAX: usize = 64;
/// Characters of a line that are read.
const LINE_MAX: usize = 1000;

/// What one line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry<'t> {
    pub(super) room: Room,
    /// In the form of [`keys::normal`]; empty for the first bare line below a heading.
    pub(super) key: String,
    pub(super) value: &'t str,
}

/// A line by its shape.
enum Shape<'t> {
    Blank,
    Comment,
    Pair(&'t str, &'t str),
    Bare(&'t str),
}

struct Line<'t> {
    indent: usize,
    shape: Shape<'t>,
}

/// What the lines below a heading belong to.
struct Block {
    room: Room,
    heading: String,
    indent: usize,
    /// Bare lines so far.
    bare: usize,
    /// Whether anything has come below it.
    begun: bool,
    /// Whether it is made of lines further in than its heading, so that another line at its own depth ends it.
    nested: bool,
}

/// Whether a line is a remark of the server. Remarks hold no fields.
pub(super) fn is_comment(line: &str) -> bool {
    let boxed = line.starts_with('*') && line.ends_with('*');
    boxed
        || ["%", "#", ";", ">>>", "//", "--", "[ "]
            .iter()
            .any(|mark| line.starts_with(mark))
}

/// The entries of an answer.
pub(super) fn entries(text: &str) -> Vec<Entry<'_>> {
    let lines: Vec<Line<'_>> = text.lines().take(LINES_MAX).map(line).collect();
    let mut walk = Walk {
        entries: Vec::new(),
        block: None,
        paragraph: true,
        opened: Room::Domain,
        named: false,
        holder: None,
        last: None,
    };
    for (at, line) in lines.iter().enumerate() {
        let ahead = &lines[at..];
        let next = lines[at + 1..]
            .iter()
            .find(|line| !matches!(line.shape, Shape::Blank));
        match line.shape {
            Shape::Blank => walk.blank(),
            Shape::Comment => {}
            Shape::Pair(key, "") if walk.heads(key, line, next) => {
                walk.heading(keys::normal(key), line.indent);
            }
            Shape::Pair(key, value) => walk.pair(keys::normal(key), value, line.indent, ahead),
            Shape::Bare(text) => walk.bare(text, line.indent, next),
        }
    }
    walk.entries
}

fn line(text: &str) -> Line<'_> {
    let text = text
        .char_indices()
        .nth(LINE_MAX)
        .map_or(text, |(end, _)| &text[..end])
        .trim_end();
    let rest = text.trim_start();
    // Stars before a heading are an ornament.
    let rest = rest
        .strip_prefix("** ")
        .filter(|heading| !heading.ends_with('*'))
        .unwrap_or(rest);
    let indent = text[..text.len() - rest.len()]
        .chars()
        .map(|c| if c == '\t' { 8 } else { 1 })
        .sum();
    let shape = match rest {
        "" => Shape::Blank,
        rest if is_comment(rest) => Shape::Comment,
        rest => bracketed(rest)
            .or_else(|| pair(rest))
            .map_or(Shape::Bare(rest), |(key, value)| Shape::Pair(key, value)),
    };
    Line { indent, shape }
}

/// `[Key] value`, with a letter and a dot before it or not.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let text = match text.as_bytes() {
        [b'a'..=b'z', b'.', b' ', ..] => &text[3..],
        _ => text,
    };
    let (key, value) = text.strip_prefix('[')?.split_once(']')?;
    Some((key, value.trim()))
}

/// `Key: value`, with dots or spaces before the colon or not.
fn pair(text: &str) -> Option<(&str, &str)> {
    // A key may be explained at length in brackets.
    let (key, value) = match text.split_once("):") {
        Some((explained, value)) if !explained.contains(':') => {
            (explained.split('(').next()?, value)
        }
        _ => text.split_once(':')?,
    };
    let key = key.trim_end_matches([' ', '.', '\t']);
    let open = value.is_empty() || value.starts_with([' ', '\t']);
    let named = key.starts_with(char::is_alphabetic)
        && key.chars().count() <= 48
        && key.split_whitespace().count() <= 6
        && !key.contains(['"', '<', '>', '@', '{', ',']);
    // `https://` and `10:00:00` have no key before their colon.
    let tight = !value.starts_with("//") && !key.ends_with(|c: char| c.is_ascii_digit());
    (named && (open || tight)).then(|| (key, value.trim()))
}

/// The registry's name for the person or organisation whom this paragraph is about.
fn handle<'t>(ahead: &[Line<'t>]) -> Option<&'t str> {
    let paragraph = ahead
        .iter()
        .take_while(|line| !matches!(line.shape, Shape::Blank))
        .take(PARAGRAPH_MAX);
    let mut pairs = paragraph.filter_map(|line| match line.shape {
        Shape::Pair(key, value) => Some((keys::normal(key), value)),
        Shape::Blank | Shape::Comment | Shape::Bare(_) => None,
    });
    let is_handle = |key: &str| matches!(key, "nic hdl" | "nic hdl br" | "contact id");
    pairs
        .find(|(key, _)| is_handle(key))
        .map(|(_, value)| value)
}

/// The way through the lines.
struct Walk<'t> {
    entries: Vec<Entry<'t>>,
    block: Option<Block>,
    /// Whether the line before was blank.
    paragraph: bool,
    /// The room that the paragraph's first key opened.
    opened: Room,
    /// Whether the domain was named already; before that, nothing is about anything else.
    named: bool,
    /// The registry's name for the holder, by which the holder's own object is found.
    holder: Option<&'t str>,
    /// The last pair's room, key and indentation.
    last: Option<(Room, String, usize)>,
}

impl<'t> Walk<'t> {
    fn blank(&mut self) {
        self.paragraph = true;
        self.opened = Room::Domain;
        self.last = None;
        if self.block.as_ref().is_some_and(|block| block.begun) {
            self.block = None;
        }
    }

    /// Whether a key without a value is a heading: lines follow that belong to it.
    fn heads(&self, key: &str, line: &Line<'_>, next: Option<&Line<'_>>) -> bool {
        let below = next
            .is_some_and(|next| next.indent > line.indent || matches!(next.shape, Shape::Bare(_)));
        below || self.paragraph && next.is_some() && keys::room(&keys::normal(key)).is_some()
    }

    fn heading(&mut self, heading: String, indent: usize) {
        let room = match keys::field(Room::Domain, &heading) {
            // `Registrar:` and `Name servers:` open rooms; `Domain name:` has its value in the next line.
            Some(Field::Registrar(_) | Field::Holder | Field::Server | Field::Organization)
            | None => keys::room(&heading).unwrap_or(Room::Domain),
            Some(_) => Room::Domain,
        };
        self.paragraph = false;
        self.last = None;
        self.block = Some(Block {
            room,
            heading,
            indent,
            bare: 0,
            begun: false,
            nested: false,
        });
    }

    /// The room of the block that a line at this depth stands in.
    fn enter(&mut self, indent: usize) -> Option<Room> {
        let block = self.block.as_mut()?;
        if !block.begun {
            block.nested = indent > block.indent;
        }
        if block.nested && indent <= block.indent {
            self.block = None;
            return None;
        }
        block.begun = true;
        Some(block.room)
    }

    fn pair(&mut self, key: String, value: &'t str, indent: usize, ahead: &[Line<'t>]) {
        let block = self.enter(indent).filter(|room| *room != Room::Domain);
        if self.paragraph && block.is_none() {
            let handle = handle(ahead);
            let holder = self
                .holder
                .is_some_and(|holder| holder == value || handle == Some(holder));
            self.opened = match keys::opens(&key) {
                _ if !self.named => Room::Domain,
                Some(Room::Contact) | None if holder => Room::Holder,
                None if handle.is_some() => Room::Contact,
                opened => opened.unwrap_or(Room::Domain),
            };
        }
        self.paragraph = false;
        let room = block.unwrap_or(self.opened);
        let (room, key) = match keys::prefixed(&key) {
            Some((named, rest)) if room == Room::Domain || room == named => {
                (named, rest.to_owned())
            }
            _ => (room, key),
        };
        let names_holder = matches!(
            (room, key.as_str()),
            (Room::Domain, "registrant" | "holder") | (Room::Holder, "c")
        );
        if names_holder && self.holder.is_none() {
            self.holder = Some(value);
        }
        self.last = Some((room, key.clone(), indent));
        self.push(room, key, value);
    }

    fn push(&mut self, room: Room, key: String, value: &'t str) {
        self.named |= keys::field(room, &key) == Some(Field::Domain);
        self.entries.push(Entry { room, key, value });
    }

    fn bare(&mut self, text: &'t str, indent: usize, next: Option<&Line<'_>>) {
        if let Some((room, key, _)) = self.last.clone().filter(|(_, _, depth)| indent > *depth) {
            // A list goes on in the next line; an address does so too, and nothing is read of it.
            if keys::field(room, &key) == Some(Field::Server) {
                self.entries.push(Entry {
                    room,
                    key,
                    value: text,
                });
            }
            return;
        }
        let heading = keys::normal(text);
        let short = heading.split(' ').count() <= 4 && text.len() <= 40 && !text.contains('.');
        let room = keys::room(&heading).filter(|_| short && next.is_some());
        let begun = self
            .block
            .as_ref()
            .is_some_and(|block| !block.begun || block.bare > 0);
        match (room, begun) {
            (Some(_), false) => self.heading(heading, indent),
            _ => self.below(text, indent),
        }
        self.paragraph = false;
    }

    /// A bare line below a heading: its value, a list's next member, or a name and then its address.
    fn below(&mut self, text: &'t str, indent: usize) {
        let Some(room) = self.enter(indent) else {
            return;
        };
        let Some(block) = self.block.as_mut() else {
            return;
        };
        block.bare += 1;
        let (first, key) = (
            block.bare == 1,
            if room == Room::Domain {
                block.heading.clone()
            } else {
                String::new()
            },
        );
        if first || room == Room::Servers || room == Room::Keys {
            self.push(room, key, text);
        }
    }
}
