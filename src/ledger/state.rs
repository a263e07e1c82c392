//! The state that follows from the facts: the only place where a fact changes anything.
//!
//! `apply` is total: a fact that does not fit (an end of an unknown run, a stage of a task that is
//! not in flight) changes nothing but the sequence number. Replaying a prefix gives the state that was
//! live after it (P4).

use super::fact::{Fact, FactBody, LoopSettings};
use super::ordered::OrderedIds;
use super::progress::{Blocked, Captured, EndedCycle, InFlight, RunProgress, WorkerProgress};
use crate::types::{Decision, RunId, TaskId, Timestamp};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Blockers, warnings and ended cycles that are kept.
const KEPT_MAX: usize = 50;
/// Runs of an ended cycle that are kept.
pub(super) const CYCLE_RUNS_MAX: usize = 100;
/// Changed files of a cycle that are shown.
pub(super) const CYCLE_FILES_MAX: usize = 1_000;

/// What the ledger says now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LedgerState {
    pub(super) last_seq: u64,
    pub(super) segment: u64,
    pub(super) max_epoch: u64,
    pub(super) settings: Option<LoopSettings>,
    pub(super) decision: Option<Decision>,
    pub(super) completed: OrderedIds,
    pub(super) deferred: OrderedIds,
    deferred_reasons: HashMap<TaskId, String>,
    pub(super) blocked: BTreeMap<TaskId, Blocked>,
    cancelled: HashSet<TaskId>,
    pub(super) needs_selection: OrderedIds,
    blockers_of: HashMap<TaskId, u32>,
    known: HashSet<TaskId>,
    pub(super) in_flight: BTreeMap<TaskId, InFlight>,
    /// Open runs of no task in flight.
    loose_runs: BTreeMap<RunId, RunProgress>,
    /// The task in flight of a run.
    run_tasks: HashMap<RunId, TaskId>,
    pub(super) ended: VecDeque<EndedCycle>,
    pub(super) consecutive_blockers: u32,
    pub(super) blockers: VecDeque<String>,
    pub(super) warnings: VecDeque<String>,
}

fn keep<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == KEPT_MAX {
        list.pop_front();
    }
    list.push_back(item);
}

impl LedgerState {
    /// Takes a fact in.
    pub fn apply(&mut self, fact: &Fact) {
        self.last_seq = fact.seq;
        if let Some(task) = &fact.task {
            if !self.known.contains(task) {
                self.known.insert(task.clone());
            }
            self.apply_to_task(fact, task);
        }
        if let Some(run) = &fact.run {
            self.apply_to_run(fact, run);
        }
        self.apply_to_loop(&fact.body);
    }

    fn apply_to_loop(&mut self, body: &FactBody) {
        match body {
            FactBody::LoopStarted { settings, .. } => {
                self.settings = Some(settings.clone());
                self.decision = Some(Decision::Running);
                self.consecutive_blockers = 0;
                self.blockers.clear();
                self.warnings.clear();
            }
            FactBody::LoopStopped { decision, .. } => self.decision = Some(*decision),
            FactBody::TaskClaimed { epoch, .. }
            | FactBody::LeaseClaimed { epoch, .. }
            | FactBody::LeaseReclaimed { epoch, .. } => self.max_epoch = self.max_epoch.max(*epoch),
            FactBody::GuardTripped { guard, detail } => {
                keep(&mut self.blockers, format!("{guard}: {detail}"));
            }
            FactBody::Warning { text } => keep(&mut self.warnings, text.clone()),
            _ => {}
        }
    }

    fn apply_to_task(&mut self, fact: &Fact, task: &TaskId) {
        match &fact.body {
            FactBody::TaskClaimed { .. } => self.claim(fact, task),
            FactBody::TaskCompleted { .. } => {
                self.land(task, "completed", fact.at);
                self.unmark(task);
                self.needs_selection.remove(task);
                self.blockers_of.remove(task);
                self.completed.insert(task);
                self.consecutive_blockers = 0;
            }
            FactBody::TaskDeferred { reason, blocker } => {
                self.land(task, "deferred", fact.at);
                self.blocked.remove(task);
                self.deferred.insert(task);
                self.deferred_reasons.insert(task.clone(), reason.clone());
                if *blocker {
                    self.count_blocker(task, reason);
                }
            }
            FactBody::TaskBlocked { reason } => {
                self.land(task, "blocked", fact.at);
                self.unmark(task);
                let count = self.count_blocker(task, reason);
                let reason = reason.clone();
                self.blocked.insert(task.clone(), Blocked { reason, count });
            }
            FactBody::TaskNeedsSelection { .. } => {
                self.land(task, "needs-selection", fact.at);
                self.unmark(task);
                self.needs_selection.insert(task);
            }
            FactBody::TaskCancelled { .. } => {
                self.land(task, "cancelled", fact.at);
                self.unmark(task);
                self.needs_selection.remove(task);
                self.cancelled.insert(task.clone());
            }
            FactBody::TaskRetried {} => {
                self.unmark(task);
                self.needs_selection.remove(task);
                self.completed.remove(task);
                self.cancelled.remove(task);
                self.blockers_of.remove(task);
            }
            body => {
                if let Some(flight) = self.in_flight.get_mut(task) {
                    advance(flight, body);
                }
            }
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
        self.unmark(task);
        self.leave_flight(task);
        let worker = |no| (no, WorkerProgress::default());
        let flight = InFlight {
            title: title.clone(),
            iteration: *iteration,
            base: base.clone(),
            claims: claims.clone(),
            lease_id: lease_id.clone(),
            epoch: *epoch,
            stages: stages.clone(),
            workers: (1..=*workers).map(worker).collect(),
            runs: BTreeMap::new(),
            started_at: fact.at,
        };
        self.in_flight.insert(task.clone(), flight);
    }

    fn count_blocker(&mut self, task: &TaskId, reason: &str) -> u32 {
        let count = self.blockers_of.entry(task.clone()).or_default();
        *count = count.saturating_add(1);
        let count = *count;
        self.consecutive_blockers = self.consecutive_blockers.saturating_add(1);
        keep(&mut self.blockers, format!("{task}: {reason}"));
        count
    }

    /// No longer deferred, no longer blocked.
    fn unmark(&mut self, task: &TaskId) {
        self.deferred.remove(task);
        self.deferred_reasons.remove(task);
        self.blocked.remove(task);
    }

    /// A task leaves flight: its workers' tries become ended cycles.
    fn land(&mut self, task: &TaskId, decision: &'static str, at: Timestamp) {
        let Some(flight) = self.leave_flight(task) else {
            return;
        };
        for (no, worker) in &flight.workers {
            let changed = worker.captured.iter().flat_map(|c| &c.changed_files);
            let cycle = EndedCycle {
                task: task.clone(),
                title: flight.title.clone(),
                worker: *no,
                iteration: flight.iteration,
                stage: flight.stage_of(worker).map(str::to_owned),
                runs: flight.runs_of(*no, CYCLE_RUNS_MAX),
                decision,
                changed_files: changed.take(CYCLE_FILES_MAX).cloned().collect(),
                started_at: flight.started_at,
                ended_at: at,
            };
            keep(&mut self.ended, cycle);
        }
    }

    /// Ended runs of the task leave memory, open ones stay open.
    fn leave_flight(&mut self, task: &TaskId) -> Option<InFlight> {
        let flight = self.in_flight.remove(task)?;
        for (id, run) in &flight.runs {
            self.run_tasks.remove(id);
            if run.exited.is_none() {
                self.loose_runs.insert(id.clone(), run.clone());
            }
        }
        Some(flight)
    }

    fn run_mut(&mut self, run: &RunId) -> Option<&mut RunProgress> {
        match self.run_tasks.get(run) {
            Some(task) => self.in_flight.get_mut(task)?.runs.get_mut(run),
            None => self.loose_runs.get_mut(run),
        }
    }

    fn apply_to_run(&mut self, fact: &Fact, run: &RunId) {
        match &fact.body {
            FactBody::RunIntended { .. } => self.intend(fact, run),
            FactBody::RunStarted {
                pid, start_ticks, ..
            } => {
                if let Some(progress) = self.run_mut(run)
                    && progress.exited.is_none()
                {
                    progress.started = Some((*pid, *start_ticks));
                }
            }
            FactBody::RunExited {
                outcome, verdict, ..
            } => {
                if self.loose_runs.remove(run).is_none()
                    && let Some(progress) = self.run_mut(run)
                    && progress.exited.is_none()
                {
                    progress.exited = Some((*outcome, verdict.clone()));
                }
            }
            _ => {}
        }
    }

    fn intend(&mut self, fact: &Fact, run: &RunId) {
        let FactBody::RunIntended {
            worker,
            stage,
            role,
            attempt,
            slots,
            token,
        } = &fact.body
        else {
            return;
        };
        if self.run_mut(run).is_some() {
            return;
        }
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
        let flight = fact
            .task
            .as_ref()
            .and_then(|t| Some((t, self.in_flight.get_mut(t)?)));
        match flight {
            Some((task, flight)) => {
                flight.runs.insert(run.clone(), progress);
                self.run_tasks.insert(run.clone(), task.clone());
            }
            None => {
                self.loose_runs.insert(run.clone(), progress);
            }
        }
    }

    pub(super) fn set_segment(&mut self, segment: u64) {
        self.segment = segment;
    }

    pub(super) fn loose_runs(&self) -> &BTreeMap<RunId, RunProgress> {
        &self.loose_runs
    }

    pub(super) fn run(&self, run: &RunId) -> Option<&RunProgress> {
        match self.run_tasks.get(run) {
            Some(task) => self.in_flight.get(task)?.runs.get(run),
            None => self.loose_runs.get(run),
        }
    }

    /// Whether a task was cancelled by command and not retried since.
    #[must_use]
    pub fn is_cancelled(&self, task: &TaskId) -> bool {
        self.cancelled.contains(task)
    }

    /// Blockers of a task since it was last completed or retried.
    #[must_use]
    pub fn blockers_of(&self, task: &TaskId) -> u32 {
        self.blockers_of.get(task).copied().unwrap_or_default()
    }

    /// Why a deferred task was deferred, for people.
    #[must_use]
    pub fn deferred_reason(&self, task: &TaskId) -> Option<String> {
        self.deferred_reasons.get(task).cloned()
    }

    /// Whether any fact is about the task.
    #[must_use]
    pub fn knows(&self, task: &TaskId) -> bool {
        self.known.contains(task)
    }
}

/// A fact about a task in flight that leaves it there.
fn advance(flight: &mut InFlight, body: &FactBody) {
    match body {
        FactBody::LeaseClaimed {
            lease_id, epoch, ..
        } => {
            flight.lease_id = lease_id.clone();
            flight.epoch = *epoch;
        }
        FactBody::StagePassed { worker, stage } => {
            if let Some(progress) = flight.workers.get_mut(worker)
                && !progress.passed_stages.contains(stage)
            {
                progress.passed_stages.push(stage.clone());
            }
        }
        FactBody::StageFailed {
            worker,
            reason,
            blocked,
            ..
        } => {
            if let Some(progress) = flight.workers.get_mut(worker) {
                progress.failed = Some((reason.clone(), *blocked));
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
            if let Some(progress) = flight.workers.get_mut(worker) {
                progress.captured = Some(Captured {
                    passed: *passed,
                    branch: branch.clone(),
                    commit: commit.clone(),
                    patch: patch.clone(),
                    changed_files: changed_files.clone(),
                });
            }
        }
        _ => {}
    }
}
