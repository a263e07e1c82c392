//! What is known of a task in flight and of its runs: all that resuming it after a crash needs.

use crate::types::{LeaseId, Outcome, RunId, TaskId, Timestamp, Verdict};
use std::collections::BTreeMap;

/// A task that was claimed and has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct InFlight {
    /// Its title when it was claimed.
    pub title: String,
    /// 1 for the first claim of the loop that claimed it.
    pub iteration: u32,
    /// The commit its worktrees start from.
    pub base: String,
    /// The claimed paths.
    pub claims: Vec<String>,
    /// Its lease.
    pub lease_id: LeaseId,
    /// The lease's fencing token.
    pub epoch: u64,
    /// The stages, in order.
    pub stages: Vec<String>,
    /// How many workers try it (Y).
    pub worker_count: u32,
    /// Whether it was deferred or blocked before.
    pub retry: bool,
    /// When it was claimed, for people.
    pub claimed_at: Timestamp,
    /// The sequence number of its claim: the order among tasks in flight.
    pub claimed_seq: u64,
    /// By worker, from 1. A worker about which no fact exists is missing.
    pub workers: BTreeMap<u32, WorkerProgress>,
    /// All runs of this claim, ended or not.
    pub runs: BTreeMap<RunId, RunProgress>,
}

/// How far a worker is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkerProgress {
    /// Passed stages, in the order in which they passed.
    pub passed_stages: Vec<String>,
    /// The stage that did not pass, if one did not.
    pub failed: Option<StageFailure>,
    /// What is kept of its work, once it is.
    pub captured: Option<WorkerCapture>,
    /// The stage of the last fact about it; none when nothing was begun.
    pub stage: Option<String>,
}

/// A stage that did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageFailure {
    /// The stage.
    pub stage: String,
    /// Why, for people.
    pub reason: String,
    /// A role asked for a person.
    pub blocked: bool,
}

/// What is kept of a worker's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCapture {
    /// Whether all its stages passed.
    pub passed: bool,
    /// Its branch.
    pub branch: String,
    /// The commit on it.
    pub commit: String,
    /// The patch, relative to the state directory.
    pub patch: Option<String>,
    /// Repository-relative paths it changed.
    pub changed_files: Vec<String>,
}

/// A run from its intent on.
#[derive(Debug, Clone, PartialEq)]
pub struct RunProgress {
    /// From 1 to Y.
    pub worker: u32,
    /// The stage's name.
    pub stage: String,
    /// The role's name.
    pub role: String,
    /// From 1; counts infrastructure retries.
    pub attempt: u32,
    /// Permits it costs.
    pub slots: u32,
    /// What its processes carry in `FLOCKD_TOKEN`.
    pub token: String,
    /// When it was intended, for people.
    pub intended_at: Timestamp,
    /// Its process, once it exists.
    pub started: Option<RunStart>,
    /// How it ended, once it did. A second end of the same run changes nothing.
    pub exited: Option<RunEnd>,
}

/// The process of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStart {
    /// Its process id.
    pub pid: u32,
    /// Its start time in clock ticks since boot.
    pub start_ticks: u64,
    /// The slot files its runner holds.
    pub slots: Vec<u32>,
    /// When, for people.
    pub at: Timestamp,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// How.
    pub outcome: Outcome,
    /// What the role said.
    pub verdict: Verdict,
    /// Its exit code, when it had one.
    pub exit_code: Option<i32>,
    /// What went wrong, for people.
    pub detail: String,
    /// When the last process of its tree was gone, for people.
    pub ended_at: Timestamp,
}

/// A run that was intended and has no recorded end.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRun {
    /// Its task; none for `flockd run`.
    pub task: Option<TaskId>,
    /// What is known of it.
    pub run: RunProgress,
}

/// A cycle that ended, as the view shows it.
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
    /// The worker's progress; made when this is the first fact about it.
    pub(super) fn worker_mut(&mut self, worker: u32) -> &mut WorkerProgress {
        self.workers.entry(worker).or_default()
    }

    /// The workers that the view shows: those with facts, at least the first.
    pub(super) fn shown_workers(&self) -> impl Iterator<Item = (u32, Option<&WorkerProgress>)> {
        let none = self.workers.is_empty().then_some((1, None));
        self.workers
            .iter()
            .map(|(number, worker)| (*number, Some(worker)))
            .chain(none)
    }

    /// The worker's runs in the order of their intent.
    pub(super) fn runs_of(&self, worker: u32) -> Vec<RunId> {
        let mut runs: Vec<(&RunId, &RunProgress)> = self
            .runs
            .iter()
            .filter(|(_, run)| run.worker == worker)
            .collect();
        runs.sort_by_key(|(_, run)| run.intended_at);
        runs.into_iter().map(|(id, _)| id.clone()).collect()
    }
}
