//! What is known of a task in flight, its workers and its runs. Plain data.

use crate::types::{LeaseId, Outcome, RunId, TaskId, Timestamp, Verdict};
use std::collections::BTreeMap;

/// A task that was claimed and has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct InFlight {
    /// Its title when it was claimed.
    pub title: String,
    /// The number of its claim in its loop.
    pub iteration: u32,
    /// The commit its worktrees start from.
    pub base: String,
    /// The claimed paths.
    pub claims: Vec<String>,
    /// Its lease, as last granted.
    pub lease_id: LeaseId,
    /// The lease's fencing token.
    pub epoch: u64,
    /// The stages, in order.
    pub stages: Vec<String>,
    /// By worker number, one for each from 1 to Y.
    pub workers: BTreeMap<u32, WorkerProgress>,
    /// Its runs, open and ended.
    pub runs: BTreeMap<RunId, RunProgress>,
    /// When it was claimed.
    pub started_at: Timestamp,
}

/// How far a worker is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerProgress {
    /// Stages it passed, in the order it passed them.
    pub passed_stages: Vec<String>,
    /// Why a stage did not pass, and whether a person is needed.
    pub failed: Option<(String, bool)>,
    /// What is kept of its work.
    pub captured: Option<Captured>,
}

/// What is kept of a worker's work.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// Whether all its stages passed.
    pub passed: bool,
    /// Its branch.
    pub branch: String,
    /// The commit on it.
    pub commit: String,
    /// The patch, relative to the state directory.
    pub patch: Option<String>,
    /// What it changed.
    pub changed_files: Vec<String>,
}

/// A run that was intended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunProgress {
    /// Its task; none for `flockd run`.
    pub task: Option<TaskId>,
    /// Its worker.
    pub worker: u32,
    /// Its stage.
    pub stage: String,
    /// Its role.
    pub role: String,
    /// From 1.
    pub attempt: u32,
    /// Permits it costs.
    pub slots: u32,
    /// What its processes carry in `FLOCKD_TOKEN`.
    pub token: String,
    /// Process id and start time, once it started.
    pub started: Option<(u32, u64)>,
    /// How it ended, once it did.
    pub exited: Option<(Outcome, Verdict)>,
}

/// Why a task needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// For people.
    pub reason: String,
    /// Blockers of this task so far, this one included.
    pub count: u32,
}

/// A worker's try at a task that has ended, as the view shows it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndedCycle {
    pub(super) task: TaskId,
    pub(super) title: String,
    pub(super) worker: u32,
    pub(super) iteration: u32,
    pub(super) stage: Option<String>,
    pub(super) runs: Vec<RunId>,
    pub(super) decision: &'static str,
    pub(super) changed_files: Vec<String>,
    pub(super) started_at: Timestamp,
    pub(super) ended_at: Timestamp,
}

impl InFlight {
    /// The first stage that a worker has not passed.
    pub(super) fn stage_of(&self, worker: &WorkerProgress) -> Option<&str> {
        let open = |stage: &&String| !worker.passed_stages.contains(stage);
        self.stages.iter().find(open).map(String::as_str)
    }

    /// The newest `max` runs of a worker, newest last.
    pub(super) fn runs_of(&self, worker: u32, max: usize) -> Vec<RunId> {
        let mut runs: Vec<RunId> = self
            .runs
            .iter()
            .rev()
            .filter(|(_, run)| run.worker == worker)
            .take(max)
            .map(|(id, _)| id.clone())
            .collect();
        runs.reverse();
        runs
    }
}
