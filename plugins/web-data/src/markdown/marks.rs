//! Links, emphasis and code: what stands around text within a paragraph.
//!
//! It must know nothing of blocks: a paragraph ends where its writer says so, and each mark ends with it.

use super::{MarkdownWriter, Style};
use crate::code;
use crate::escape;
use crate::tree::Id;

/// Bytes of several pieces of code that are written as one.
const UNITED_BYTES_MAX: usize = 256;

pub(super) struct Mark {
    pub(super) id: Id,
    /// Where it begins in the paragraph.
    pub(super) start: usize,
    kind: MarkKind,
}

/// Code that stands in the paragraph, and where.
pub(super) struct Code {
    text: String,
    start: usize,
    end: usize,
}

pub(super) enum MarkKind {
    Around(&'static str),
    Code,
    /// To this address; of a link around many paragraphs the first is the link, and the others have none.
    Link(Option<String>),
}

impl MarkdownWriter<'_> {
    pub(super) fn is_code(&self) -> bool {
        self.marks
            .iter()
            .any(|mark| matches!(mark.kind, MarkKind::Code))
    }

    /// Puts a backslash before a character that is written already.
    pub(super) fn escape_at(&mut self, at: usize) {
        self.inline.insert(at, '\\');
        for mark in self.marks.iter_mut().filter(|mark| mark.start > at) {
            mark.start += 1;
        }
    }

    pub(super) fn is_open(&self, around: &str) -> bool {
        self.style == Style::Text
            || self.heading > 0 && around == "**"
            || self.marks.iter().any(|mark| match mark.kind {
                MarkKind::Around(open) => open == around,
                MarkKind::Code => true,
                MarkKind::Link(_) => false,
            })
    }

    /// Opens a mark; in code there are none.
    pub(super) fn open(&mut self, id: Id, kind: MarkKind) {
        if self.style == Style::Text || self.is_code() {
            return;
        }
        self.marks.push(Mark {
            id,
            start: self.inline.len(),
            kind,
        });
    }

    pub(super) fn open_link(&mut self, id: Id) {
        if self.style == Style::Text || self.is_code() {
            return;
        }
        let Some(address) = self
            .tree
            .attribute(id, "href")
            .and_then(|href| self.addresses.link(href))
        else {
            return;
        };
        // Behind an exclamation mark a link would be a picture.
        if self.inline.ends_with('!') {
            self.escape_at(self.inline.len() - 1);
        }
        self.marks.push(Mark {
            id,
            start: self.inline.len(),
            kind: MarkKind::Link(Some(address)),
        });
    }

    pub(super) fn close(&mut self) {
        if let Some(innermost) = self.marks.len().checked_sub(1) {
            self.wrap(innermost);
            self.marks.truncate(innermost);
        }
    }

    /// Puts an open mark around the text that it holds; white space stays outside.
    pub(super) fn wrap(&mut self, open: usize) {
        let mark = &self.marks[open];
        let start = mark.start.min(self.inline.len());
        let held = &self.inline[start..];
        let (at, end) = (
            start + held.len() - held.trim_start().len(),
            start + held.trim_end().len(),
        );
        if at >= end {
            return;
        }
        let held = &self.inline[at..end];
        let written = match &mark.kind {
            MarkKind::Around(around) => format!("{around}{held}{around}"),
            // What parts a table's cells by all readings of it is no code.
            MarkKind::Code if !self.tables.is_empty() && held.contains("\\\\|") => {
                self.uncoded(held)
            }
            MarkKind::Code => return self.write_code(open, at, end),
            MarkKind::Link(None) => return,
            MarkKind::Link(Some(address)) => {
                let written = format!("[{}]({address})", held.replace('\n', " "));
                // No link stands within another (CommonMark, 6.3).
                let links = self.marks[..=open]
                    .iter_mut()
                    .filter(|mark| matches!(mark.kind, MarkKind::Link(_)));
                links.for_each(|mark| mark.kind = MarkKind::Link(None));
                written
            }
        };
        self.inline.replace_range(at..end, &written);
    }

    /// What was read as code, as any other text.
    fn uncoded(&self, held: &str) -> String {
        let in_cell = !self.tables.is_empty();
        let text = if in_cell {
            held.replace("\\|", "|")
        } else {
            held.to_owned()
        };
        escape::inline(&text, in_cell).unwrap_or(text)
    }

    /// Puts fences around code. Where other code ends right before it they are one, because the two fences would be; what is too
    /// long for that is no code, as each piece is written again with the next.
    fn write_code(&mut self, open: usize, at: usize, end: usize) {
        let (mut text, mut start) = (self.inline[at..end].to_owned(), at);
        let parts = |mark: &Mark| mark.start >= at && !matches!(mark.kind, MarkKind::Link(None));
        let touches = |code: &Code| code.end == at && !self.marks[..open].iter().any(parts);
        if let Some(before) = self.code.take().filter(touches) {
            if before.text.len() + text.len() > UNITED_BYTES_MAX {
                let written = self.uncoded(&text);
                return self.inline.replace_range(at..end, &written);
            }
            (text, start) = (before.text + &text, before.start);
            for mark in self.marks[..open]
                .iter_mut()
                .filter(|mark| mark.start >= at)
            {
                mark.start = start;
            }
        }
        let written = code::inline(&text);
        self.inline.replace_range(start..end, &written);
        self.code = Some(Code {
            text,
            start,
            end: start + written.len(),
        });
    }
}
