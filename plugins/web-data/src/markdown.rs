//! Writes content as Markdown (GitHub's) or as plain text.
//!
//! It must know nothing of what was chosen or why: it writes the nodes that are kept. One walk over the tree; what is open
//! (lists, quotes, links, cells) stands in lists of its own, so that no depth of a page is a depth of the stack.

use std::fmt::Write as _;

use url::Url;

use crate::address;
use crate::code;
use crate::escape;
use crate::table::{self, Grid};
use crate::tag::Tag;
use crate::tree::{Id, ROOT, Step, Tree, collapse_into};

/// Elements above a picture in which its name is looked for, and the bytes of their text.
const CARD_LEVELS: usize = 4;
const CARD_BYTES_MAX: usize = 400;

/// How content is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Markdown,
    Text,
}

/// Writes the kept nodes, until about `bytes_max` are written.
pub(crate) fn write(tree: &Tree, kept: &[bool], base: Option<&Url>, style: Style, bytes_max: usize) -> String {
    let mut writer = Writer {
        tree,
        base,
        style,
        out: String::new(),
        inline: String::new(),
        marks: Vec::new(),
        frames: Vec::new(),
        tables: Vec::new(),
        heading: 0,
        rule: false,
        image: String::new(),
    };
    let mut walk = tree.walk(ROOT);
    while let Some(step) = walk.next() {
        match step {
            Step::Enter(id) if !kept[id as usize] => {
                writer.pass(id);
                walk.skip_children();
            }
            Step::Enter(id) => {
                if writer.enter(id) {
                    walk.skip_children();
                }
            }
            Step::Leave(id) if kept[id as usize] => writer.leave(id),
            Step::Leave(_) => {}
        }
        if writer.out.len() > bytes_max {
            break;
        }
    }
    writer.flush();
    writer.out
}

struct Writer<'a> {
    tree: &'a Tree,
    base: Option<&'a Url>,
    style: Style,
    out: String,
    /// The paragraph that is being written.
    inline: String,
    /// Open links and emphasis.
    marks: Vec<Mark>,
    /// Open quotes, lists and items.
    frames: Vec<Frame>,
    /// Open tables.
    tables: Vec<Grid>,
    /// The level of the open heading, or 0.
    heading: usize,
    /// A rule stands before the next paragraph.
    rule: bool,
    /// The image that was written last.
    image: String,
}

struct Mark {
    id: Id,
    /// Where it begins in the paragraph.
    start: usize,
    kind: MarkKind,
}

enum MarkKind {
    Around(&'static str),
    Code,
    /// To this address; of a link around many paragraphs the first is the link.
    Link(Option<String>),
}

enum Frame {
    /// Whether something of it was written.
    Quote { started: bool },
    /// The next number of an ordered list, and whether an item was written.
    List { number: Option<u32>, started: bool },
    /// A marker that is not written yet, and the columns that it takes.
    Item { marker: Option<String>, width: usize },
}

/// Which line of a paragraph: the blank one before it, its first or another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Blank,
    First,
    Further,
}

impl Writer<'_> {
    /// Looks at an element that has no kept text.
    fn pass(&mut self, id: Id) {
        match self.tree.tag(id) {
            Tag::Br => self.line_break(),
            Tag::Hr => {
                self.flush();
                self.rule = !self.out.is_empty() && self.tables.is_empty();
            }
            // A cell without text still has its place in the row.
            Tag::Td | Tag::Th => {
                self.flush();
                self.cell_begins(id);
                self.cell_ends();
            }
            _ => {}
        }
    }

    /// True where the children of the node are written already.
    fn enter(&mut self, id: Id) -> bool {
        if let Some(text) = self.tree.text(id) {
            self.text(text);
            return false;
        }
        let tag = self.tree.tag(id);
        if tag.is_block() {
            self.flush();
        }
        match tag {
            Tag::Img => self.picture(id),
            Tag::Br => self.line_break(),
            Tag::A => {
                let address = self.tree.attribute(id, "href").and_then(|href| address::link(self.base, href));
                self.open(id, MarkKind::Link(address));
            }
            Tag::B | Tag::Strong if !self.is_open("**") => self.open(id, MarkKind::Around("**")),
            Tag::I | Tag::Em | Tag::Cite | Tag::Var if !self.is_open("*") => self.open(id, MarkKind::Around("*")),
            Tag::S | Tag::Strike | Tag::Del if !self.is_open("~~") => self.open(id, MarkKind::Around("~~")),
            Tag::Code | Tag::Tt | Tag::Kbd | Tag::Samp => self.open(id, MarkKind::Code),
            Tag::Blockquote => self.frames.push(Frame::Quote { started: false }),
            Tag::Ul | Tag::Menu | Tag::Dir => self.frames.push(Frame::List { number: None, started: false }),
            Tag::Ol => {
                let start = self.tree.attribute(id, "start").and_then(|start| start.trim().parse().ok());
                self.frames.push(Frame::List { number: Some(start.unwrap_or(1)), started: false });
            }
            Tag::Li => self.item(),
            Tag::Table if table::is_of_data(self.tree, id) => self.tables.push(Grid::new(id)),
            Tag::Td | Tag::Th => self.cell_begins(id),
            tag if tag.is_preformatted() => {
                self.preformatted(id);
                return true;
            }
            tag => self.heading = tag.heading().unwrap_or(self.heading),
        }
        false
    }

    fn leave(&mut self, id: Id) {
        let tag = self.tree.tag(id);
        if self.marks.last().is_some_and(|mark| mark.id == id) {
            self.close();
        }
        if tag.is_block() {
            self.flush();
        }
        match tag {
            Tag::Blockquote | Tag::Ul | Tag::Menu | Tag::Dir | Tag::Ol | Tag::Li => {
                self.frames.pop();
            }
            Tag::Td | Tag::Th => self.cell_ends(),
            Tag::Tr => {
                if let Some(grid) = self.tables.last_mut() {
                    grid.end_row();
                }
            }
            Tag::Table if self.tables.last().is_some_and(|grid| grid.is_of(id)) => {
                if let Some(grid) = self.tables.pop() {
                    let text = grid.write(self.style);
                    self.paragraph(&text);
                }
            }
            tag if tag.heading().is_some() => self.heading = 0,
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        let is_code = self.marks.iter().any(|mark| matches!(mark.kind, MarkKind::Code));
        let before = self.inline.len();
        collapse_into(text, &mut self.inline);
        if self.style == Style::Text {
            return;
        }
        let in_cell = !self.tables.is_empty();
        let written = match is_code {
            true => in_cell.then(|| self.inline[before..].replace('|', "\\|")),
            false => escape::inline(&self.inline[before..], in_cell),
        };
        if let Some(written) = written {
            self.inline.truncate(before);
            self.inline.push_str(&written);
        }
    }

    fn line_break(&mut self) {
        let length = self.inline.trim_end_matches(' ').len();
        self.inline.truncate(length);
        if self.inline.ends_with('\n') {
            self.flush();
        } else if !self.inline.is_empty() && self.heading == 0 {
            self.inline.push('\n');
        } else if !self.inline.is_empty() {
            self.inline.push(' ');
        }
    }

    fn picture(&mut self, id: Id) {
        let Some(address) = address::picture(self.base, |name| self.tree.attribute(id, name)) else { return };
        if self.style == Style::Text || address == self.image {
            return;
        }
        let mut alt = String::new();
        collapse_into(self.tree.attribute(id, "alt").unwrap_or_default(), &mut alt);
        if self.is_said_beside(id, alt.trim()) {
            alt.clear();
        }
        let alt = escape::inline(alt.trim(), !self.tables.is_empty()).unwrap_or_else(|| alt.trim().to_owned());
        let _ = write!(self.inline, "![{alt}]({address})");
        self.image = address;
    }

    /// Whether the text around a picture says most of what its alternative says: a card's name, a caption. A name of a
    /// file says nothing.
    fn is_said_beside(&self, id: Id, alt: &str) -> bool {
        if !alt.contains(' ') && alt.contains(['_', '.']) {
            return true;
        }
        let words = |text: &str| -> Vec<String> {
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3);
            words.take(CARD_BYTES_MAX).map(str::to_lowercase).collect()
        };
        let mut around = id;
        let mut card = String::new();
        for _ in 0..CARD_LEVELS {
            around = self.tree.parent(around);
            let text = self.tree.text_of(around, CARD_BYTES_MAX);
            if around == ROOT || text.len() > CARD_BYTES_MAX {
                break;
            }
            card = text;
        }
        let (said, around) = (words(alt), words(&card));
        let found = said.iter().filter(|word| around.contains(word)).count();
        !said.is_empty() && found * 3 >= said.len() * 2
    }

    fn is_open(&self, around: &str) -> bool {
        self.style == Style::Text
            || self.heading > 0 && around == "**"
            || self.marks.iter().any(|mark| match mark.kind {
                MarkKind::Around(open) => open == around,
                MarkKind::Code => true,
                MarkKind::Link(_) => false,
            })
    }

    fn open(&mut self, id: Id, kind: MarkKind) {
        let nested = match kind {
            MarkKind::Code => self.marks.iter().any(|mark| matches!(mark.kind, MarkKind::Code)),
            MarkKind::Link(_) | MarkKind::Around(_) => false,
        };
        if self.style == Style::Markdown && !nested {
            self.marks.push(Mark { id, start: self.inline.len(), kind });
        }
    }

    fn close(&mut self) {
        if let Some(mut mark) = self.marks.pop() {
            wrap(&mut self.inline, &mut mark);
        }
    }

    fn item(&mut self) {
        let mut marker = "- ".to_owned();
        if let Some(Frame::List { number: Some(number), .. }) = self.frames.last_mut() {
            marker = format!("{number}. ");
            *number = number.saturating_add(1);
        }
        let width = marker.len();
        self.frames.push(Frame::Item { marker: Some(marker), width });
    }

    fn cell_begins(&mut self, id: Id) {
        if let Some(grid) = self.tables.last_mut() {
            grid.begin_cell(self.tree, id);
        }
    }

    fn cell_ends(&mut self) {
        if let Some(grid) = self.tables.last_mut() {
            grid.end_cell();
        }
    }

    fn preformatted(&mut self, id: Id) {
        let text = code::text(self.tree, id);
        if text.trim().is_empty() {
            return;
        }
        match (self.tables.is_empty(), self.style) {
            (false, style) => {
                let mut line = String::new();
                collapse_into(&text, &mut line);
                let line = match style {
                    Style::Markdown => code::inline(&line.replace('|', "\\|")),
                    Style::Text => line,
                };
                self.paragraph(&line);
            }
            (true, Style::Text) => self.paragraph(&text),
            (true, Style::Markdown) => {
                let fenced = code::fenced(&text, code::language(self.tree, id));
                self.paragraph(&fenced);
            }
        }
    }

    /// Ends the paragraph that is being written.
    fn flush(&mut self) {
        let mut inline = std::mem::take(&mut self.inline);
        for mark in self.marks.iter_mut().rev() {
            wrap(&mut inline, mark);
            mark.start = 0;
        }
        let text = inline.trim();
        if text.is_empty() {
            return;
        }
        match (self.style, self.heading) {
            (Style::Markdown, 0) if self.tables.is_empty() => {
                let text = escape::line_starts(text);
                self.paragraph(&text.replace('\n', "  \n"));
            }
            (Style::Text, _) | (Style::Markdown, 0) => self.paragraph(text),
            (Style::Markdown, level) => {
                let text = match self.tables.is_empty() {
                    true => format!("{} {text}", "#".repeat(level)),
                    false => text.to_owned(),
                };
                self.paragraph(&text);
            }
        }
    }

    /// Writes a finished paragraph to where it belongs.
    fn paragraph(&mut self, text: &str) {
        if let Some(grid) = self.tables.last_mut() {
            grid.push(text);
            return;
        }
        if text.trim().is_empty() {
            return;
        }
        if !self.out.is_empty() {
            self.out.push('\n');
            if !self.is_tight() {
                let blank = self.indent(Line::Blank);
                self.out.push_str(blank.trim_end());
                self.out.push('\n');
            }
        }
        if std::mem::take(&mut self.rule) && self.style == Style::Markdown {
            self.out.push_str("---\n\n");
        }
        let (first, rest) = (self.indent(Line::First), self.indent(Line::Further));
        for (at, line) in text.lines().enumerate() {
            let indent = if at == 0 { &first } else { &rest };
            if at > 0 {
                self.out.push('\n');
            }
            self.out.push_str(if line.is_empty() { indent.trim_end() } else { indent });
            self.out.push_str(line);
        }
        for frame in &mut self.frames {
            match frame {
                Frame::List { started, .. } => *started = true,
                Frame::Item { marker, .. } => *marker = None,
                Frame::Quote { started } => *started = true,
            }
        }
    }

    /// Whether the next paragraph stands right below the last: items do, unless their list begins outside of any.
    fn is_tight(&self) -> bool {
        let is_new = |frame: &Frame| matches!(frame, Frame::Item { marker: Some(_), .. });
        let Some(first) = self.frames.iter().position(is_new) else { return false };
        let is_nested = self.frames[..first].iter().any(|frame| matches!(frame, Frame::Item { .. }));
        let list = first.checked_sub(1).map(|at| &self.frames[at]);
        is_nested || matches!(list, Some(Frame::List { started: true, .. }))
    }

    /// What stands before a line: markers on the first of an item.
    fn indent(&self, line: Line) -> String {
        let mut indent = String::new();
        for frame in &self.frames {
            match frame {
                // The blank line before a quote belongs to what is around it.
                Frame::Quote { started: false } if line == Line::Blank => {}
                Frame::Quote { .. } if self.style == Style::Text => {}
                Frame::Quote { .. } => indent.push_str("> "),
                Frame::List { .. } => {}
                Frame::Item { marker: Some(marker), .. } if line == Line::First => indent.push_str(marker),
                Frame::Item { marker: Some(_), .. } if line == Line::Blank => {}
                Frame::Item { width, .. } => indent.extend(std::iter::repeat_n(' ', *width)),
            }
        }
        indent
    }
}

/// Puts a mark around the text that it holds; white space stays outside.
fn wrap(inline: &mut String, mark: &mut Mark) {
    let start = mark.start.min(inline.len());
    let held = inline[start..].trim().to_owned();
    let Some(at) = inline[start..].find(&held).filter(|_| !held.is_empty()).map(|at| start + at) else { return };
    let end = at + held.len();
    let written = match &mut mark.kind {
        MarkKind::Around(around) => format!("{around}{held}{around}"),
        MarkKind::Code => code::inline(&held),
        MarkKind::Link(address) => match address.take() {
            Some(address) => format!("[{}]({address})", held.replace('\n', " ")),
            None => return,
        },
    };
    inline.replace_range(at..end, &written);
}
