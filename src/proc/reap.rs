//! Waiting for children and for events: subreaper, waitpid, rusage, signalfd, poll. Knows no run.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use rustix::process::WaitOptions;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// One answer of [`reap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    /// A child ended and was waited for.
    Ended {
        /// Its process id.
        pid: u32,
        /// How.
        status: ExitStatus,
    },
    /// There are children, and none of them has ended.
    Waiting,
    /// There is no child.
    NoChild,
}

/// Waits for one ended child without blocking.
#[must_use]
pub fn reap() -> Reaped {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(None) => return Reaped::Waiting,
            Ok(Some((pid, status))) => {
                let ended = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => ExitStatus::Code(code),
                    (None, Some(signal)) => ExitStatus::Signal(signal),
                    (None, None) => continue,
                };
                return Reaped::Ended {
                    pid: pid.as_raw_nonzero().get().unsigned_abs(),
                    status: ended,
                };
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Reaped::NoChild,
        }
    }
}

/// Waits for one known child, blocking. For a child that is known to be ending.
pub fn reap_pid(pid: u32) {
    let Ok(raw) = i32::try_from(pid) else { return };
    while let Err(Errno::EINTR) = waitpid(Pid::from_raw(raw), None) {}
}

/// Makes orphans below this process its children.
///
/// # Errors
/// The kernel's.
pub fn become_subreaper() -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true).map_err(io::Error::from)
}

/// CPU time and largest resident size of the children waited for so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChildUsage {
    /// User mode, milliseconds.
    pub user_ms: u64,
    /// Kernel mode, milliseconds.
    pub system_ms: u64,
    /// Of the largest child ever waited for.
    pub max_rss_kib: u64,
}

/// What `getrusage(RUSAGE_CHILDREN)` says.
#[must_use]
pub fn children_usage() -> ChildUsage {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return ChildUsage::default();
    };
    let millis = |n: i64| u64::try_from(n).unwrap_or(0);
    ChildUsage {
        user_ms: millis(usage.user_time().num_milliseconds()),
        system_ms: millis(usage.system_time().num_milliseconds()),
        max_rss_kib: millis(usage.max_rss()),
    }
}

/// A signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its number.
    pub number: i32,
    /// The kernel sent it, as a terminal's does to a whole foreground group.
    pub from_kernel: bool,
}

/// Signals as readable events. They stay blocked in this thread for the life of the process.
#[derive(Debug)]
pub struct SignalQueue(SignalFd);

/// `si_code` of a signal that the kernel sent.
const SI_KERNEL: i32 = 0x80;

/// Sets of signals to take as events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalSet {
    /// What a runner reacts to: CHLD, TERM, INT, HUP.
    Runner,
    /// What a foreground run passes on besides: QUIT, WINCH, USR1, USR2.
    Foreground,
}

impl SignalQueue {
    /// Blocks the set in the calling thread and opens the queue. Call before any thread is started.
    ///
    /// # Errors
    /// The kernel's, when descriptors run out.
    pub fn new(set: SignalSet) -> io::Result<Self> {
        let mut mask = SigSet::empty();
        for signal in [
            Signal::SIGCHLD,
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGHUP,
        ] {
            mask.add(signal);
        }
        if set == SignalSet::Foreground {
            for signal in [
                Signal::SIGQUIT,
                Signal::SIGWINCH,
                Signal::SIGUSR1,
                Signal::SIGUSR2,
            ] {
                mask.add(signal);
            }
        }
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), None)?;
        Ok(Self(SignalFd::with_flags(
            &mask,
            SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
        )?))
    }

    /// The next signal that arrived, without blocking.
    #[must_use]
    pub fn next(&self) -> Option<Arrived> {
        let info = self.0.read_signal().ok().flatten()?;
        Some(Arrived {
            number: i32::try_from(info.ssi_signo).unwrap_or(0),
            from_kernel: info.ssi_code == SI_KERNEL,
        })
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `SIGCHLD`'s number.
pub const SIGCHLD: i32 = Signal::SIGCHLD as i32;
/// `SIGTERM`'s number.
pub const SIGTERM: i32 = Signal::SIGTERM as i32;
/// `SIGINT`'s number.
pub const SIGINT: i32 = Signal::SIGINT as i32;
/// `SIGQUIT`'s number.
pub const SIGQUIT: i32 = Signal::SIGQUIT as i32;
/// `SIGHUP`'s number.
pub const SIGHUP: i32 = Signal::SIGHUP as i32;

/// Waits until one of `fds` is readable or hung up, or the time is over; answers which are ready.
///
/// `None` waits without end. An interrupted wait answers that none is ready.
///
/// # Errors
/// The kernel's, other than an interruption.
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::new(*fd, PollFlags::POLLIN))
        .collect();
    let timeout = match timeout {
        None => PollTimeout::NONE,
        // Rounded up: waking a millisecond early would spin until the deadline is reached.
        Some(duration) => {
            let millis = duration.as_micros().div_ceil(1_000);
            PollTimeout::from(u16::try_from(millis).unwrap_or(u16::MAX))
        }
    };
    match nix::poll::poll(&mut polled, timeout) {
        Ok(_) | Err(Errno::EINTR) => Ok(polled
            .iter()
            .map(|fd| fd.revents().is_some_and(|seen| !seen.is_empty()))
            .collect()),
        Err(errno) => Err(errno.into()),
    }
}

/// Runs `action` with the terminal's stop signal held back, so that a spawn cannot be stopped in half.
pub fn without_stop<T>(action: impl FnOnce() -> T) -> T {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGTSTP);
    let mut before = SigSet::empty();
    let blocked = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), Some(&mut before)).is_ok();
    let result = action();
    if blocked {
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
    }
    result
}
