//! Tables as GitHub's Markdown has them: rows of cells, each one line.
//!
//! It must know nothing of what stands in the cells. Bounded: a table is never wider than [`COLUMNS_MAX`], whatever its cells
//! claim to span.

use std::fmt::Write as _;

use crate::markdown::Style;
use crate::tag::Tag;
use crate::tree::{Id, Tree};

/// Columns of a table; wider ones are laid out, not tables.
const COLUMNS_MAX: usize = 64;
/// Cells that empty places may add to a table, for what its cells span.
const PADDING_MAX: usize = 4096;
/// Elements of a table that are looked at to tell what it is.
const LOOKED_AT_MAX: usize = 20_000;

/// Whether a table holds data: rows of several cells without blocks of their own. Others lay a page out.
pub(crate) fn is_of_data(tree: &Tree, table: Id) -> bool {
    let (mut rows, mut cells, mut row_cells, mut cells_most) = (0_usize, 0_usize, 0_usize, 0_usize);
    for (id, element) in tree.elements(table).take(LOOKED_AT_MAX) {
        match element.tag {
            Tag::Table if id != table => return false,
            tag if tag.heading().is_some() && cells > 0 => return false,
            Tag::Form | Tag::Blockquote | Tag::Article | Tag::Section => return false,
            Tag::Tr => {
                rows += 1;
                row_cells = 0;
            }
            Tag::Td | Tag::Th => {
                cells += 1;
                row_cells += 1;
                cells_most = cells_most.max(row_cells);
            }
            _ => {}
        }
    }
    rows >= 1
        && (2..=COLUMNS_MAX).contains(&cells_most)
        && cells >= 2
        && (rows >= 2 || cells_most <= 12)
}

/// A table while it is read.
pub(crate) struct Grid {
    id: Id,
    style: Style,
    /// Bytes of all its texts.
    bytes: usize,
    rows: Vec<Vec<String>>,
    row: Vec<String>,
    cell: Option<String>,
    /// Cells around the open one: each ended where the one in it began, and what stands behind that is its text.
    nested: usize,
    /// What stands outside of cells: a caption.
    outside: Vec<String>,
    columns: usize,
    padding: usize,
    span: usize,
    /// Rows that a cell of each column reaches further down.
    reaching: Vec<usize>,
    down: usize,
}

impl Grid {
    pub(crate) fn new(id: Id, style: Style) -> Self {
        Self {
            id,
            style,
            bytes: 0,
            rows: Vec::new(),
            row: Vec::new(),
            cell: None,
            nested: 0,
            outside: Vec::new(),
            columns: 0,
            padding: 0,
            span: 1,
            reaching: Vec::new(),
            down: 0,
        }
    }

    pub(crate) fn is_of(&self, id: Id) -> bool {
        self.id == id
    }

    pub(crate) fn begin_cell(&mut self, tree: &Tree, id: Id) {
        if self.cell.is_some() {
            self.nested += 1;
            self.put_cell();
        }
        let number = |name| {
            tree.attribute(id, name)
                .and_then(|value| value.trim().parse::<usize>().ok())
                .unwrap_or(1)
        };
        (self.span, self.down) = (
            number("colspan").clamp(1, COLUMNS_MAX),
            number("rowspan").clamp(1, 1000) - 1,
        );
        while self
            .reaching
            .get(self.row.len())
            .is_some_and(|rows| *rows > 0)
            && self.padding < PADDING_MAX
        {
            self.reaching[self.row.len()] -= 1;
            self.pad();
        }
        self.cell = Some(String::new());
    }

    fn pad(&mut self) {
        self.padding += 1;
        self.row.push(String::new());
    }

    /// Bytes of what it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a paragraph to the open cell.
    pub(crate) fn push(&mut self, text: &str) {
        let line_break = match self.style {
            Style::Markdown => "<br>",
            Style::Text => " ",
        };
        let text = text.replace('\n', line_break);
        self.bytes += text.len() + line_break.len();
        match &mut self.cell {
            Some(cell) => {
                if !cell.is_empty() {
                    cell.push_str(line_break);
                }
                cell.push_str(&text);
            }
            None => self.outside.push(text),
        }
    }

    pub(crate) fn end_cell(&mut self) {
        match self.nested.checked_sub(1) {
            Some(nested) => self.nested = nested,
            None => self.put_cell(),
        }
    }

    fn put_cell(&mut self) {
        let Some(cell) = self.cell.take() else { return };
        let at = self.row.len();
        self.row.push(cell);
        for _ in 1..self.span {
            if self.row.len() < COLUMNS_MAX && self.padding < PADDING_MAX {
                self.pad();
            }
        }
        if self.down > 0 && self.row.len() <= COLUMNS_MAX {
            self.reaching
                .resize(self.reaching.len().max(self.row.len()), 0);
            for rows in &mut self.reaching[at..self.row.len()] {
                *rows = self.down;
            }
        }
    }

    pub(crate) fn end_row(&mut self) {
        self.put_cell();
        self.nested = 0;
        let row = std::mem::take(&mut self.row);
        if row.iter().any(|cell| !cell.is_empty()) {
            self.columns = self.columns.max(row.len());
            self.rows.push(row);
        }
    }

    /// The whole table, with what stood outside of its cells before it.
    pub(crate) fn write(mut self) -> String {
        self.end_row();
        let mut out = String::new();
        for text in &self.outside {
            out.push_str(text);
            out.push_str("\n\n");
        }
        for (at, row) in self.rows.iter().enumerate() {
            match self.style {
                Style::Text => {
                    out.push_str(row.join(" | ").trim_end_matches([' ', '|']));
                    out.push('\n');
                }
                Style::Markdown => {
                    out.push('|');
                    for cell in row {
                        if cell.is_empty() {
                            out.push_str(" |");
                        } else {
                            let _ = write!(out, " {cell} |");
                        }
                    }
                    // The first row says how many columns there are; the others may have fewer.
                    if at == 0 {
                        out.push_str(&" |".repeat(self.columns - row.len()));
                    }
                    out.push('\n');
                    if at == 0 {
                        out.push('|');
                        out.push_str(&" - |".repeat(self.columns));
                        out.push('\n');
                    }
                }
            }
        }
        out.truncate(out.trim_end().len());
        out
    }
}
