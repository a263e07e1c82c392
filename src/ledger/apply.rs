//! How a fact changes the state. Pure and total: no fact, in no order, makes it fail.

use super::fact::{Fact, FactBody};
use super::progress::{
    EndedCycle, InFlight, OpenRun, RunEnd, RunProgress, RunStart, StageFailure, WorkerCapture,
};
use super::state::{
    BlockedInfo, DeferredInfo, FILES_KEPT, IDS_SHOWN, KEPT, LedgerState, WaitingInfo,
};
use crate::types::{Decision, RunId, TaskId, Timestamp};
use std::collections::{BTreeMap, VecDeque};

impl LedgerState {
    /// Takes a fact in. The same call for replay and live.
    pub fn apply(&mut self, fact: &Fact) {
        self.last_seq = self.last_seq.max(fact.seq);
        self.last_at = fact.at;
        match (&fact.task, &fact.run) {
            (_, Some(run)) if self.apply_run(fact, run) => {}
            (Some(task), _) if self.apply_end(fact, task) || self.apply_task(fact, task) => {}
            (task, _) => self.apply_other(fact, task.as_ref()),
        }
    }

    /// Facts about a child; whether it was one.
    fn apply_run(&mut self, fact: &Fact, id: &RunId) -> bool {
        match &fact.body {
            FactBody::RunIntended {
                worker,
                stage,
                role,
                attempt,
                slots,
                token,
            } => {
                let run = RunProgress {
                    worker: *worker,
                    stage: stage.clone(),
                    role: role.clone(),
                    attempt: *attempt,
                    slots: *slots,
                    token: token.clone(),
                    intended_at: fact.at,
                    started: None,
                    exited: None,
                };
                self.intend(fact.task.as_ref(), id, run);
            }
            FactBody::RunStarted {
                pid,
                start_ticks,
                slots,
            } => {
                let start = RunStart {
                    pid: *pid,
                    start_ticks: *start_ticks,
                    slots: slots.clone(),
                    at: fact.at,
                };
                if let Some(open) = self.open_runs.get_mut(id) {
                    open.run.started = Some(start.clone());
                }
                if let Some(run) = self.run_in_flight(fact.task.as_ref(), id) {
                    run.started = Some(start);
                }
            }
            FactBody::RunExited {
                outcome,
                exit_code,
                verdict,
                detail,
                ended_at,
                ..
            } => {
                let open = self.open_runs.remove(id);
                let task = fact
                    .task
                    .clone()
                    .or_else(|| open.and_then(|open| open.task));
                if let Some(run) = self.run_in_flight(task.as_ref(), id) {
                    run.exited.get_or_insert_with(|| RunEnd {
                        outcome: *outcome,
                        verdict: verdict.clone(),
                        exit_code: *exit_code,
                        detail: detail.clone(),
                        ended_at: *ended_at,
                    });
                }
            }
            _ => return false,
        }
        true
    }

    fn intend(&mut self, task: Option<&TaskId>, id: &RunId, run: RunProgress) {
        if let Some(task) = task {
            self.waiting.remove(task);
        }
        if let Some(flight) = task.and_then(|task| self.in_flight.get_mut(task)) {
            // A repeated intent of a run that ended does not open it again.
            if flight.runs.get(id).is_some_and(|run| run.exited.is_some()) {
                return;
            }
            flight.worker_mut(run.worker).stage = Some(run.stage.clone());
            flight.runs.insert(id.clone(), run.clone());
        }
        let task = task.cloned();
        self.open_runs.insert(id.clone(), OpenRun { task, run });
    }

    fn run_in_flight(&mut self, task: Option<&TaskId>, id: &RunId) -> Option<&mut RunProgress> {
        self.in_flight.get_mut(task?)?.runs.get_mut(id)
    }

    /// Facts that end a task or begin it anew; whether it was one.
    fn apply_end(&mut self, fact: &Fact, task: &TaskId) -> bool {
        let at = fact.at;
        match &fact.body {
            FactBody::TaskCompleted { changed_files, .. } => {
                self.end(task, "completed", changed_files, at);
                self.clear(task);
                self.blockers_per_task.remove(task);
                self.consecutive_blockers = 0;
                if self.completed.insert(task.clone()) {
                    self.completed_this_loop = self.completed_this_loop.saturating_add(1);
                    push_bounded(&mut self.completed_newest, task.clone(), IDS_SHOWN);
                }
            }
            FactBody::TaskDeferred { reason, blocker } => {
                self.end(task, "deferred", &[], at);
                if *blocker {
                    self.count_blocker(task, reason);
                }
                self.blocked.remove(task);
                self.waiting.remove(task);
                let info = DeferredInfo {
                    reason: reason.clone(),
                    blocker: *blocker,
                    at,
                };
                self.deferred.insert(task, info);
            }
            FactBody::TaskBlocked { reason } => {
                self.end(task, "blocked", &[], at);
                let count = self.count_blocker(task, reason);
                self.deferred.remove(task);
                self.waiting.remove(task);
                let reason = reason.clone();
                self.blocked.insert(task, BlockedInfo { reason, count, at });
            }
            FactBody::TaskNeedsSelection { branches } => {
                self.end(task, "needs-selection", &[], at);
                self.clear(task);
                self.selections.insert(task, branches.clone());
            }
            FactBody::TaskCancelled { .. } => {
                self.end(task, "cancelled", &[], at);
                self.clear(task);
                self.cancelled.insert(task, ());
            }
            FactBody::TaskRetried {} => {
                self.clear(task);
                self.blockers_per_task.remove(task);
                if self.completed.remove(task) {
                    self.completed_newest.retain(|other| other != task);
                }
            }
            _ => return false,
        }
        true
    }

    /// Facts about a task on its way; whether it was one.
    fn apply_task(&mut self, fact: &Fact, task: &TaskId) -> bool {
        match &fact.body {
            FactBody::TaskClaimed { .. } => self.claim(fact, task),
            FactBody::TaskWaiting { wait_for, detail } => {
                let info = WaitingInfo {
                    wait_for: *wait_for,
                    detail: detail.clone(),
                    at: fact.at,
                };
                self.waiting.insert(task, info);
            }
            FactBody::LeaseClaimed {
                lease_id,
                epoch,
                resumed: true,
                ..
            } => {
                self.epoch_max = self.epoch_max.max(*epoch);
                if let Some(flight) = self.in_flight.get_mut(task) {
                    flight.lease_id = lease_id.clone();
                    flight.epoch = *epoch;
                }
            }
            FactBody::StagePassed { worker, stage } => {
                if let Some(flight) = self.in_flight.get_mut(task) {
                    let worker = flight.worker_mut(*worker);
                    worker.stage = Some(stage.clone());
                    worker.failed.take_if(|failed| failed.stage == *stage);
                    if !worker.passed_stages.contains(stage) {
                        worker.passed_stages.push(stage.clone());
                    }
                }
            }
            FactBody::StageFailed {
                worker,
                stage,
                reason,
                blocked,
            } => {
                if let Some(flight) = self.in_flight.get_mut(task) {
                    let worker = flight.worker_mut(*worker);
                    worker.stage = Some(stage.clone());
                    worker.failed = Some(StageFailure {
                        stage: stage.clone(),
                        reason: reason.clone(),
                        blocked: *blocked,
                    });
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
                if let Some(flight) = self.in_flight.get_mut(task) {
                    flight.worker_mut(*worker).captured = Some(WorkerCapture {
                        passed: *passed,
                        branch: branch.clone(),
                        commit: commit.clone(),
                        patch: patch.clone(),
                        changed_files: changed_files.clone(),
                    });
                }
            }
            _ => return false,
        }
        true
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
            retry,
        } = &fact.body
        else {
            return;
        };
        self.clear(task);
        self.claimed_this_loop = self.claimed_this_loop.saturating_add(1);
        self.epoch_max = self.epoch_max.max(*epoch);
        let flight = InFlight {
            title: title.clone(),
            iteration: *iteration,
            base: base.clone(),
            claims: claims.clone(),
            lease_id: lease_id.clone(),
            epoch: *epoch,
            stages: stages.clone(),
            worker_count: *workers,
            retry: *retry,
            claimed_at: fact.at,
            claimed_seq: fact.seq,
            workers: BTreeMap::new(),
            runs: BTreeMap::new(),
        };
        self.in_flight.insert(task.clone(), flight);
    }

    /// Facts about the loop, leases and people.
    fn apply_other(&mut self, fact: &Fact, task: Option<&TaskId>) {
        match &fact.body {
            FactBody::LoopStarted { settings, .. } => {
                self.decision = Some(Decision::Running);
                self.settings = Some(settings.clone());
                self.blockers.clear();
                self.warnings.clear();
                self.consecutive_blockers = 0;
                self.completed_this_loop = 0;
                self.claimed_this_loop = 0;
            }
            FactBody::LoopStopped { decision, .. } => self.decision = Some(*decision),
            FactBody::LeaseClaimed { epoch, .. } | FactBody::LeaseReclaimed { epoch, .. } => {
                self.epoch_max = self.epoch_max.max(*epoch);
            }
            FactBody::GuardTripped { guard, detail } => {
                let text = about(task, &format!("guard {guard}: {detail}"));
                push_bounded(&mut self.blockers, text, KEPT);
            }
            FactBody::ClaimViolated { worker, paths } => {
                let shown = paths
                    .iter()
                    .take(10)
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", ");
                let text = format!(
                    "worker {worker} changed {} path(s) outside its claim: {shown}",
                    paths.len()
                );
                push_bounded(&mut self.warnings, about(task, &text), KEPT);
            }
            FactBody::Warning { text } => {
                push_bounded(&mut self.warnings, about(task, text), KEPT);
            }
            // No arm for what changes nothing here, kinds of newer versions included.
            _ => {}
        }
    }

    /// Forgets where a task stood, not how often it was blocked.
    fn clear(&mut self, task: &TaskId) {
        self.deferred.remove(task);
        self.blocked.remove(task);
        self.cancelled.remove(task);
        self.selections.remove(task);
        self.waiting.remove(task);
    }

    fn count_blocker(&mut self, task: &TaskId, reason: &str) -> u32 {
        self.consecutive_blockers = self.consecutive_blockers.saturating_add(1);
        push_bounded(&mut self.blockers, about(Some(task), reason), KEPT);
        let count = self.blockers_per_task.entry(task.clone()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// Moves a task from those in flight to the ended ones, one cycle per worker.
    fn end(&mut self, task: &TaskId, decision: &'static str, changed: &[String], at: Timestamp) {
        let Some(flight) = self.in_flight.remove(task) else {
            return;
        };
        for (number, worker) in flight.shown_workers() {
            let captured = worker.and_then(|worker| worker.captured.as_ref());
            let files = captured.map_or(changed, |captured| &captured.changed_files);
            let cycle = EndedCycle {
                task: task.clone(),
                title: flight.title.clone(),
                worker: number,
                iteration: flight.iteration,
                stage: worker.and_then(|worker| worker.stage.clone()),
                runs: flight.runs_of(number),
                decision,
                changed_files: files.iter().take(FILES_KEPT).cloned().collect(),
                started_at: flight.claimed_at,
                ended_at: at,
            };
            push_bounded(&mut self.ended, cycle, KEPT);
        }
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, max: usize) {
    if queue.len() >= max {
        queue.pop_front();
    }
    queue.push_back(item);
}

fn about(task: Option<&TaskId>, text: &str) -> String {
    match task {
        Some(task) => format!("{task}: {text}"),
        None => text.to_owned(),
    }
}
