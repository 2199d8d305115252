//! Points in time as they stand in records: UTC, to the millisecond.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since 1970, written as RFC 3339 in UTC with milliseconds.
///
/// It is only a value: this crate has no clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "String", try_from = "String")]
pub struct Timestamp(i64);

/// A text that is no point in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time: expected RFC 3339, as in 2026-01-31T12:00:00.000Z")]
pub struct InvalidTimestamp;

impl Timestamp {
    /// The time so many milliseconds after 1970, kept within the years that RFC 3339 can write, 0 to the last days of 9999.
    pub const fn from_unix_ms(unix_ms: i64) -> Self {
        const FIRST: i64 = -62_167_219_200_000;
        // 9999-12-30T22:00:00Z, the last that has a date in every time zone.
        const LAST: i64 = 253_402_207_200_000;
        Timestamp(match unix_ms {
            ..FIRST => FIRST,
            FIRST..=LAST => unix_ms,
            _ => LAST,
        })
    }

    /// Milliseconds since 1970.
    pub const fn unix_ms(self) -> i64 {
        self.0
    }

    /// How many milliseconds have gone by since `earlier`; none when the clock was set back.
    pub fn ms_since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0).max(0).unsigned_abs()
    }

    /// The time so many milliseconds later.
    pub const fn plus_ms(self, ms: u64) -> Timestamp {
        Timestamp::from_unix_ms(self.0.saturating_add_unsigned(ms))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => Err(fmt::Error),
        }
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> String {
        time.to_string()
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let time: jiff::Timestamp = text.parse().map_err(|_| InvalidTimestamp)?;
        Ok(Timestamp::from_unix_ms(time.as_millisecond()))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTimestamp;

    fn try_from(text: String) -> Result<Self, InvalidTimestamp> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c06_a_time_is_written_as_rfc_3339_in_utc_with_milliseconds() {
        #[track_caller]
        fn check(unix_ms: i64, text: &str) {
            let time = Timestamp::from_unix_ms(unix_ms);
            assert_eq!(time.to_string(), text, "{unix_ms}");
            assert_eq!(text.parse(), Ok(time));
        }
        check(0, "1970-01-01T00:00:00.000Z");
        check(1_700_000_000_000, "2023-11-14T22:13:20.000Z");
        check(1_700_000_000_007, "2023-11-14T22:13:20.007Z");
        check(-1, "1969-12-31T23:59:59.999Z");
        check(i64::MAX, "9999-12-30T22:00:00.000Z");
        check(i64::MIN, "0000-01-01T00:00:00.000Z");
        assert_eq!("2023-11-14T23:13:20+01:00".parse(), Ok(Timestamp::from_unix_ms(1_700_000_000_000)));
        assert_eq!("yesterday".parse::<Timestamp>(), Err(InvalidTimestamp));
        let time = Timestamp::from_unix_ms(7);
        assert_eq!(serde_json::to_value(time).unwrap(), "1970-01-01T00:00:00.007Z");
        assert_eq!(serde_json::from_value::<Timestamp>("1970-01-01T00:00:00.007Z".into()).unwrap(), time);
        assert!(serde_json::from_value::<Timestamp>("yesterday".into()).is_err());
    }

    #[test]
    fn a_time_is_counted_from_another_one_and_never_below_nothing() {
        let (early, late) = (Timestamp::from_unix_ms(-3), Timestamp::from_unix_ms(7));
        assert_eq!((late.ms_since(early), early.ms_since(late), late.ms_since(late)), (10, 0, 0));
        assert_eq!(early.plus_ms(10), late);
        assert_eq!((late.unix_ms(), early.unix_ms()), (7, -3));
        let last = Timestamp::from_unix_ms(i64::MAX);
        assert_eq!((late.plus_ms(u64::MAX), last.plus_ms(1)), (last, last));
    }
}
