//! Wall-clock labels and the pair of clocks that the pure core is given.

use jiff::fmt::temporal::DateTimePrinter;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

/// A moment of wall-clock time in milliseconds since the Unix epoch: a label, never a timer.
///
/// Not guaranteed: that a later fact carries a later timestamp. Order comes from sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// `2026-01-01T00:00:00Z`: UTC, whole seconds, as state files carry it.
    #[must_use]
    pub fn seconds(self) -> String {
        self.print(0)
    }

    /// `2026-01-01T00:00:00.123Z`: UTC with milliseconds, as facts carry it.
    #[must_use]
    pub fn millis(self) -> String {
        self.print(3)
    }

    fn print(self, digits: u8) -> String {
        let clamped =
            jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        DateTimePrinter::new()
            .precision(Some(digits))
            .timestamp_to_string(&clamped)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.millis())
    }
}

impl std::str::FromStr for Timestamp {
    type Err = jiff::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<jiff::Timestamp>()
            .map(|t| Self(t.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The time an event is handled at: wall clock for labels, a monotonic reading for every timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The label.
    pub wall: Timestamp,
    /// Since an arbitrary fixed start; never goes back.
    pub mono: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_print_utc_and_come_back() {
        let t = Timestamp::from_millis(1_767_225_600_123);
        assert_eq!(t.millis(), "2026-01-01T00:00:00.123Z");
        assert_eq!(t.seconds(), "2026-01-01T00:00:00Z");
        assert_eq!(t.millis().parse::<Timestamp>().unwrap(), t);
    }
}
