//! Calendar months in UTC.

use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime};

/// A calendar month in UTC: months since January of the year 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Month(u32);

impl Month {
    /// The month of a time in Unix seconds.
    pub(crate) fn of(now_s: u64) -> Self {
        let at = i64::try_from(now_s)
            .ok()
            .and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
        let at = at.unwrap_or(OffsetDateTime::UNIX_EPOCH);
        Self(u32::try_from(at.year()).unwrap_or(0) * 12 + u32::from(u8::from(at.month())) - 1)
    }

    /// Reads `2026-11`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (year, month) = text
            .split_once('-')
            .filter(|(year, month)| year.len() == 4 && month.len() == 2)?;
        let (year, month): (u32, u32) = (year.parse().ok()?, month.parse().ok()?);
        ((1970..=9998).contains(&year) && (1..=12).contains(&month))
            .then(|| Self(year * 12 + month - 1))
    }

    /// As it is stored.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// As it was stored.
    pub(crate) fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// So many months before.
    pub(crate) fn earlier(self, months: u32) -> Self {
        Self(self.0.saturating_sub(months))
    }

    /// When it begins, in Unix seconds.
    pub(crate) fn begins_at(self) -> u64 {
        self.earlier(1).ends_at()
    }

    /// When the next one begins, in Unix seconds.
    pub(crate) fn ends_at(self) -> u64 {
        let next = self.0 + 1;
        let month = u8::try_from(next % 12 + 1)
            .ok()
            .and_then(|month| time::Month::try_from(month).ok());
        let year = i32::try_from(next / 12).ok();
        let day = year
            .zip(month)
            .and_then(|(year, month)| Date::from_calendar_date(year, month, 1).ok());
        day.and_then(|day| u64::try_from(day.midnight().assume_utc().unix_timestamp()).ok())
            .unwrap_or(u64::MAX)
    }
}

impl std::fmt::Display for Month {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}", self.0 / 12, self.0 % 12 + 1)
    }
}

/// As it is read: what an audit tells is for people.
impl std::fmt::Debug for Month {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_ends_where_the_next_begins() {
        let check = |text: &str, begins: u64, ends: u64| {
            let month = Month::of(begins);
            assert_eq!(
                (Month::of(ends - 1), month.ends_at()),
                (month, ends),
                "{text}"
            );
            assert_eq!(
                (month.to_string().as_str(), Month::parse(text)),
                (text, Some(month))
            );
            assert!(Month::of(ends) > month);
        };
        check("1970-01", 0, 2_678_400);
        check("2024-02", 1_706_745_600, 1_709_251_200);
        check("2026-12", 1_796_083_200, 1_798_761_600);
        for text in [
            "2026-13", "2026-00", "26-01", "2026-1", "2026", "", "0000-01", "+026-01",
        ] {
            assert_eq!(Month::parse(text), None, "{text}");
        }
    }
}
