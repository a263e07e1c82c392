//! What follows from the facts. One `apply` for the live path and for replay; total over any order.
//!
//! Of a finished task only its id stays in memory. Knows no files and no clock.

use super::fact::{Fact, FactBody, LoopSettings};
use super::history::{Cycle, History};
use crate::types::{Decision, LeaseId, Outcome, RunId, TaskId, Timestamp, Verdict};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The newest completed ids that the view names (config §6).
pub(super) const COMPLETED_SHOWN_MAX: usize = 1_000;

/// Why a task is blocked and how often it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// For people.
    pub reason: String,
    /// Blockers counted against it since its last completion or retry.
    pub count: u32,
}

/// What a worker left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// All its stages passed.
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

/// How far a worker of a task in flight is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerProgress {
    /// In order.
    pub passed_stages: Vec<String>,
    /// Why a stage did not pass, and whether a role asked for a person.
    pub failed: Option<(String, bool)>,
    /// Its work, once kept.
    pub captured: Option<Captured>,
}

/// What is known of a run that is open or belongs to a task in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunProgress {
    /// None for `flockd run`.
    pub task: Option<TaskId>,
    /// From 1.
    pub worker: u32,
    /// The stage.
    pub stage: String,
    /// The role.
    pub role: String,
    /// From 1.
    pub attempt: u32,
    /// Permits.
    pub slots: u32,
    /// What its processes carry.
    pub token: String,
    /// Process id and start time in ticks, once it exists.
    pub started: Option<(u32, u64)>,
    /// How it ended.
    pub exited: Option<(Outcome, Verdict)>,
}

/// A claimed task that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    /// Its title when it was claimed.
    pub title: String,
    /// Of its loop.
    pub iteration: u32,
    /// The pinned commit.
    pub base: String,
    /// Its paths.
    pub claims: Vec<String>,
    /// Its lease.
    pub lease_id: LeaseId,
    /// The lease's fencing token.
    pub epoch: u64,
    /// In order.
    pub stages: Vec<String>,
    /// By number.
    pub workers: BTreeMap<u32, WorkerProgress>,
    /// Its runs, ended ones too.
    pub runs: BTreeMap<RunId, RunProgress>,
    /// When it was claimed.
    pub started_at: Timestamp,
}

/// The state that the facts so far add up to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LedgerState {
    last_seq: u64,
    max_epoch: u64,
    completed: BTreeSet<TaskId>,
    completed_order: VecDeque<TaskId>,
    deferred: BTreeMap<TaskId, String>,
    deferred_order: Vec<TaskId>,
    blocked: BTreeMap<TaskId, String>,
    cancelled: BTreeSet<TaskId>,
    selections: BTreeSet<TaskId>,
    blockers: BTreeMap<TaskId, u32>,
    consecutive_blockers: u32,
    in_flight: BTreeMap<TaskId, InFlight>,
    /// Runs of no task, until they end.
    loose_runs: BTreeMap<RunId, RunProgress>,
    /// Where the run of a task in flight is kept.
    run_tasks: BTreeMap<RunId, TaskId>,
    settings: Option<LoopSettings>,
    decision: Option<Decision>,
    history: History,
}

impl LedgerState {
    /// Adds one fact. Total: a fact that fits nothing changes nothing but the sequence number.
    pub fn apply(&mut self, fact: &Fact) {
        self.last_seq = self.last_seq.max(fact.seq);
        match (&fact.task, &fact.run) {
            (_, Some(run)) => self.apply_to_run(fact, run),
            (Some(task), None) => self.apply_to_task(fact, task),
            (None, None) => self.apply_to_loop(fact),
        }
    }

    fn apply_to_loop(&mut self, fact: &Fact) {
        match &fact.body {
            FactBody::LoopStarted { settings, .. } => {
                self.settings = Some(settings.clone());
                self.decision = Some(Decision::Running);
                self.consecutive_blockers = 0;
                self.history.new_loop();
            }
            FactBody::LoopStopped { decision, .. } => self.decision = Some(*decision),
            FactBody::GuardTripped { guard, detail } => {
                self.history.blocker(format!("{guard}: {detail}"))
            }
            FactBody::Warning { text } => self.history.warning(text.clone()),
            FactBody::LeaseReclaimed { epoch, .. } | FactBody::LeaseClaimed { epoch, .. } => {
                self.max_epoch = self.max_epoch.max(*epoch);
            }
            _ => {}
        }
    }

    fn apply_to_run(&mut self, fact: &Fact, run: &RunId) {
        if let FactBody::RunIntended {
            worker,
            stage,
            role,
            attempt,
            slots,
            token,
        } = &fact.body
        {
            let progress = RunProgress {
                task: fact.task.clone(),
                worker: *worker,
                stage: stage.clone(),
                role: role.clone(),
                attempt: *attempt,
                slots: *slots,
                token: token.clone(),
                started: None,
                exited: None,
            };
            match fact
                .task
                .as_ref()
                .and_then(|t| Some((t, self.in_flight.get_mut(t)?)))
            {
                Some((task, flight)) => {
                    flight.runs.entry(run.clone()).or_insert(progress);
                    self.run_tasks.insert(run.clone(), task.clone());
                }
                None => drop(self.loose_runs.entry(run.clone()).or_insert(progress)),
            }
            return;
        }
        let Some(progress) = self.run_mut(run) else {
            return;
        };
        match &fact.body {
            FactBody::RunStarted {
                pid, start_ticks, ..
            } => progress.started = Some((*pid, *start_ticks)),
            FactBody::RunExited {
                outcome, verdict, ..
            } if progress.exited.is_none() => {
                progress.exited = Some((*outcome, verdict.clone()));
                self.loose_runs.remove(run);
            }
            _ => {}
        }
    }

    fn run_mut(&mut self, run: &RunId) -> Option<&mut RunProgress> {
        match self.run_tasks.get(run) {
            Some(task) => self.in_flight.get_mut(task)?.runs.get_mut(run),
            None => self.loose_runs.get_mut(run),
        }
    }

    fn apply_to_task(&mut self, fact: &Fact, task: &TaskId) {
        match &fact.body {
            FactBody::TaskClaimed { .. } => self.claim(fact, task),
            FactBody::LeaseClaimed {
                lease_id, epoch, ..
            } => {
                self.max_epoch = self.max_epoch.max(*epoch);
                if let Some(flight) = self.in_flight.get_mut(task) {
                    flight.lease_id = lease_id.clone();
                    flight.epoch = *epoch;
                }
            }
            FactBody::StagePassed { worker, stage } => {
                if let Some(w) = self.worker_mut(task, *worker)
                    && !w.passed_stages.contains(stage)
                {
                    w.passed_stages.push(stage.clone());
                }
            }
            FactBody::StageFailed {
                worker,
                stage,
                reason,
                blocked,
            } => {
                if let Some(w) = self.worker_mut(task, *worker) {
                    w.failed = Some((format!("{stage}: {reason}"), *blocked));
                }
            }
            FactBody::WorkerCaptured {
                worker,
                passed,
                branch,
                commit,
                patch,
                changed_files,
            } => {
                if let Some(w) = self.worker_mut(task, *worker) {
                    w.captured = Some(Captured {
                        passed: *passed,
                        branch: branch.clone(),
                        commit: commit.clone(),
                        patch: patch.clone(),
                        changed_files: changed_files.clone(),
                    });
                }
            }
            FactBody::GuardTripped { guard, detail } => {
                self.history.blocker(format!("{task}: {guard}: {detail}"));
            }
            FactBody::Warning { text } => self.history.warning(text.clone()),
            FactBody::ClaimViolated { paths, .. } => {
                self.history.warning(format!(
                    "{task}: changed outside its claim: {}",
                    paths.join(", ")
                ));
            }
            _ => self.end_task(fact, task),
        }
    }

    fn claim(&mut self, fact: &Fact, task: &TaskId) {
        let FactBody::TaskClaimed {
            title,
            iteration,
            base,
            claims,
            workers,
            stages,
            lease_id,
            epoch,
            ..
        } = &fact.body
        else {
            return;
        };
        self.max_epoch = self.max_epoch.max(*epoch);
        self.forget_marks(task);
        self.leave_flight(task);
        self.in_flight.insert(
            task.clone(),
            InFlight {
                title: title.clone(),
                iteration: *iteration,
                base: base.clone(),
                claims: claims.clone(),
                lease_id: lease_id.clone(),
                epoch: *epoch,
                stages: stages.clone(),
                workers: (1..=*workers)
                    .map(|n| (n, WorkerProgress::default()))
                    .collect(),
                runs: BTreeMap::new(),
                started_at: fact.at,
            },
        );
    }

    fn end_task(&mut self, fact: &Fact, task: &TaskId) {
        match &fact.body {
            FactBody::TaskCompleted { changed_files, .. } => {
                self.close_cycle(fact, task, "completed", changed_files);
                self.forget_marks(task);
                self.blockers.remove(task);
                self.consecutive_blockers = 0;
                if self.completed.insert(task.clone()) {
                    self.completed_order.push_back(task.clone());
                    if self.completed_order.len() > COMPLETED_SHOWN_MAX {
                        self.completed_order.pop_front();
                    }
                }
            }
            FactBody::TaskDeferred { reason, blocker } => {
                self.close_cycle(fact, task, "deferred", &[]);
                if self.deferred.insert(task.clone(), reason.clone()).is_none() {
                    self.deferred_order.push(task.clone());
                }
                if *blocker {
                    self.count_blocker(task, reason);
                }
            }
            FactBody::TaskBlocked { reason } => {
                self.close_cycle(fact, task, "blocked", &[]);
                self.forget_marks(task);
                self.blocked.insert(task.clone(), reason.clone());
                self.count_blocker(task, reason);
            }
            FactBody::TaskNeedsSelection { .. } => {
                self.close_cycle(fact, task, "needs-human-selection", &[]);
                self.forget_marks(task);
                self.selections.insert(task.clone());
            }
            FactBody::TaskCancelled { .. } => {
                self.close_cycle(fact, task, "cancelled", &[]);
                self.forget_marks(task);
                self.cancelled.insert(task.clone());
            }
            FactBody::TaskRetried {} => {
                self.forget_marks(task);
                self.blockers.remove(task);
                if self.completed.remove(task) {
                    self.completed_order.retain(|t| t != task);
                }
            }
            _ => {}
        }
    }

    fn count_blocker(&mut self, task: &TaskId, reason: &str) {
        *self.blockers.entry(task.clone()).or_default() += 1;
        self.consecutive_blockers += 1;
        self.history.blocker(format!("{task}: {reason}"));
    }

    fn forget_marks(&mut self, task: &TaskId) {
        if self.deferred.remove(task).is_some() {
            self.deferred_order.retain(|t| t != task);
        }
        self.blocked.remove(task);
        self.cancelled.remove(task);
        self.selections.remove(task);
    }

    fn leave_flight(&mut self, task: &TaskId) -> Option<InFlight> {
        let flight = self.in_flight.remove(task)?;
        for (run, progress) in &flight.runs {
            self.run_tasks.remove(run);
            // A child that is not known to have ended must be found by the next start all the same.
            if progress.exited.is_none() {
                self.loose_runs.insert(run.clone(), progress.clone());
            }
        }
        Some(flight)
    }

    fn close_cycle(&mut self, fact: &Fact, task: &TaskId, decision: &str, changed: &[String]) {
        if let Some(flight) = self.leave_flight(task) {
            self.history
                .close(Cycle::of(task, &flight, decision, changed, Some(fact.at)));
        }
    }

    fn worker_mut(&mut self, task: &TaskId, worker: u32) -> Option<&mut WorkerProgress> {
        self.in_flight.get_mut(task)?.workers.get_mut(&worker)
    }
}

/// Questions.
impl LedgerState {
    /// Of the newest fact; 0 before the first.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The highest fencing token that a fact tells of.
    #[must_use]
    pub fn max_epoch(&self) -> u64 {
        self.max_epoch
    }

    /// Whether a task is done.
    #[must_use]
    pub fn is_completed(&self, task: &TaskId) -> bool {
        self.completed.contains(task)
    }

    /// How many tasks are done.
    #[must_use]
    pub fn completed_count(&self) -> usize {
        self.completed.len()
    }

    pub(super) fn completed_newest(&self) -> &VecDeque<TaskId> {
        &self.completed_order
    }

    /// Whether a task failed and may be tried again.
    #[must_use]
    pub fn is_deferred(&self, task: &TaskId) -> bool {
        self.deferred.contains_key(task)
    }

    /// Why it failed.
    #[must_use]
    pub fn deferred_reason(&self, task: &TaskId) -> Option<String> {
        self.deferred.get(task).cloned()
    }

    pub(super) fn deferred_ids(&self) -> &[TaskId] {
        &self.deferred_order
    }

    /// Why a task needs a person.
    #[must_use]
    pub fn blocked(&self, task: &TaskId) -> Option<Blocked> {
        let reason = self.blocked.get(task)?.clone();
        Some(Blocked {
            reason,
            count: self.blockers_of(task),
        })
    }

    pub(super) fn blocked_ids(&self) -> impl Iterator<Item = &TaskId> {
        self.blocked.keys()
    }

    /// Blockers counted against a task since its last completion or retry.
    #[must_use]
    pub fn blockers_of(&self, task: &TaskId) -> u32 {
        self.blockers.get(task).copied().unwrap_or(0)
    }

    /// Whether a task was taken out by command.
    #[must_use]
    pub fn is_cancelled(&self, task: &TaskId) -> bool {
        self.cancelled.contains(task)
    }

    /// Whether a person must choose among its workers.
    #[must_use]
    pub fn needs_selection(&self, task: &TaskId) -> bool {
        self.selections.contains(task)
    }

    /// Whether some fact says where the task stands.
    #[must_use]
    pub fn knows(&self, task: &TaskId) -> bool {
        self.is_completed(task)
            || self.in_flight.contains_key(task)
            || self.is_deferred(task)
            || self.blocked.contains_key(task)
            || self.is_cancelled(task)
            || self.needs_selection(task)
    }

    /// Blockers since the last completion, of the current loop.
    #[must_use]
    pub fn consecutive_blockers(&self) -> u32 {
        self.consecutive_blockers
    }

    /// Claimed tasks that are not over.
    pub fn in_flight(&self) -> impl Iterator<Item = (&TaskId, &InFlight)> {
        self.in_flight.iter()
    }

    /// Runs that were intended and are not known to have ended, those of no task too.
    pub fn open_runs(&self) -> impl Iterator<Item = (&RunId, &RunProgress)> {
        self.in_flight
            .values()
            .flat_map(|f| &f.runs)
            .chain(&self.loose_runs)
            .filter(|(_, r)| r.exited.is_none())
    }

    /// Whether a run was intended and is not known to have ended.
    #[must_use]
    pub fn is_open(&self, run: &RunId) -> bool {
        self.run(run).is_some_and(|r| r.exited.is_none())
    }

    /// The task of a run that is open or belongs to a task in flight.
    #[must_use]
    pub fn task_of_run(&self, run: &RunId) -> Option<TaskId> {
        self.run(run).and_then(|r| r.task.clone())
    }

    fn run(&self, run: &RunId) -> Option<&RunProgress> {
        match self.run_tasks.get(run) {
            Some(task) => self.in_flight.get(task)?.runs.get(run),
            None => self.loose_runs.get(run),
        }
    }

    /// The newest warnings of the current loop, oldest first.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.history.warnings()
    }

    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// The settings of the newest loop.
    #[must_use]
    pub fn settings(&self) -> Option<&LoopSettings> {
        self.settings.as_ref()
    }

    /// The decision word of the newest loop.
    #[must_use]
    pub fn decision(&self) -> Option<Decision> {
        self.decision
    }
}
