//! What `status`, `why` and `list` show (config §8); keys may be added, none is renamed.

use crate::types::{Decision, RunId, TaskId, Timestamp, WaitFor};
use serde::{Deserialize, Serialize};

/// `status --json`: from the daemon, or from the files when none runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusReport {
    /// The daemon.
    pub daemon: DaemonReport,
    /// The ceiling M and what is used of it.
    pub slots: SlotsReport,
    /// How many tasks are in which state.
    pub tasks: TaskCounts,
    /// Runs that are not over, oldest first.
    pub runs: Vec<RunReport>,
    /// Tasks that wait, and what for.
    pub waiting: Vec<WaitReport>,
    /// Quotas that are closed.
    pub quota: Vec<QuotaReport>,
    /// The loop of this daemon, or the last one.
    #[serde(rename = "loop")]
    pub loop_: LoopReport,
    /// The newest warnings, oldest first.
    pub warnings: Vec<String>,
    /// The ledger's last durable sequence number.
    pub ledger_seq: u64,
}

/// Who runs the loop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonReport {
    /// Whether one is alive.
    pub running: bool,
    /// Its process id, for people.
    pub pid: Option<u32>,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// Its flockd version.
    pub version: Option<String>,
}

/// The permits under M.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SlotsReport {
    /// M.
    pub total: u32,
    /// Held by a run, in whatever process.
    pub used: u32,
}

/// Tasks by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCounts {
    /// Ready; nothing but a place in the loop is missing.
    pub queued: u32,
    /// Claimed, with a run alive or about to be.
    pub running: u32,
    /// Wait for a lease, a dependency, a quota, a back-off, or are kept on hold.
    pub waiting: u32,
    /// Need a person.
    pub blocked: u32,
    /// Done.
    pub completed: u32,
    /// Did not pass; tried again when nothing fresh is left.
    pub deferred: u32,
    /// Taken out of the queue by command.
    pub cancelled: u32,
    /// Files that are not task files.
    pub malformed: u32,
}

/// A run that is not over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Its folder under `runs/`.
    pub run_id: RunId,
    /// None for `flockd run`.
    pub task_id: Option<TaskId>,
    /// From 1 to Y; 0 for `flockd run`.
    #[serde(default)]
    pub worker: u32,
    /// The stage.
    #[serde(default)]
    pub stage: String,
    /// The role.
    pub role: String,
    /// `waiting_for_slot`, `starting`, `running`, `stopping`.
    pub state: String,
    /// Of the child, once it exists.
    pub pid: Option<u32>,
    /// Since its start, or since it was intended.
    pub elapsed_ms: u64,
    /// Slot files it holds.
    #[serde(default)]
    pub slots: Vec<u32>,
}

/// A task that waits (promise P6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitReport {
    /// The task.
    pub task_id: TaskId,
    /// What for.
    #[serde(rename = "for")]
    pub wait_for: WaitFor,
    /// One sentence that names it: the holder and the path, the task, the time.
    pub detail: String,
}

/// A provider's usage limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaReport {
    /// `provider/account/model`.
    pub key: String,
    /// When it is expected to open.
    pub until: Option<Timestamp>,
    /// One sentence.
    pub detail: String,
}

/// The loop: how far, with which settings, held by what.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopReport {
    /// The decision word; none before the first loop.
    pub decision: Option<Decision>,
    /// X, Y, Z, M and the bounds.
    pub settings: Option<SettingsReport>,
    /// Completed by this run of the loop.
    pub completed: u32,
    /// Claims of this run of the loop.
    pub attempts: u32,
    /// Blockers since the last completion.
    pub consecutive_blockers: u32,
    /// The task that would be claimed next.
    pub next_task_id: Option<TaskId>,
    /// `flockd pause` holds dispatch.
    pub paused: bool,
    /// `flockd estop` holds dispatch and stopped the children.
    pub estop: bool,
    /// The kill switch makes it serial.
    pub parallelism_kill: bool,
    /// It claims nothing more and ends with what runs.
    pub stopping: bool,
    /// The ledger could not be written; nothing new is started.
    pub degraded: Option<String>,
}

/// Settings of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsReport {
    /// X.
    pub tasks: u32,
    /// Y.
    pub workers: u32,
    /// Z.
    pub roles: u32,
    /// M.
    pub global_concurrency: u32,
    /// No target.
    pub infinite: bool,
    /// Completions that end the run.
    pub max_completed: u32,
    /// Claims that end the run.
    pub max_attempts: u32,
}

/// A task's state in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Ready to be claimed.
    Queued,
    /// Claimed.
    Running,
    /// Ready, but something has to happen first.
    Waiting,
    /// Needs a person.
    Blocked,
    /// Done.
    Completed,
    /// Did not pass; will be tried again.
    Deferred,
    /// Taken out of the queue.
    Cancelled,
    /// Kept back by its file.
    Hold,
    /// Its file cannot be read.
    Malformed,
    /// No file and no fact knows it.
    Unknown,
}

impl TaskStatus {
    /// The word, as JSON has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
            Self::Deferred => "deferred",
            Self::Cancelled => "cancelled",
            Self::Hold => "hold",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
        }
    }
}

impl std::fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// `why TASK`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhyReport {
    /// The task.
    pub task_id: TaskId,
    /// Its state.
    pub state: TaskStatus,
    /// What it waits for; none when it does not wait.
    pub waits_for: Option<WaitFor>,
    /// One sentence that names it.
    pub detail: String,
    /// Its runs that are not over.
    #[serde(default)]
    pub runs: Vec<RunReport>,
    /// Blockers counted against it since its last completion or retry.
    #[serde(default)]
    pub blockers: u32,
    /// What a person can do, when there is something.
    #[serde(default)]
    pub advice: Option<String>,
}

/// One row of `list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRow {
    /// The task; the file's stem even when that is no id.
    pub task_id: String,
    /// Its title; empty when its file cannot be read.
    pub title: String,
    /// Its state.
    pub state: TaskStatus,
    /// Higher first.
    pub priority: i64,
    /// What it waits for.
    #[serde(default)]
    pub waits_for: Option<WaitFor>,
    /// Why it waits, is blocked or is malformed; empty otherwise.
    #[serde(default)]
    pub detail: String,
    /// What it claims.
    #[serde(default)]
    pub claims: Vec<String>,
    /// What it comes after.
    #[serde(default)]
    pub after: Vec<TaskId>,
}
