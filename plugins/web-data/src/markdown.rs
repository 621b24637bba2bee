//! Writes content as Markdown (GitHub's) or as plain text.
//!
//! It must know nothing of what was chosen or why: it writes the nodes that are kept. One walk over the tree; what is open
//! (lists, quotes, links, cells) stands in lists of its own, so that no depth of a page is a depth of the stack.

mod marks;

use std::fmt::Write as _;

use url::Url;

use self::marks::{Code, Mark, MarkKind};
use crate::address::Addresses;
use crate::code;
use crate::escape;
use crate::frames::{Frames, Line};
use crate::picture::Pictures;
use crate::table::{self, Grid};
use crate::tag::Tag;
use crate::tree::{Id, ROOT, Step, Tree, collapse_into};

/// How content is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Markdown,
    Text,
}

/// Writes the kept nodes, until about `bytes_max` are written.
pub(crate) fn write(
    tree: &Tree,
    kept: &[bool],
    base: Option<&Url>,
    style: Style,
    bytes_max: usize,
) -> String {
    let mut writer = MarkdownWriter {
        tree,
        addresses: Addresses::new(base),
        style,
        out: String::new(),
        inline: String::new(),
        marks: Vec::new(),
        code: None,
        frames: Frames::new(style),
        tables: Vec::new(),
        heading: 0,
        rule: false,
        pictures: Pictures::default(),
    };
    let mut walk = tree.walk(ROOT);
    while let Some(step) = walk.next() {
        match step {
            Step::Enter(id) if !kept[id as usize] => {
                writer.pass(id);
                // What an inline element holds parts texts too, a rule within emphasis for one.
                if tree.tag(id).is_block() {
                    walk.skip_children();
                }
            }
            Step::Enter(id) => {
                if writer.enter(id) {
                    walk.skip_children();
                }
            }
            Step::Leave(id) if kept[id as usize] => writer.leave(id),
            Step::Leave(_) => {}
        }
        if writer.out.len() + writer.held() > bytes_max {
            break;
        }
    }
    writer.flush();
    while writer.table_ends() {}
    writer.out
}

struct MarkdownWriter<'a> {
    tree: &'a Tree,
    addresses: Addresses<'a>,
    style: Style,
    out: String,
    /// The paragraph that is being written.
    inline: String,
    /// Open links and emphasis.
    marks: Vec<Mark>,
    /// What was code last in the paragraph.
    code: Option<Code>,
    /// Open quotes, lists and items.
    frames: Frames,
    /// Open tables.
    tables: Vec<Grid>,
    /// The level of the open heading, or 0.
    heading: usize,
    /// A rule stands before the next paragraph.
    rule: bool,
    pictures: Pictures,
}

impl MarkdownWriter<'_> {
    /// Bytes that are read and not written out.
    fn held(&self) -> usize {
        self.inline.len() + self.tables.iter().map(Grid::bytes).sum::<usize>()
    }

    /// Looks at an element that has no kept text. It parts what stands before and behind it as it would with its text.
    fn pass(&mut self, id: Id) {
        let tag = self.tree.tag(id);
        if tag.is_block() {
            self.flush();
        }
        match tag {
            Tag::Br => self.line_break(),
            Tag::Hr => {
                // Within a list it would end the list.
                self.rule =
                    !self.out.is_empty() && self.tables.is_empty() && self.frames.is_empty();
            }
            // A cell without text still has its place in the row.
            Tag::Td | Tag::Th => {
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
            Tag::A => self.open_link(id),
            Tag::B | Tag::Strong if !self.is_open("**") => self.open(id, MarkKind::Around("**")),
            Tag::I | Tag::Em | Tag::Cite | Tag::Var if !self.is_open("*") => {
                self.open(id, MarkKind::Around("*"));
            }
            Tag::S | Tag::Strike | Tag::Del if !self.is_open("~~") => {
                self.open(id, MarkKind::Around("~~"));
            }
            Tag::Code | Tag::Tt | Tag::Kbd | Tag::Samp => self.open(id, MarkKind::Code),
            Tag::Blockquote => self.frames.open_quote(),
            Tag::Ul | Tag::Menu | Tag::Dir => self.frames.open_list(None),
            Tag::Ol => {
                let start = self
                    .tree
                    .attribute(id, "start")
                    .and_then(|start| start.trim().parse().ok());
                self.frames.open_list(Some(start.unwrap_or(1)));
            }
            Tag::Li => self.frames.open_item(),
            Tag::Table if table::is_of_data(self.tree, id) => {
                self.tables.push(Grid::new(id, self.style));
            }
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
                self.frames.close();
            }
            Tag::Td | Tag::Th => self.cell_ends(),
            Tag::Tr => {
                if let Some(grid) = self.tables.last_mut() {
                    grid.end_row();
                }
            }
            Tag::Table if self.tables.last().is_some_and(|grid| grid.is_of(id)) => {
                self.table_ends();
            }
            tag if tag.heading().is_some() => self.heading = 0,
            _ => {}
        }
    }

    /// Writes out the innermost open table. False where none is open.
    fn table_ends(&mut self) -> bool {
        let Some(grid) = self.tables.pop() else {
            return false;
        };
        let text = grid.write();
        self.paragraph(&text);
        true
    }

    fn text(&mut self, text: &str) {
        if self.style == Style::Text {
            return collapse_into(text, &mut self.inline);
        }
        let in_cell = !self.tables.is_empty();
        if self.is_code() {
            let before = self.inline.len();
            collapse_into(text, &mut self.inline);
            if in_cell && self.inline[before..].contains('|') {
                let written = self.inline[before..].replace('|', "\\|");
                self.inline.replace_range(before.., &written);
            }
            return;
        }
        if let Some(at) = escape::reference_across(&self.inline, text) {
            self.escape_at(at);
        }
        let before = self.inline.len();
        collapse_into(text, &mut self.inline);
        let written = escape::inline(&self.inline[before..], in_cell);
        if let Some(written) = written {
            self.inline.replace_range(before.., &written);
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
        if self.style == Style::Text || self.is_code() {
            return;
        }
        let Some((address, alt)) = self.pictures.next(self.tree, id, &mut self.addresses) else {
            return;
        };
        let alt = escape::inline(&alt, !self.tables.is_empty()).unwrap_or(alt);
        let _ = write!(self.inline, "![{alt}]({address})");
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
        for open in (0..self.marks.len()).rev() {
            self.wrap(open);
            self.marks[open].start = 0;
        }
        self.code = None;
        let inline = std::mem::take(&mut self.inline);
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
                let text = if self.tables.is_empty() {
                    format!("{} {text}", "#".repeat(level))
                } else {
                    text.to_owned()
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
            if !self.frames.is_tight() {
                let blank = self.frames.indent(Line::Blank);
                self.out.push_str(blank.trim_end());
                self.out.push('\n');
            }
        }
        if std::mem::take(&mut self.rule) && self.style == Style::Markdown {
            self.out.push_str("---\n\n");
        }
        let (first, rest) = (
            self.frames.indent(Line::First),
            self.frames.indent(Line::Further),
        );
        for (at, line) in text.lines().enumerate() {
            let indent = if at == 0 { &first } else { &rest };
            if at > 0 {
                self.out.push('\n');
            }
            self.out.push_str(if line.is_empty() {
                indent.trim_end()
            } else {
                indent
            });
            self.out.push_str(line);
        }
        self.frames.wrote();
    }
}
