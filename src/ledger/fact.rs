//! What a fact says. Owns the vocabulary of the ledger's lines; knows nothing of files.
//!
//! A kind is never renamed and never changes its meaning: `apply` is total over every kind that any
//! released version could have written, and a kind from a newer version is kept as `Unknown`.

use crate::types::{Decision, LeaseId, Outcome, RunId, TaskId, Timestamp, Verdict, WaitFor};
use serde::{Deserialize, Serialize};

/// A durable fact: its place in the order, when, about what.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Gap-free over all segments, from 1.
    pub seq: u64,
    /// Wall-clock label; order comes from `seq`.
    pub at: Timestamp,
    /// The task it is about.
    pub task: Option<TaskId>,
    /// The run it is about.
    pub run: Option<RunId>,
    /// Kind and data.
    pub body: FactBody,
}

/// A fact that is not durable yet: the writer gives it its sequence number.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFact {
    /// Wall-clock label.
    pub at: Timestamp,
    /// The task it is about.
    pub task: Option<TaskId>,
    /// The run it is about.
    pub run: Option<RunId>,
    /// Kind and data.
    pub body: FactBody,
}

/// The settings a loop started with, as the view shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopSettings {
    /// M.
    pub global_concurrency: u32,
    /// X.
    pub tasks: u32,
    /// Y.
    pub workers: u32,
    /// Z.
    pub roles: u32,
    /// No target.
    pub infinite: bool,
    /// Completions of this run that end it.
    pub max_completed: u32,
    /// Claims of this run that end it.
    pub max_attempts: u32,
}

/// Kind and data of a fact; serialised as `"kind":"run_exited","data":{…}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum FactBody {
    /// A loop began.
    LoopStarted {
        /// flockd's version.
        version: String,
        /// The daemon's process id, for people.
        pid: u32,
        /// X, Y, Z, M and the bounds.
        settings: LoopSettings,
    },
    /// A loop ended in order.
    LoopStopped {
        /// The decision word.
        decision: Decision,
        /// The process's exit code.
        exit_code: u8,
        /// One sentence for people.
        reason: String,
    },
    /// A task was added by command.
    TaskAdded {
        /// Its title.
        title: String,
    },
    /// A task was taken from the queue and its paths were claimed.
    TaskClaimed {
        /// Its title at that moment.
        title: String,
        /// 1 for the first claim of this loop.
        iteration: u32,
        /// The commit its worktrees start from.
        base: String,
        /// The claimed paths.
        claims: Vec<String>,
        /// How many workers try it.
        workers: u32,
        /// The stages, in order.
        stages: Vec<String>,
        /// Its lease.
        lease_id: LeaseId,
        /// The lease's fencing token.
        epoch: u64,
        /// A deferred or blocked task is tried again.
        retry: bool,
    },
    /// A task waits for something that outlives the moment (back-off, a person).
    TaskWaiting {
        /// What for.
        #[serde(rename = "for")]
        wait_for: WaitFor,
        /// One sentence for people.
        detail: String,
    },
    /// A child is about to be started. Durable before the child exists.
    RunIntended {
        /// From 1 to Y.
        worker: u32,
        /// The stage's name.
        stage: String,
        /// The role's name; `run-N` for the N-th command of a `run` stage.
        role: String,
        /// From 1; counts infrastructure retries.
        attempt: u32,
        /// Permits it costs.
        slots: u32,
        /// What its processes carry in `FLOCKD_TOKEN`.
        token: String,
    },
    /// The child exists.
    RunStarted {
        /// Its process id.
        pid: u32,
        /// Its start time in clock ticks since boot: with `pid` and the boot its identity.
        start_ticks: u64,
        /// The slot files its runner holds.
        slots: Vec<u32>,
    },
    /// The child and its tree are gone. Recorded once per run.
    RunExited {
        /// How.
        outcome: Outcome,
        /// Its exit code, when it had one.
        exit_code: Option<i32>,
        /// The signal that ended it, when one did.
        signal: Option<i32>,
        /// What the role said.
        verdict: Verdict,
        /// What went wrong, for people: the error of a failed spawn and the like.
        detail: String,
        /// When it began.
        started_at: Timestamp,
        /// When the last process of its tree was gone.
        ended_at: Timestamp,
        /// By a monotonic clock.
        duration_ms: u64,
        /// CPU time in user mode of the tree.
        user_ms: u64,
        /// CPU time in kernel mode of the tree.
        system_ms: u64,
        /// Largest resident size of one of its processes.
        max_rss_kib: u64,
        /// All it wrote, kept or not.
        stdout_bytes: u64,
        /// All it wrote, kept or not.
        stderr_bytes: u64,
        /// Whether something was not kept.
        truncated: bool,
        /// Processes of the tree that outlived the child and were ended.
        stragglers_killed: u32,
    },
    /// All that a stage requires passed for a worker.
    StagePassed {
        /// The worker.
        worker: u32,
        /// The stage.
        stage: String,
    },
    /// A stage did not pass for a worker.
    StageFailed {
        /// The worker.
        worker: u32,
        /// The stage.
        stage: String,
        /// Why, for people.
        reason: String,
        /// A role asked for a person.
        blocked: bool,
    },
    /// What a worker did is kept: a commit on its branch and a patch file.
    WorkerCaptured {
        /// The worker.
        worker: u32,
        /// Whether all its stages passed.
        passed: bool,
        /// Its branch.
        branch: String,
        /// The commit on it; the base when it changed nothing.
        commit: String,
        /// The patch, relative to the state directory; none when it changed nothing.
        patch: Option<String>,
        /// Repository-relative paths it changed.
        changed_files: Vec<String>,
    },
    /// A task is done.
    TaskCompleted {
        /// Where its work is.
        branches: Vec<String>,
        /// What it changed.
        changed_files: Vec<String>,
    },
    /// A task did not pass and may be tried again later.
    TaskDeferred {
        /// Why, for people.
        reason: String,
        /// Whether it counts as a blocker (a conflict or a stop does not).
        blocker: bool,
    },
    /// A task needs a person before it can go on.
    TaskBlocked {
        /// Why, for people.
        reason: String,
    },
    /// All workers of a task passed; a person chooses.
    TaskNeedsSelection {
        /// The branches to choose from.
        branches: Vec<String>,
    },
    /// A task was cancelled by command.
    TaskCancelled {
        /// Why, for people.
        reason: String,
    },
    /// A person wants a task tried again: clears deferred, blocked, cancelled and completed.
    TaskRetried {},
    /// Paths were claimed.
    LeaseClaimed {
        /// The lease.
        lease_id: LeaseId,
        /// Its fencing token.
        epoch: u64,
        /// The paths.
        paths: Vec<String>,
        /// The loop took a task in flight up again under this lease: from now on it is the task's.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        resumed: bool,
    },
    /// A lease was given back.
    LeaseReleased {
        /// The lease.
        lease_id: LeaseId,
    },
    /// A dead holder's lease was removed.
    LeaseReclaimed {
        /// The lease.
        lease_id: LeaseId,
        /// Its fencing token.
        epoch: u64,
    },
    /// A worker changed paths outside its claim.
    ClaimViolated {
        /// The worker.
        worker: u32,
        /// The paths.
        paths: Vec<String>,
    },
    /// A guard stopped or held something.
    GuardTripped {
        /// Its key in `[guards]`.
        guard: String,
        /// What it saw.
        detail: String,
    },
    /// Something people should know that stopped nothing.
    Warning {
        /// One sentence.
        text: String,
    },
    /// A kind that this version does not know; kept, never acted on.
    #[serde(skip)]
    Unknown {
        /// The kind.
        kind: String,
        /// The data, as written.
        data: serde_json::Value,
    },
}

impl NewFact {
    /// A fact about no task and no run.
    #[must_use]
    pub fn new(at: Timestamp, body: FactBody) -> Self {
        Self {
            at,
            task: None,
            run: None,
            body,
        }
    }

    /// A fact about a task.
    #[must_use]
    pub fn of_task(at: Timestamp, task: &TaskId, body: FactBody) -> Self {
        Self {
            at,
            task: Some(task.clone()),
            run: None,
            body,
        }
    }

    /// A fact about a run of a task, or of none (`flockd run`).
    #[must_use]
    pub fn of_run(at: Timestamp, task: Option<&TaskId>, run: &RunId, body: FactBody) -> Self {
        Self {
            at,
            task: task.cloned(),
            run: Some(run.clone()),
            body,
        }
    }
}
