//! A task in flight: its workers, their stage, the calls of that stage. Data and small questions only.

use super::event::WorktreeReady;
use crate::config::{LimitsConfig, Require, RoleConcurrency, TaskSpec};
use crate::gate::{CallDecl, CallPhase};
use crate::types::{LeaseId, RunId, TaskId, Verdict};
use std::sync::Arc;
use std::time::Duration;

/// Why a running child was asked to stop. Ordered: a stronger reason replaces a weaker one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StopReason {
    /// The rest of the batch decided the stage.
    BatchDecided,
    /// Held back by a person or a limit of the loop; the call is done again later.
    Held,
    /// The task's own wall clock.
    TaskWallClock,
    /// `flockd cancel`.
    TaskCancelled,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CallState {
    Pending,
    AwaitingSlot {
        run: RunId,
    },
    Launched {
        run: RunId,
        slot_busy: bool,
    },
    Running {
        run: RunId,
        pid: u32,
        since: Duration,
    },
    Backoff {
        until: Duration,
    },
    Done(Verdict),
    /// The batch was decided without it.
    Skipped,
}

/// A call's state by name, for `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStateName {
    /// Waits for a permit.
    AwaitingSlot,
    /// Handed to a runner; waits for its slot file or its spawn.
    Starting,
    /// Alive.
    Running,
    /// Asked to stop.
    Stopping,
}

/// One role or one command of a stage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) role: String,
    pub(super) command: Option<String>,
    pub(super) decl: CallDecl,
    pub(super) slots: u32,
    pub(super) limits: LimitsConfig,
    pub(super) attempt: u32,
    pub(super) infrastructure_failures: u32,
    pub(super) state: CallState,
    pub(super) stop: Option<StopReason>,
}

impl Call {
    pub(super) fn phase(&self) -> CallPhase {
        match self.state {
            CallState::Pending => CallPhase::Pending,
            CallState::Done(_) | CallState::Skipped => CallPhase::Ended,
            _ => CallPhase::Open,
        }
    }

    /// The run whose child exists or is being started.
    pub(super) fn child(&self) -> Option<&RunId> {
        match &self.state {
            CallState::Launched { run, .. } | CallState::Running { run, .. } => Some(run),
            _ => None,
        }
    }

    pub(super) fn run(&self) -> Option<&RunId> {
        match &self.state {
            CallState::AwaitingSlot { run } => Some(run),
            _ => self.child(),
        }
    }
}

/// A stage as this task goes through it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) require: Require,
    pub(super) calls: Vec<CallTemplate>,
}

/// What a call is made from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallTemplate {
    pub(super) role: String,
    pub(super) command: Option<String>,
    pub(super) concurrency: RoleConcurrency,
    pub(super) slots: u32,
    pub(super) limits: LimitsConfig,
}

impl CallTemplate {
    pub(super) fn call(&self) -> Call {
        Call {
            role: self.role.clone(),
            command: self.command.clone(),
            decl: CallDecl {
                concurrency: self.concurrency,
            },
            slots: self.slots,
            limits: self.limits.clone(),
            attempt: 1,
            infrastructure_failures: 0,
            state: CallState::Pending,
            stop: None,
        }
    }
}

/// How far a worker is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its worktree is being made.
    Preparing,
    /// In a stage.
    Staging,
    /// Its work is being kept.
    Capturing,
    /// Its part is over.
    Done,
}

/// What became of a worker's stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorkerResult {
    Open,
    Passed,
    Failed { reason: String, blocked: bool },
}

/// One attempt at a task, in a worktree of its own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Worker {
    pub(super) no: u32,
    pub(super) phase: Phase,
    pub(super) stage_ix: usize,
    pub(super) calls: Vec<Call>,
    pub(super) result: WorkerResult,
    pub(super) worktree: Option<WorktreeReady>,
    pub(super) last_run: Option<RunId>,
    pub(super) changed_files: Vec<String>,
    /// Its work could not be kept: nothing of the task may be promoted (behaviour 90).
    pub(super) work_lost: bool,
}

impl Worker {
    pub(super) fn new(no: u32) -> Self {
        Self {
            no,
            phase: Phase::Preparing,
            stage_ix: 0,
            calls: Vec::new(),
            result: WorkerResult::Open,
            worktree: None,
            last_run: None,
            changed_files: Vec::new(),
            work_lost: false,
        }
    }

    pub(super) fn has_child(&self) -> bool {
        self.calls.iter().any(|c| c.child().is_some())
    }
}

/// Why a flight ends other than by its stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Abort {
    Cancelled(String),
    WallClock(String),
}

/// A task in flight.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flight {
    pub(super) spec: Arc<TaskSpec>,
    pub(super) lease: Option<(LeaseId, u64)>,
    pub(super) base: String,
    pub(super) iteration: u32,
    pub(super) stages: Vec<Stage>,
    pub(super) workers: Vec<Worker>,
    pub(super) abort: Option<Abort>,
    pub(super) since: Duration,
}

impl Flight {
    pub(super) fn id(&self) -> &TaskId {
        &self.spec.id
    }

    pub(super) fn worker_mut(&mut self, no: u32) -> Option<&mut Worker> {
        self.workers.iter_mut().find(|w| w.no == no)
    }

    pub(super) fn has_child(&self) -> bool {
        self.workers.iter().any(Worker::has_child)
    }

    /// Something outside the core is at work for it, apart from children.
    pub(super) fn edge_busy(&self) -> bool {
        self.lease.is_some()
            && self
                .workers
                .iter()
                .any(|w| matches!(w.phase, Phase::Preparing | Phase::Capturing))
    }
}

/// The verdict of a stage so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StageVerdict {
    Undecided,
    Passed,
    Failed { reason: String, blocked: bool },
}

/// Whether the calls that ended decide the stage, whatever the others say.
pub(super) fn judge(calls: &[Call], require: Require) -> StageVerdict {
    let passes = calls
        .iter()
        .filter(|c| c.state == CallState::Done(Verdict::Pass))
        .count();
    let open = calls
        .iter()
        .filter(|c| c.phase() != CallPhase::Ended)
        .count();
    let needed = match require {
        Require::All => calls.len(),
        Require::Any => 1,
        Require::Number(n) => n as usize,
    };
    if passes >= needed {
        return StageVerdict::Passed;
    }
    if passes + open >= needed {
        return StageVerdict::Undecided;
    }
    let mut reasons = Vec::new();
    let mut blocked = false;
    for call in calls {
        match &call.state {
            CallState::Done(Verdict::Fail(reason)) => {
                reasons.push(format!("{}: {reason}", call.role));
            }
            CallState::Done(Verdict::Blocked(reason)) => {
                blocked = true;
                reasons.push(format!("{}: {reason}", call.role));
            }
            _ => {}
        }
    }
    StageVerdict::Failed {
        reason: reasons.join("; "),
        blocked,
    }
}
