//! Tables for people: columns as wide as what stands in them, and text that a terminal shows and does not obey.

use std::fmt;

use super::printable;

/// Rows under a head.
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(head: &[&str]) -> Self {
        Self {
            rows: vec![head.iter().map(|&name| name.to_owned()).collect()],
        }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let shown = |cell: String| {
            if cell.is_empty() {
                "-".to_owned()
            } else {
                printable(&cell)
            }
        };
        self.rows.push(cells.into_iter().map(shown).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// A list as one cell; `-` where it is empty.
pub(super) fn joined<T: fmt::Display>(list: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = list.into_iter().map(|one| one.to_string()).collect();
    if all.is_empty() {
        "-".to_owned()
    } else {
        all.join(", ")
    }
}
