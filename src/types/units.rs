//! Durations (`90s`, `10m`, `2h`) and sizes (`64MiB`) as config and command line write them.

use std::time::Duration;

/// Why a text is not a duration or a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a duration.
    #[error("{0:?} is not a duration: write a whole number and ms, s, m, h or d, as in \"90s\"")]
    Duration(String),
    /// Not a size.
    #[error("{0:?} is not a size: write a whole number and B, KiB, MiB or GiB, as in \"64MiB\"")]
    Size(String),
}

const DURATION_UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

const SIZE_UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim_start()))
}

/// Reads `90s`, `10m`, `2h`, `1500ms`, `1d`; a bare `0` is zero.
///
/// # Errors
/// [`UnitError::Duration`] for anything else, negative and fractional numbers included.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let bad = || UnitError::Duration(text.to_owned());
    let (number, unit) = split(text).ok_or_else(bad)?;
    if unit.is_empty() && number == 0 {
        return Ok(Duration::ZERO);
    }
    let (_, factor) = DURATION_UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(bad)?;
    number
        .checked_mul(*factor)
        .map(Duration::from_millis)
        .ok_or_else(bad)
}

/// Reads `64MiB`, `10kB`, `512B`; a bare number is bytes.
///
/// # Errors
/// [`UnitError::Size`] for anything else.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let bad = || UnitError::Size(text.to_owned());
    let (number, unit) = split(text).ok_or_else(bad)?;
    if unit.is_empty() {
        return Ok(number);
    }
    let (_, factor) = SIZE_UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(bad)?;
    number.checked_mul(*factor).ok_or_else(bad)
}

/// The shortest exact form: `90s` stays `90s`, `3600s` becomes `1h`.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    let (unit, factor) = DURATION_UNITS
        .iter()
        .rev()
        .find(|(_, factor)| millis % factor == 0)
        .copied()
        .unwrap_or(("ms", 1));
    format!("{}{unit}", millis / factor)
}

/// The shortest exact form in binary units: `67108864` becomes `64MiB`.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    for (unit, factor) in [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes > 0 && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_come_back() {
        for text in ["90s", "10m", "2h", "1500ms", "0s", "3d"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
        for text in ["64MiB", "10KiB", "1GiB", "7B"] {
            assert_eq!(format_size(parse_size(text).unwrap()), text);
        }
        for bad in [
            "",
            "s",
            "-1s",
            "1.5s",
            "10 parsecs",
            "10",
            "99999999999999999999s",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        for bad in ["", "MiB", "-1B", "64MiBs"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
