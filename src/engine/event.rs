//! Everything that can reach the loop, and everything the loop can ask for: two closed lists.
//!
//! Owns no behaviour. The daemon turns the world into [`Event`]s and carries out [`Effect`]s; the
//! core between them does no I/O and reads no clock.

use crate::config::{LimitsConfig, TaskSpec};
use crate::ledger::NewFact;
use crate::types::{Decision, LeaseId, Outcome, RunId, TaskId, Timestamp, Verdict};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a run ended, as the edge measured it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// Its class.
    pub outcome: Outcome,
    /// Exit code, when it had one.
    pub exit_code: Option<i32>,
    /// The signal that ended it, when one did.
    pub signal: Option<i32>,
    /// What the role said, by the agent's own rules.
    pub verdict: Verdict,
    /// For people.
    pub detail: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When its tree was gone.
    pub ended_at: Timestamp,
    /// Monotonic.
    pub duration_ms: u64,
    /// CPU in user mode.
    pub user_ms: u64,
    /// CPU in kernel mode.
    pub system_ms: u64,
    /// Largest resident size.
    pub max_rss_kib: u64,
    /// Written, kept or not.
    pub stdout_bytes: u64,
    /// Written, kept or not.
    pub stderr_bytes: u64,
    /// Something was not kept.
    pub truncated: bool,
    /// Processes that outlived the child and were ended.
    pub stragglers_killed: u32,
    /// The machine, not this task, is at fault (a full disk): the loop stops in order.
    pub systemic: bool,
}

/// A worktree that is ready to work in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeReady {
    /// Where.
    pub path: PathBuf,
    /// On which branch.
    pub branch: String,
    /// Leftovers that were moved out of the way, for people.
    pub moved_aside: Vec<String>,
}

/// What a worker left behind, kept as a commit and a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkKept {
    /// The commit on its branch.
    pub commit: String,
    /// The patch, relative to the state directory.
    pub patch: Option<String>,
    /// Paths changed.
    pub changed_files: Vec<String>,
    /// Paths changed outside the claim.
    pub outside_claim: Vec<String>,
    /// Things people should know.
    pub notes: Vec<String>,
}

/// Why an effect failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeError {
    /// One sentence for people.
    pub detail: String,
    /// The machine is at fault: the loop stops in order.
    pub systemic: bool,
}

/// Who holds the paths that a claim wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The holder's task.
    pub task: String,
    /// The paths in question.
    pub path: String,
}

/// A claim that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The lease.
    pub lease_id: LeaseId,
    /// Its fencing token.
    pub epoch: u64,
    /// The commit that HEAD or the base ref meant at that moment.
    pub base: String,
    /// Dead leases that were removed on the way.
    pub reclaimed: Vec<(LeaseId, u64, String)>,
}

/// What a person or a signal asks of the loop. Ordered: a later one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// Start nothing more, let running children end.
    Drain,
    /// TERM, grace, KILL.
    Now,
    /// KILL.
    Kill,
}

/// Where a stop came from; decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSource {
    /// `flockd stop`.
    Command,
    /// A signal.
    Signal,
}

/// A timer's name; a timer that no longer fits the state is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TimerKey {
    /// The loop's wall clock.
    LoopWallClock,
    /// A task's wall clock; of this claim only.
    TaskWallClock(TaskId, u32),
    /// A call's back-off.
    Backoff(TaskId, u32, usize),
}

/// Everything that can reach the loop.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Task files were read: new and changed ones, and the ids of those that went.
    TasksChanged {
        /// Parsed files.
        upserts: Vec<TaskSpec>,
        /// Gone or malformed now.
        removed: Vec<TaskId>,
    },
    /// A claim was decided.
    ClaimDecided {
        /// For.
        task: TaskId,
        /// The lease, or who has the paths.
        result: Result<Granted, ClaimRefusal>,
    },
    /// Some lease changed or its holder died.
    LeasesChanged,
    /// A worktree is there, or not.
    WorktreeDone {
        /// Whose.
        task: TaskId,
        /// Which worker's.
        worker: u32,
        /// Where, or why not.
        result: Result<WorktreeReady, EdgeError>,
    },
    /// A permit was given.
    SlotGranted {
        /// To.
        run: RunId,
    },
    /// The permit is there but another process has the slot file.
    SlotFileBusy {
        /// Who waits.
        run: RunId,
    },
    /// The child exists.
    RunStarted {
        /// Which.
        run: RunId,
        /// Its process id.
        pid: u32,
        /// Its start time.
        start_ticks: u64,
        /// Its slots.
        slots: Vec<u32>,
    },
    /// The child's tree is gone.
    RunExited {
        /// Which.
        run: RunId,
        /// How.
        end: Box<RunEnd>,
    },
    /// A worker's work was kept, or not.
    CaptureDone {
        /// Whose.
        task: TaskId,
        /// Which worker's.
        worker: u32,
        /// What.
        result: Result<WorkKept, EdgeError>,
    },
    /// A timer went off.
    Timer(TimerKey),
    /// Stop, by degrees.
    Stop(StopLevel, StopSource),
    /// The marker files as they are now.
    Markers(Markers),
    /// `flockd cancel`.
    Cancel(TaskId),
    /// `flockd retry`.
    Retry(TaskId),
    /// The machine fails the loop (not the ledger: that ends the daemon itself).
    Systemic(String),
}

/// Why a claim was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimRefusal {
    /// Somebody else has the paths.
    Conflict(Conflict),
    /// The store or git failed.
    Failed(EdgeError),
}

/// The marker files under the state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Markers {
    /// `ESTOP`.
    pub estop: bool,
    /// `PAUSED`.
    pub paused: bool,
    /// `PARALLELISM_KILL`.
    pub parallelism_kill: bool,
}

/// One child to start.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPlan {
    /// Its id.
    pub run: RunId,
    /// The task.
    pub task: Arc<TaskSpec>,
    /// The worker, from 1.
    pub worker: u32,
    /// The stage's name.
    pub stage: String,
    /// The role's name, or `run-N` of a command stage.
    pub role: String,
    /// The shell command of a command stage.
    pub command: Option<String>,
    /// From 1.
    pub attempt: u32,
    /// Permits.
    pub slots: u32,
    /// Bounds.
    pub limits: LimitsConfig,
    /// The task's lease.
    pub lease_id: LeaseId,
    /// Its fencing token.
    pub lease_epoch: u64,
    /// What its processes carry.
    pub token: String,
    /// Where it works.
    pub worktree: PathBuf,
}

/// Everything the loop can ask for.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Make these durable; every effect after it in the list waits for that.
    Record(Vec<NewFact>),
    /// Claim a task's paths; `previous` is the lease a crash left.
    Claim {
        /// The task.
        task: Arc<TaskSpec>,
        /// Lease id and epoch of before a restart.
        previous: Option<(LeaseId, u64)>,
        /// The base pinned before a restart.
        base: Option<String>,
    },
    /// Give a lease back.
    Release {
        /// The lease.
        lease_id: LeaseId,
        /// Its fencing token.
        epoch: u64,
    },
    /// Make or find a worktree.
    PrepareWorktree {
        /// The task.
        task: TaskId,
        /// The worker.
        worker: u32,
        /// The pinned commit.
        base: String,
        /// Take what a crash left as it is.
        reuse: bool,
    },
    /// Queue for permits.
    AcquireSlot {
        /// Who.
        run: RunId,
        /// How many.
        slots: u32,
    },
    /// Leave that queue.
    ForgetSlot {
        /// Who.
        run: RunId,
    },
    /// Start a child.
    Launch(Box<RunPlan>),
    /// End a child's tree.
    StopRun {
        /// Which.
        run: RunId,
        /// KILL at once.
        kill: bool,
    },
    /// The exit is durable: the runner may free the slot, the permit comes back.
    Settle {
        /// Which.
        run: RunId,
    },
    /// Keep a worker's work; remove the worktree if nothing in it would be lost.
    Capture {
        /// The task.
        task: Arc<TaskSpec>,
        /// The worker.
        worker: u32,
        /// The pinned commit.
        base: String,
        /// The worktree.
        worktree: WorktreeReady,
        /// The run whose folder gets the patch.
        run: Option<RunId>,
        /// All stages passed.
        passed: bool,
    },
    /// Wake me.
    SetTimer {
        /// At this monotonic time.
        at: Duration,
        /// With this name.
        key: TimerKey,
    },
    /// Tell people, after it is durable.
    Say(String),
    /// The loop is over.
    Finish(Finish),
}

/// The loop's last word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The decision word.
    pub decision: Decision,
    /// The process's exit code.
    pub exit_code: u8,
    /// One sentence.
    pub reason: String,
}
