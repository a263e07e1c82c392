//! Who a process is: pid and start time, the boot it belongs to, the clock it is measured by. Knows no signals.

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// A process that cannot be mistaken for a later one with the same number (within one boot).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot, from `/proc/<pid>/stat`.
    pub start_ticks: u64,
}

impl Identity {
    /// Whether this very process still exists and is not a zombie.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        stat_of(self.pid)
            .is_some_and(|stat| stat.start_ticks == self.start_ticks && !stat.is_dead())
    }
}

/// What `/proc/<pid>/stat` says, as far as flockd needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// Process id.
    pub pid: u32,
    /// One letter: `R`, `S`, `D`, `T`, `Z`, …
    pub state: char,
    /// Parent.
    pub parent: u32,
    /// Process group.
    pub group: u32,
    /// Session.
    pub session: u32,
    /// CPU ticks of itself and of the children it has waited for.
    pub cpu_ticks: u64,
    /// Start time in clock ticks since boot.
    pub start_ticks: u64,
}

impl ProcessStat {
    /// The identity part.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity {
            pid: self.pid,
            start_ticks: self.start_ticks,
        }
    }

    /// A zombie, or on its way there.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// Reads one stat line. The name in it may contain anything, so fields count from the last `)`.
#[must_use]
pub(super) fn parse_stat(text: &str) -> Option<ProcessStat> {
    let pid = text.split(' ').next()?.parse().ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field N of proc(5) is at N-3 here: the rest starts with field 3, the state.
    let number = |field: usize| {
        fields
            .get(field - 3)
            .and_then(|text| text.parse::<u64>().ok())
    };
    let small = |field: usize| number(field).and_then(|n| u32::try_from(n).ok());
    Some(ProcessStat {
        pid,
        state: fields.first()?.chars().next()?,
        parent: small(4)?,
        group: small(5)?,
        session: small(6)?,
        cpu_ticks: number(14)? + number(15)? + number(16).unwrap_or(0) + number(17).unwrap_or(0),
        start_ticks: number(22)?,
    })
}

/// Reads `/proc/<pid>/stat`; none when there is no such process.
#[must_use]
pub fn stat_of(pid: u32) -> Option<ProcessStat> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The identity of a process; none when there is no such process. A zombie still has one.
#[must_use]
pub fn identity_of(pid: u32) -> Option<Identity> {
    stat_of(pid).map(|stat| stat.identity())
}

/// The calling process's identity.
#[must_use]
pub fn own_identity() -> Identity {
    let pid = std::process::id();
    identity_of(pid).unwrap_or(Identity {
        pid,
        start_ticks: 0,
    })
}

/// The kernel's random id of this boot; `unknown` when `/proc` does not tell.
#[must_use]
pub fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| first_line("/proc/sys/kernel/random/boot_id"))
}

/// This host's name; `unknown` when `/proc` does not tell.
#[must_use]
pub fn hostname() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| first_line("/proc/sys/kernel/hostname"))
}

fn first_line(path: &str) -> String {
    std::fs::read_to_string(path)
        .ok()
        .and_then(|text| text.lines().next().map(|line| line.trim().to_owned()))
        .filter(|line| !line.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Milliseconds since boot, time asleep included; never goes back, equal for all processes of a boot.
#[must_use]
pub fn boot_millis() -> u64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(0, |time| {
        u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000
            + u64::try_from(time.tv_nsec()).unwrap_or(0) / 1_000_000
    })
}

/// The effective user of this process.
#[must_use]
pub fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line = "42 (a b) (c) S 7 42 41 0 -1 4194560 1 0 0 0 5 6 7 8 20 0 1 0 12345 1 1\n";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.pid, stat.state, stat.parent), (42, 'S', 7));
        assert_eq!((stat.group, stat.session), (42, 41));
        assert_eq!((stat.cpu_ticks, stat.start_ticks), (26, 12345));
        assert_eq!(parse_stat("garbage"), None);
    }

    #[test]
    fn own_identity_is_alive_and_another_start_time_is_not() {
        let own = own_identity();
        assert!(own.is_alive());
        assert!(
            !Identity {
                start_ticks: own.start_ticks + 1,
                ..own
            }
            .is_alive()
        );
        assert!(boot_millis() > 0);
        assert_ne!(boot_id(), "unknown");
    }
}
