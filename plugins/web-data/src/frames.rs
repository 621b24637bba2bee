//! Quotes, lists and items around a paragraph, and what stands before its lines because of them.
//!
//! It must know nothing of what a paragraph holds.

use crate::markdown::Style;

/// Those that are open, outermost first.
pub(crate) struct Frames {
    style: Style,
    open: Vec<Frame>,
}

enum Frame {
    /// Whether something of it was written.
    Quote { started: bool },
    /// The next number of an ordered list, and whether what was written last is an item's.
    List {
        number: Option<u32>,
        after_item: bool,
    },
    /// A marker that is not written yet, and the columns that it takes.
    Item {
        marker: Option<String>,
        width: usize,
    },
}

/// Which line of a paragraph: the blank one before it, its first or another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    Blank,
    First,
    Further,
}

impl Frames {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            open: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn open_quote(&mut self) {
        self.open.push(Frame::Quote { started: false });
    }

    /// Opens a list, whose items are numbered from this number on.
    pub(crate) fn open_list(&mut self, number: Option<u32>) {
        self.open.push(Frame::List {
            number,
            after_item: false,
        });
    }

    pub(crate) fn open_item(&mut self) {
        let mut marker = "- ".to_owned();
        if let Some(Frame::List {
            number: Some(number),
            ..
        }) = self.open.last_mut()
        {
            marker = format!("{number}. ");
            *number = number.saturating_add(1);
        }
        let width = marker.len();
        self.open.push(Frame::Item {
            marker: Some(marker),
            width,
        });
    }

    /// Closes the innermost.
    pub(crate) fn close(&mut self) {
        self.open.pop();
    }

    /// Notes that a paragraph was written.
    pub(crate) fn wrote(&mut self) {
        for at in 0..self.open.len() {
            let is_item = matches!(self.open.get(at + 1), Some(Frame::Item { .. }));
            match &mut self.open[at] {
                Frame::List { after_item, .. } => *after_item = is_item,
                Frame::Item { marker, .. } => *marker = None,
                Frame::Quote { started } => *started = true,
            }
        }
    }

    /// Whether the next paragraph stands right below the last: items do, but not a list's first where the list begins outside
    /// of any, or where its number is one that does not end a paragraph (CommonMark, 5.3).
    pub(crate) fn is_tight(&self) -> bool {
        let new = self
            .open
            .iter()
            .enumerate()
            .find_map(|(at, frame)| match frame {
                Frame::Item { marker, .. } => Some((at, marker.as_deref()?)),
                Frame::List { .. } | Frame::Quote { .. } => None,
            });
        let Some((at, marker)) = new else {
            return false;
        };
        let around = &self.open[..at];
        let is_nested = around
            .iter()
            .any(|frame| matches!(frame, Frame::Item { .. }));
        let ends_paragraph = self.style == Style::Text || ["- ", "1. "].contains(&marker);
        is_nested && ends_paragraph
            || matches!(
                around.last(),
                Some(Frame::List {
                    after_item: true,
                    ..
                })
            )
    }

    /// What stands before a line: markers on the first of an item.
    pub(crate) fn indent(&self, line: Line) -> String {
        let mut indent = String::new();
        for frame in &self.open {
            match frame {
                // The blank line before a quote belongs to what is around it.
                Frame::Quote { started: false } if line == Line::Blank => {}
                Frame::Quote { .. } if self.style == Style::Text => {}
                Frame::Quote { .. } => indent.push_str("> "),
                Frame::List { .. } => {}
                Frame::Item {
                    marker: Some(marker),
                    ..
                } if line == Line::First => indent.push_str(marker),
                Frame::Item {
                    marker: Some(_), ..
                } if line == Line::Blank => {}
                Frame::Item { width, .. } => indent.extend(std::iter::repeat_n(' ', *width)),
            }
        }
        indent
    }
}
