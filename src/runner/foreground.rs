//! `flockd run -- CMD`: one child on the caller's terminal, under the same ceiling. Writes no fact.

use super::active::{Active, Surroundings};
use super::exit::ExitReport;
use super::protocol::{Message, StopHow};
use super::run::Phase;
use super::spec::RunSpec;
use crate::budget::SlotDir;
use crate::fsx::FsError;
use crate::fsx::lock::Lock;
use crate::proc::{
    Identity, SIGCHLD, Sent, SignalQueue, SignalSet, SpawnErrorKind, TOKEN_VARIABLE,
    become_subreaper, own_identity, signal, wait_readable,
};
use crate::types::Outcome;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A command to run on the caller's terminal.
#[derive(Debug, Clone)]
pub struct ForegroundSpec {
    /// The state directory.
    pub state_dir: PathBuf,
    /// Id, weight (`slots`), ceiling, bounds (deadline and grace count), token. Its `argv` and `env` are
    /// what `spec.json` shows; `cwd` likewise.
    pub run: RunSpec,
    /// What is run: may be no UTF-8.
    pub argv: Vec<OsString>,
    /// The complete environment, `FLOCKD_TOKEN` and `FLOCKD_RUN_ID` in it.
    pub env: Vec<(OsString, OsString)>,
    /// Take no slot: part of a run that has its own (no hold-and-wait). See [`is_nested`].
    pub nested: bool,
}

/// What happens meanwhile, for facts and messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForegroundEvent {
    /// No slot is free.
    WaitingForSlot,
    /// The child exists.
    Started {
        /// The child.
        identity: Identity,
        /// Slot files held.
        slots: Vec<u32>,
    },
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForegroundEnd {
    /// The same as in `exit.json`, which is durable.
    pub report: ExitReport,
    /// The child's code, or 128 + its signal; 3 at its deadline, 130 when stopped while it waited,
    /// 126 and 127 as shells have them for a program that cannot be started.
    pub exit_code: u8,
}

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum ForegroundError {
    /// The state directory cannot be used.
    #[error(transparent)]
    Files(#[from] FsError),
    /// Signals or waiting cannot be set up.
    #[error("cannot watch over a child: {0}")]
    System(#[from] std::io::Error),
}

/// Whether the calling process is part of a run of this state directory, whose slot it then uses.
#[must_use]
pub fn is_nested(state_dir: &Path) -> bool {
    let has = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let outer = std::env::var_os("FLOCKD_STATE_DIR").map(PathBuf::from);
    let same =
        outer.and_then(|outer| Some(outer.canonicalize().ok()? == state_dir.canonicalize().ok()?));
    has(TOKEN_VARIABLE) && has("FLOCKD_RUN_ID") && same == Some(true)
}

/// M for a client: its own, and while a daemon lives never more than the daemon's.
#[must_use]
pub fn client_ceiling(state_dir: &Path, slots: &SlotDir, own: u32) -> u32 {
    let lock = state_dir.join("lock");
    let daemon_lives = lock.is_file() && matches!(Lock::try_shared(&lock), Ok(None));
    match slots.ceiling() {
        Some(ceiling) if daemon_lives => own.clamp(1, ceiling),
        _ => own.max(1),
    }
}

/// Runs the command to its end; returns when its whole tree is gone, its end is durable and its slots
/// are free. `runs/<run-id>/` is there ([`super::hold_as_client`]). Must be called before any thread is started.
///
/// # Errors
/// [`ForegroundError`]: nothing was started. What goes wrong later is an outcome.
pub fn foreground(
    spec: ForegroundSpec,
    on_event: &mut dyn FnMut(ForegroundEvent),
) -> Result<ForegroundEnd, ForegroundError> {
    let signals = SignalQueue::new(SignalSet::Foreground)?;
    become_subreaper()?;
    let slots = SlotDir::open(&spec.state_dir)?;
    let slots = (!spec.nested).then_some(&slots);
    let surroundings = Surroundings::Terminal;
    let mut active = Active::new(
        spec.run,
        spec.state_dir,
        surroundings,
        slots,
        own_identity(),
    );
    active.argv = spec.argv;
    active.env = spec.env;
    let clock = Instant::now();
    let mut stopped_by = None;
    active.try_slots(clock.elapsed());
    while !active.is_over() {
        tell(&mut active, on_event);
        if active.report().is_some() {
            active.settle_alone(clock.elapsed());
            if active.is_over() {
                break;
            }
        }
        let mut fds = vec![signals.as_fd()];
        fds.extend(active.event_fd());
        let timeout = active.due().map(|at| at.saturating_sub(clock.elapsed()));
        let ready = wait_readable(&fds, timeout)?;
        on_signals(&mut active, &signals, &mut stopped_by, clock);
        if ready.get(1) == Some(&true) {
            active.try_slots(clock.elapsed());
        }
        active.on_time(clock.elapsed());
    }
    tell(&mut active, on_event);
    let exit_code = exit_code(&active, stopped_by);
    let report = active
        .report()
        .cloned()
        .ok_or_else(|| std::io::Error::other("no end"))?;
    Ok(ForegroundEnd { report, exit_code })
}

fn on_signals(
    active: &mut Active,
    signals: &SignalQueue,
    stopped_by: &mut Option<i32>,
    clock: Instant,
) {
    let mut children = false;
    while let Some(arrived) = signals.next() {
        if arrived.number == SIGCHLD {
            children = true;
            continue;
        }
        match active.child.filter(|_| active.status.is_none()) {
            // A terminal's signal went to the whole foreground group, so the child has it already.
            Some(_) if arrived.from_kernel => {}
            Some(child) => {
                signal(child, Sent::Raw(arrived.number));
            }
            None if is_ending(arrived.number) => {
                stopped_by.get_or_insert(arrived.number);
                let how = if active.child.is_some() {
                    StopHow::Kill
                } else {
                    StopHow::Term
                };
                active.stop(how, clock.elapsed());
            }
            None => {}
        }
    }
    if children {
        active.on_child_signal(clock.elapsed());
    }
}

/// TERM, INT, HUP and QUIT end; WINCH and USR mean nothing to a run without a child.
fn is_ending(number: i32) -> bool {
    use crate::proc::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM].contains(&number)
}

fn tell(active: &mut Active, on_event: &mut dyn FnMut(ForegroundEvent)) {
    for message in std::mem::take(&mut active.messages) {
        match message {
            Message::Waiting { .. } => on_event(ForegroundEvent::WaitingForSlot),
            Message::Started { child, slots, .. } => {
                on_event(ForegroundEvent::Started {
                    identity: child,
                    slots,
                });
            }
            Message::Hello { .. } | Message::Exited { .. } => {}
        }
    }
}

fn exit_code(active: &Active, stopped_by: Option<i32>) -> u8 {
    use crate::proc::ExitStatus;
    debug_assert!(matches!(active.phase, Phase::Ended(_)));
    let outcome = active.report().map(|report| report.outcome);
    match (outcome, active.status) {
        (Some(Outcome::TimedOut), _) => 3,
        (_, Some(ExitStatus::Code(code))) => u8::try_from(code & 0xff).unwrap_or(1),
        (_, Some(ExitStatus::Signal(number))) => signal_code(number),
        (Some(Outcome::Cancelled), None) => stopped_by.map_or(1, signal_code),
        (_, None) => match active.spawn_error {
            Some(SpawnErrorKind::NotFound) => 127,
            Some(SpawnErrorKind::NotExecutable | SpawnErrorKind::NoExec) => 126,
            _ => 1,
        },
    }
}

fn signal_code(number: i32) -> u8 {
    u8::try_from(128 + number).unwrap_or(255)
}
