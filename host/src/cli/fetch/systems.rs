//! Tables of autonomous systems (first address, last address, number, name) as one database for both families.
//!
//! The host reads one format only, and a lookup in a table of half a million ranges would need an index of its own. Knows
//! neither files nor packages.

use std::io::{Read, Write};
use std::net::{AddrParseError, IpAddr};
use std::num::ParseIntError;

use mmdb_writer::{Ipv4Aliasing, Value, Writer};

/// The most rows of all tables; there are half a million.
const ROWS_MAX: u64 = 10_000_000;

/// A table that cannot be read or written as a database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SystemsError {
    #[error("it is malformed: {0}")]
    Csv(#[from] csv::Error),
    #[error("row {row} has {found} cells; it must have 4")]
    Cells { row: u64, found: usize },
    #[error("row {row} has an invalid address: {source}")]
    Address { row: u64, source: AddrParseError },
    #[error("row {row} has an invalid system number: {source}")]
    Number { row: u64, source: ParseIntError },
    #[error("row {row} cannot be stored: {source}")]
    Range {
        row: u64,
        source: mmdb_writer::Error,
    },
    #[error("there are more than {ROWS_MAX} rows")]
    TooMany,
    #[error("the database cannot be written: {0}")]
    Write(#[source] mmdb_writer::Error),
}

/// A database in the making.
pub(crate) struct Systems {
    writer: Writer,
    rows: u64,
}

impl Systems {
    pub(crate) fn new() -> Self {
        // Nothing stands for IPv4 in IPv6 here: whoever asks unwraps such an address first.
        let writer = Writer::builder("ASN")
            .ipv4_aliasing(Ipv4Aliasing::Disabled)
            .description(&[("en", "Autonomous systems by network")])
            .build();
        Self { writer, rows: 0 }
    }

    /// Takes a table in.
    pub(crate) fn read(&mut self, table: impl Read) -> Result<(), SystemsError> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(table);
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record)? {
            self.rows += 1;
            if self.rows > ROWS_MAX {
                return Err(SystemsError::TooMany);
            }
            self.row(&record)?;
        }
        Ok(())
    }

    fn row(&mut self, record: &csv::StringRecord) -> Result<(), SystemsError> {
        let row = self.rows;
        let cells: Vec<&str> = record.iter().collect();
        let [first, last, number, name] = cells.as_slice() else {
            return Err(SystemsError::Cells {
                row,
                found: cells.len(),
            });
        };
        let address = |text: &str| {
            text.parse::<IpAddr>()
                .map_err(|source| SystemsError::Address { row, source })
        };
        let number: u32 = number
            .parse()
            .map_err(|source| SystemsError::Number { row, source })?;
        let entry = Value::map([
            ("autonomous_system_number", Value::from(number)),
            ("autonomous_system_organization", Value::from(*name)),
        ]);
        let (first, last) = (address(first)?, address(last)?);
        self.writer
            .insert_range(first, last, &entry)
            .map_err(|source| SystemsError::Range { row, source })
    }

    /// Writes the database.
    pub(crate) fn write(self, out: impl Write) -> Result<(), SystemsError> {
        self.writer.write_to(out).map_err(SystemsError::Write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(table: &str) -> String {
        Systems::new()
            .read(table.as_bytes())
            .expect_err("it is refused")
            .to_string()
    }

    #[test]
    fn rows_that_say_nothing_are_refused_by_their_number() {
        assert_eq!(
            refusal("1.0.0.0,1.0.0.255,1\n"),
            "row 1 has 3 cells; it must have 4"
        );
        assert!(
            refusal("1.0.0.0,1.0.0.255,1,a\n1.0.0,1.0.0.255,1,a\n")
                .starts_with("row 2 has an invalid address")
        );
        assert!(
            refusal("1.0.0.0,1.0.0.255,-1,a\n").starts_with("row 1 has an invalid system number")
        );
        assert!(refusal("1.0.0.9,1.0.0.1,1,a\n").starts_with("row 1 cannot be stored"));
        assert!(refusal("1.0.0.0,2001::,1,a\n").starts_with("row 1 cannot be stored"));
        assert!(refusal("1.0.0.0,1.0.0.255,1,\u{0}\n\u{FFFD}").starts_with("row 2 has 1 cells"));
    }
}
