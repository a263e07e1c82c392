//! Ends what is left of a run by the token its processes carry. Never signals a process without that token.

use super::Identity;
use super::identity::{identity_of, stat_of};
use super::signal::open_process;
use rustix::process::{Signal, pidfd_send_signal};
use std::time::{Duration, Instant};

/// The variable by which a left-over process is recognised as ours (config §3).
pub const TOKEN_VARIABLE: &str = "FLOCKD_TOKEN";

/// A token shorter than this is refused: it could match by accident.
const TOKEN_BYTES_MIN: usize = 8;

/// How long a sweep goes on: a process in uninterruptible sleep ends only when its I/O does.
const SWEEP_TIME_MAX: Duration = Duration::from_secs(10);

/// Between two passes: a killed process needs a moment until it is gone, and there is no event for
/// "no process carries this token".
const PASS_PAUSE: Duration = Duration::from_millis(2);

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepReport {
    /// Different processes signalled.
    pub killed: u32,
    /// Whether the last pass found none. Not guaranteed: that a process which cleared its environment
    /// is gone.
    pub clean: bool,
}

/// Kills every process that carries `FLOCKD_TOKEN=<token>`, passes on until a pass finds none.
///
/// The calling process itself is left out. Bounded to 10 seconds; `clean` says whether it got there.
#[must_use]
pub fn sweep_token(token: &str) -> SweepReport {
    if token.len() < TOKEN_BYTES_MIN {
        return SweepReport {
            killed: 0,
            clean: true,
        };
    }
    let started = Instant::now();
    let mut killed: std::collections::BTreeSet<Identity> = std::collections::BTreeSet::new();
    loop {
        let found = carriers(token);
        let count = u32::try_from(killed.len()).unwrap_or(u32::MAX);
        if found.is_empty() {
            return SweepReport {
                killed: count,
                clean: true,
            };
        }
        if started.elapsed() > SWEEP_TIME_MAX {
            return SweepReport {
                killed: count,
                clean: false,
            };
        }
        for identity in found {
            if kill_carrier(identity, token) {
                killed.insert(identity);
            }
        }
        std::thread::sleep(PASS_PAUSE);
    }
}

/// The living processes that carry the token, the caller left out.
#[must_use]
pub fn carriers(token: &str) -> Vec<Identity> {
    let own = std::process::id();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u32>().ok())
        })
        .filter(|pid| *pid != own && carries(*pid, token))
        .filter_map(stat_of)
        .filter(|stat| !stat.is_dead())
        .map(|stat| stat.identity())
        .collect()
}

fn carries(pid: u32, token: &str) -> bool {
    let Ok(environ) = std::fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    environ.split(|byte| *byte == 0).any(|entry| {
        entry
            .strip_prefix(TOKEN_VARIABLE.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
            .is_some_and(|value| value == token.as_bytes())
    })
}

/// The handle is opened first and the token read again after it: the signal goes to what was checked.
fn kill_carrier(identity: Identity, token: &str) -> bool {
    let Some(handle) = open_process(identity) else {
        return false;
    };
    carries(identity.pid, token)
        && identity_of(identity.pid) == Some(identity)
        && pidfd_send_signal(&handle, Signal::KILL).is_ok()
}
