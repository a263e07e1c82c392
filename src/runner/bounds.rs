//! The bounds of a run as arithmetic: when to look again, when a run is idle or writes too much. No I/O.

use super::spec::RunLimits;
use std::time::Duration;

/// The first look at the outputs after the spawn: a short run is over before it.
const LOOK_FIRST: Duration = Duration::from_millis(50);
/// The shortest time between two looks: at 5 GB/s a child writes 100 MB in it.
const LOOK_MIN: Duration = Duration::from_millis(20);
/// The longest time between two looks.
const LOOK_MAX: Duration = Duration::from_secs(1);
/// How much a child should at most write between two looks.
const OVERSHOOT: u64 = 8 << 20;
/// The longest time between two looks at the tree's CPU time: each reads all of `/proc`.
const IDLE_LOOK_MAX: Duration = Duration::from_secs(30);
/// The shortest.
const IDLE_LOOK_MIN: Duration = Duration::from_millis(50);
/// A tree that uses less than 1/100 of a CPU does nothing: runtimes wake up for timers while they hang.
const IDLE_CPU_SHARE: u64 = 100;

/// Sizes of the outputs, and when to look at them again.
#[derive(Debug, Clone)]
pub(super) struct OutputWatch {
    limits: RunLimits,
    seen: [u64; 2],
    seen_at: Duration,
    interval: Duration,
}

impl OutputWatch {
    /// Starts at the spawn.
    #[must_use]
    pub(super) fn new(limits: RunLimits, now: Duration) -> Self {
        Self {
            limits,
            seen: [0; 2],
            seen_at: now,
            interval: LOOK_FIRST,
        }
    }

    /// When to look next.
    #[must_use]
    pub(super) fn due(&self) -> Duration {
        self.seen_at + self.interval
    }

    /// Takes a look's result; answers whether something was written since the last one.
    pub(super) fn looked(&mut self, sizes: [u64; 2], now: Duration) -> bool {
        let before: u64 = self.seen.iter().sum();
        let grown = sizes.iter().sum::<u64>().saturating_sub(before);
        let elapsed = now
            .saturating_sub(self.seen_at)
            .max(Duration::from_millis(1));
        let changed = sizes != self.seen;
        (self.seen, self.seen_at) = (sizes, now);
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let per_overshoot = OVERSHOOT.saturating_mul(millis) / grown.max(1);
        let wanted = Duration::from_millis(per_overshoot).min(self.interval * 2);
        self.interval = wanted.clamp(LOOK_MIN, LOOK_MAX);
        changed
    }

    /// Whether a stream passed `output_stop`.
    #[must_use]
    pub(super) fn is_over_stop(&self) -> bool {
        let stop = self.limits.output_stop;
        stop > 0 && self.seen.iter().any(|size| *size > stop)
    }

    /// The part of each stream beyond `output_max`, as (from, length).
    #[must_use]
    pub(super) fn surplus(&self) -> [Option<(u64, u64)>; 2] {
        let max = self.limits.output_max;
        self.seen
            .map(|size| (size > max).then(|| (max, size - max)))
    }
}

/// Whether a run does anything.
#[derive(Debug, Clone)]
pub(super) struct IdleWatch {
    bound: Duration,
    active_at: Duration,
    looked_at: Duration,
    cpu_ms: u64,
}

impl IdleWatch {
    /// Starts at the spawn; none when the bound is off.
    #[must_use]
    pub(super) fn new(limits: &RunLimits, now: Duration) -> Option<Self> {
        let bound = Duration::from_millis(limits.idle_ms);
        (!bound.is_zero()).then_some(Self {
            bound,
            active_at: now,
            looked_at: now,
            cpu_ms: 0,
        })
    }

    /// When to look at the tree's CPU time next.
    #[must_use]
    pub(super) fn due(&self) -> Duration {
        let interval = (self.bound / 8).clamp(IDLE_LOOK_MIN, IDLE_LOOK_MAX);
        (self.looked_at + interval)
            .min((self.active_at + self.bound).max(self.looked_at + IDLE_LOOK_MIN))
    }

    /// Output was seen.
    pub(super) fn output_seen(&mut self, now: Duration) {
        self.active_at = now;
    }

    /// Takes the tree's CPU time in milliseconds; answers whether the run has been idle for its bound.
    pub(super) fn looked(&mut self, cpu_ms: u64, now: Duration) -> bool {
        let elapsed =
            u64::try_from(now.saturating_sub(self.looked_at).as_millis()).unwrap_or(u64::MAX);
        let used = cpu_ms.saturating_sub(self.cpu_ms);
        if used > 0 && used.saturating_mul(IDLE_CPU_SHARE) >= elapsed {
            self.active_at = now;
        }
        self.looked_at = now;
        // Time of a process that ended unseen may be missing from a later look; never count it twice.
        self.cpu_ms = self.cpu_ms.max(cpu_ms);
        now.saturating_sub(self.active_at) >= self.bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::spec::tests::sample;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn looks_come_faster_while_output_grows_and_slower_while_it_does_not() {
        let mut watch = OutputWatch::new(sample().limits, ms(0));
        assert_eq!(watch.due(), ms(50));
        assert!(watch.looked([100 << 20, 0], ms(50)));
        assert_eq!(watch.due(), ms(70));
        let mut now = ms(70);
        for _ in 0..10 {
            assert!(!watch.looked([100 << 20, 0], now));
            now = watch.due();
        }
        assert_eq!(watch.due() - now, Duration::ZERO);
        watch.looked([100 << 20, 0], now);
        assert_eq!(watch.due(), now + LOOK_MAX);
        assert_eq!(watch.surplus(), [Some((1 << 20, 99 << 20)), None]);
        assert!(!watch.is_over_stop());
    }

    #[test]
    fn idle_is_no_output_and_no_cpu_time_for_the_whole_bound() {
        let limits = RunLimits {
            idle_ms: 1_000,
            ..sample().limits
        };
        let mut watch = IdleWatch::new(&limits, ms(0)).unwrap();
        assert_eq!(watch.due(), ms(125));
        assert!(!watch.looked(10, ms(900)), "10 ms of CPU in 900 ms is work");
        assert!(
            !watch.looked(11, ms(1_800)),
            "1 ms is not, but the bound is not over"
        );
        assert!(watch.looked(11, ms(1_900)));
        watch.output_seen(ms(1_950));
        assert!(!watch.looked(11, ms(2_000)));
        assert!(IdleWatch::new(&sample().limits, ms(0)).is_none());
    }
}
