//! Moments as clients read them.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A moment in UTC. Its JSON form is the text of RFC 3339, such as `2026-07-14T07:24:47.123Z`, with as many decimals of
/// the second as it has; its JSON Schema has the format `date-time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(#[serde(with = "time::serde::rfc3339")] OffsetDateTime);

impl Timestamp {
    /// Now, by the host's clock.
    pub fn now() -> Self {
        Self(OffsetDateTime::now_utc())
    }

    /// So many milliseconds after the beginning of 1970. A moment after the year 9999 becomes its last second.
    pub fn from_unix_ms(milliseconds: u64) -> Self {
        let since = Duration::from_millis(milliseconds.min(LAST_MS));
        Self(OffsetDateTime::UNIX_EPOCH + since)
    }

    /// Milliseconds since the beginning of 1970, rounded down; zero before it.
    pub fn unix_ms(&self) -> u64 {
        u64::try_from(self.0.unix_timestamp_nanos() / 1_000_000).unwrap_or_default()
    }

    /// The same without what is finer than a millisecond.
    #[must_use]
    pub fn to_the_millisecond(&self) -> Self {
        Self::from_unix_ms(self.unix_ms())
    }
}

/// The last second of the year 9999: RFC 3339 has four digits for the year.
const LAST_MS: u64 = 253_402_300_799_000;

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.format(&Rfc3339).map_err(|_| fmt::Error)?)
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(milliseconds: u64, expected: &str) {
        let moment = Timestamp::from_unix_ms(milliseconds);
        assert_eq!(moment.to_string(), expected);
        let json = serde_json::to_string(&moment).expect("JSON");
        assert_eq!(json, format!("\"{expected}\""));
        let read: Timestamp = serde_json::from_str(&json).expect("a moment");
        assert_eq!(read, moment);
    }

    #[test]
    fn a_moment_is_written_with_the_decimals_that_it_has() {
        check(0, "1970-01-01T00:00:00Z");
        check(1_784_013_887_000, "2026-07-14T07:24:47Z");
        check(1_784_013_887_120, "2026-07-14T07:24:47.12Z");
        check(253_402_300_799_000, "9999-12-31T23:59:59Z");
        let beyond = Timestamp::from_unix_ms(u64::MAX);
        assert_eq!(beyond.to_string(), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn what_is_finer_than_a_millisecond_is_left_out() {
        let fine: Timestamp =
            serde_json::from_str("\"2026-07-14T09:24:47.123456789+02:00\"").expect("a moment");
        assert_eq!(fine.unix_ms(), 1_784_013_887_123);
        let told = fine.to_the_millisecond().to_string();
        assert_eq!(told, "2026-07-14T07:24:47.123Z");
        assert!(serde_json::from_str::<Timestamp>("\"2026-07-14\"").is_err());
    }

    #[test]
    fn its_schema_names_the_format() {
        let schema = crate::schema::of_output::<Option<Timestamp>>();
        assert_eq!(schema["format"], "date-time");
    }
}
