//! The daemon's clock, ids and chance: what the pure core is given from outside.

use crate::engine::IdSource;
use crate::types::{Now, RunId, Timestamp};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Wall clock for labels, a monotonic clock for timers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> Now {
        Now {
            wall: wall(),
            mono: self.start.elapsed(),
        }
    }

    /// The instant that a monotonic reading of this clock means.
    pub(super) fn instant(&self, mono: std::time::Duration) -> Instant {
        self.start + mono
    }
}

/// The wall clock, as a label.
pub(super) fn wall() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// ULIDs for runs, ULID randomness for tokens and jitter.
#[derive(Debug, Default)]
pub(super) struct Ulids;

impl IdSource for Ulids {
    fn run_id(&mut self) -> RunId {
        let text = ulid::Ulid::generate().to_string();
        RunId::new(&text).expect("a ULID is letters and digits only")
    }

    fn token(&mut self) -> String {
        format!(
            "{:020x}{:020x}",
            ulid::Ulid::generate().random(),
            ulid::Ulid::generate().random()
        )
    }

    fn jitter(&mut self) -> f64 {
        let bits =
            u32::try_from(ulid::Ulid::generate().random() & u128::from(u32::MAX)).unwrap_or(0);
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }
}
