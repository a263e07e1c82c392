//! Sending signals so that they never reach a process that reused a number. Knows no policy.

use super::Identity;
use super::identity::identity_of;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;

/// The signals that flockd sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Ask to end.
    Term,
    /// End.
    Kill,
    /// Go on after a stop, so that a stopped process can see its TERM.
    Cont,
    /// Passed on from the caller's terminal or parent: a raw signal number.
    Raw(i32),
}

impl Sent {
    fn to_rustix(self) -> Option<Signal> {
        match self {
            Self::Term => Some(Signal::TERM),
            Self::Kill => Some(Signal::KILL),
            Self::Cont => Some(Signal::CONT),
            Self::Raw(number) => Signal::from_named_raw(number),
        }
    }
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Opens a handle of exactly this process; none when it is gone or the number is someone else's.
///
/// The handle becomes readable when the process ends.
#[must_use]
pub fn open_process(identity: Identity) -> Option<OwnedFd> {
    let handle = pidfd_open(pid_of(identity.pid)?, PidfdFlags::NONBLOCK).ok()?;
    // The number was bound to a process by the open; only now is the comparison free of races.
    (identity_of(identity.pid) == Some(identity)).then_some(handle)
}

/// Signals exactly this process. Answers whether it was there to be signalled.
pub fn signal(identity: Identity, sent: Sent) -> bool {
    let Some(signal) = sent.to_rustix() else {
        return false;
    };
    open_process(identity).is_some_and(|handle| pidfd_send_signal(&handle, signal).is_ok())
}

/// Signals a process group. Only for a group whose leader the caller has not reaped yet.
pub fn signal_group(leader: u32, sent: Sent) -> bool {
    let (Some(pid), Some(signal)) = (pid_of(leader), sent.to_rustix()) else {
        return false;
    };
    rustix::process::kill_process_group(pid, signal).is_ok()
}
