//! What follows from the state: which calls start, when a stage, a worker, a task and the loop are over.

use super::core::{Core, Out};
use super::event::{EdgeError, Effect, Finish, StopLevel, StopSource, WorkKept};
use super::flight::{
    Abort, CallState, Phase, StageVerdict, StopReason, WorkerResult, judge,
};
use super::select::Obstacle;
use crate::config::TaskState;
use crate::gate::{CallPhase, Reason};
use crate::ledger::FactBody;
use crate::types::{Decision, Now, TaskId};
use std::sync::Arc;

impl Core {
    /// Brings everything as far as it can go now. Called after every event.
    pub(super) fn advance(&mut self, now: Now, out: &mut Out) {
        let ids: Vec<TaskId> = self.flights.keys().cloned().collect();
        for id in &ids {
            self.advance_flight(now, id, out);
        }
        self.check_guards(now, out);
        self.claim_next(out);
        self.check_finish(now, out);
    }

    fn advance_flight(&mut self, now: Now, id: &TaskId, out: &mut Out) {
        let Some(flight) = self.flights.get(id) else { return };
        if flight.lease.is_none() {
            return;
        }
        let workers: Vec<u32> = flight.workers.iter().map(|w| w.no).collect();
        for worker in workers {
            while self.advance_worker(now, id, worker, out) {}
        }
        let over = self
            .flights
            .get(id)
            .is_some_and(|f| f.workers.iter().all(|w| w.phase == Phase::Done && !w.has_child()));
        if over {
            self.end_flight(now, id, out);
        }
    }

    /// One step of a worker; true when another may follow at once.
    fn advance_worker(&mut self, now: Now, id: &TaskId, no: u32, out: &mut Out) -> bool {
        let Some(flight) = self.flights.get_mut(id) else { return false };
        let aborted = flight.abort.is_some();
        let stages = flight.stages.len();
        let Some(ix) = flight.workers.iter().position(|w| w.no == no) else { return false };
        let Some(worker) = flight.workers.get_mut(ix) else { return false };
        if worker.phase != Phase::Staging {
            return false;
        }
        if aborted || worker.result != WorkerResult::Open || worker.stage_ix >= stages {
            return self.leave_stages(now, id, no, out);
        }
        let Some(stage) = flight.stages.get(worker.stage_ix) else { return false };
        if worker.calls.is_empty() {
            worker.calls = stage.calls.iter().map(super::flight::CallTemplate::call).collect();
        }
        let verdict = judge(&worker.calls, stage.require);
        let name = stage.name.clone();
        match verdict {
            StageVerdict::Undecided => {
                self.start_calls(id, no, out);
                false
            }
            decided => self.close_stage(now, id, no, name, decided, out),
        }
    }

    fn start_calls(&mut self, id: &TaskId, no: u32, out: &mut Out) {
        if !self.may_start() {
            return;
        }
        let Some(worker) = self.flights.get_mut(id).and_then(|f| f.worker_mut(no)) else { return };
        let phases: Vec<_> = worker.calls.iter().map(|c| (c.decl, c.phase())).collect();
        let admitted: Vec<usize> = self
            .gate
            .decide(&phases)
            .iter()
            .zip(&phases)
            .enumerate()
            .filter(|(_, (reason, (_, phase)))| **reason == Reason::Admitted && *phase == CallPhase::Pending)
            .map(|(i, _)| i)
            .collect();
        for call in admitted {
            self.queue_call(id, no, call, out);
        }
    }

    /// The stage is decided: the rest of its batch is stopped, and once it is gone the stage is closed.
    fn close_stage(
        &mut self,
        now: Now,
        id: &TaskId,
        no: u32,
        stage: String,
        verdict: StageVerdict,
        out: &mut Out,
    ) -> bool {
        let Some(worker) = self.flights.get_mut(id).and_then(|f| f.worker_mut(no)) else { return false };
        let mut open = false;
        for call in &mut worker.calls {
            match &call.state {
                CallState::Done(_) | CallState::Skipped => continue,
                CallState::AwaitingSlot { run } => {
                    out.push(Effect::ForgetSlot { run: run.clone() });
                    self.runs.remove(run);
                }
                CallState::Launched { run, .. } | CallState::Running { run, .. } => {
                    if call.stop.is_none() {
                        out.push(Effect::StopRun { run: run.clone(), kill: false });
                    }
                    call.stop = call.stop.max(Some(StopReason::BatchDecided));
                    open = true;
                    continue;
                }
                CallState::Pending | CallState::Backoff { .. } => {}
            }
            call.state = CallState::Skipped;
        }
        if open {
            return false;
        }
        worker.calls.clear();
        let body = match verdict {
            StageVerdict::Failed { reason, blocked } => {
                worker.result = WorkerResult::Failed { reason: format!("{stage}: {reason}"), blocked };
                FactBody::StageFailed { worker: no, stage, reason, blocked }
            }
            _ => {
                worker.stage_ix += 1;
                FactBody::StagePassed { worker: no, stage }
            }
        };
        self.record(now, out, Some(id), None, body);
        true
    }

    /// All stages passed, one failed, or the task is aborted: keep the work. Not while the loop stops: the
    /// next one goes on from here, and nothing is promoted behind a person's back (behaviour 50).
    fn leave_stages(&mut self, now: Now, id: &TaskId, no: u32, out: &mut Out) -> bool {
        let may_promote = self.stop.is_none() && !self.halted;
        let Some(flight) = self.flights.get_mut(id) else { return false };
        let (spec, base, aborted) = (Arc::clone(&flight.spec), flight.base.clone(), flight.abort.is_some());
        let stages = flight.stages.len();
        let Some(worker) = flight.worker_mut(no) else { return false };
        if worker.has_child() || (!may_promote && !aborted) {
            return false;
        }
        for call in &worker.calls {
            if let CallState::AwaitingSlot { run } = &call.state {
                out.push(Effect::ForgetSlot { run: run.clone() });
                self.runs.remove(run);
            }
        }
        worker.calls.clear();
        let passed = !aborted && worker.result == WorkerResult::Open && worker.stage_ix >= stages;
        if passed {
            worker.result = WorkerResult::Passed;
        } else if worker.result == WorkerResult::Open {
            worker.result = WorkerResult::Failed { reason: "aborted".to_owned(), blocked: false };
        }
        let passed = worker.result == WorkerResult::Passed;
        match worker.worktree.clone() {
            Some(worktree) => {
                worker.phase = Phase::Capturing;
                let run = worker.last_run.clone();
                out.push(Effect::Capture { task: spec, worker: no, base, worktree, run, passed });
            }
            None => worker.phase = Phase::Done,
        }
        let _ = now;
        false
    }

    pub(super) fn on_captured(
        &mut self,
        now: Now,
        id: &TaskId,
        no: u32,
        result: Result<WorkKept, EdgeError>,
        out: &mut Out,
    ) {
        let Some(worker) = self.flights.get_mut(id).and_then(|f| f.worker_mut(no)) else { return };
        if worker.phase != Phase::Capturing {
            return;
        }
        match result {
            Ok(kept) => {
                worker.phase = Phase::Done;
                worker.changed_files.clone_from(&kept.changed_files);
                let passed = worker.result == WorkerResult::Passed;
                let branch = worker.worktree.as_ref().map(|w| w.branch.clone()).unwrap_or_default();
                for text in kept.notes {
                    self.record(now, out, Some(id), None, FactBody::Warning { text: format!("{id}: {text}") });
                }
                if !kept.outside_claim.is_empty() {
                    let paths = kept.outside_claim;
                    self.record(now, out, Some(id), None, FactBody::ClaimViolated { worker: no, paths });
                }
                self.record(now, out, Some(id), None, FactBody::WorkerCaptured {
                    worker: no,
                    passed,
                    branch,
                    commit: kept.commit,
                    patch: kept.patch,
                    changed_files: kept.changed_files,
                });
            }
            Err(error) if error.systemic => {
                worker.phase = Phase::Staging;
                if worker.result == WorkerResult::Passed {
                    worker.result = WorkerResult::Open;
                }
                self.end_by_fault(now, error.detail, out);
            }
            Err(error) => {
                // Behaviour 90: work that could not be kept blocks the whole task.
                worker.phase = Phase::Done;
                worker.result = WorkerResult::Failed {
                    reason: format!("its work could not be kept: {}", error.detail),
                    blocked: true,
                };
            }
        }
    }

    fn end_flight(&mut self, now: Now, id: &TaskId, out: &mut Out) {
        let Some(flight) = self.flights.remove(id) else { return };
        self.idle = false;
        if let Some((lease_id, epoch)) = flight.lease.clone() {
            out.push(Effect::Release { lease_id, epoch });
        }
        match &flight.abort {
            Some(Abort::Cancelled(reason)) => {
                self.record(now, out, Some(id), None, FactBody::TaskCancelled { reason: reason.clone() });
                out.push(Effect::Say(format!("{id} cancelled")));
                return;
            }
            Some(Abort::WallClock(reason)) => return self.settle_failure(now, id, reason.clone(), true, out),
            None => {}
        }
        let passed: Vec<_> = flight.workers.iter().filter(|w| w.result == WorkerResult::Passed).collect();
        let branches: Vec<String> = passed
            .iter()
            .filter_map(|w| w.worktree.as_ref().map(|t| t.branch.clone()))
            .collect();
        let failures: Vec<(String, bool)> = flight
            .workers
            .iter()
            .filter_map(|w| match &w.result {
                WorkerResult::Failed { reason, blocked } if flight.workers.len() > 1 => {
                    Some((format!("worker {}: {reason}", w.no), *blocked))
                }
                WorkerResult::Failed { reason, blocked } => Some((reason.clone(), *blocked)),
                _ => None,
            })
            .collect();
        let uncaptured = failures.iter().any(|(r, _)| r.contains("could not be kept"));
        if passed.is_empty() || uncaptured {
            let blocked = failures.iter().any(|(_, blocked)| *blocked);
            let reason = failures.into_iter().map(|(r, _)| r).collect::<Vec<_>>().join("; ");
            return if blocked {
                self.block(now, id, reason, out)
            } else {
                self.settle_failure(now, id, reason, true, out)
            };
        }
        if flight.workers.len() > 1 {
            self.tally.selections += 1;
            out.push(Effect::Say(format!("{id} needs human selection: {}", branches.join(", "))));
            self.record(now, out, Some(id), None, FactBody::TaskNeedsSelection { branches });
            return;
        }
        let changed_files = passed.iter().flat_map(|w| w.changed_files.clone()).collect();
        self.tally.completed += 1;
        self.tally.blockers = 0;
        out.push(Effect::Say(format!("{id} completed on {}", branches.join(", "))));
        self.record(now, out, Some(id), None, FactBody::TaskCompleted { branches, changed_files });
    }

    /// A task did not pass. So many times: it is parked for a person.
    pub(super) fn settle_failure(&mut self, now: Now, id: &TaskId, reason: String, blocker: bool, out: &mut Out) {
        let failures = self.book.blockers_of(id) + u32::from(blocker);
        if blocker && failures >= self.config.guards.task_blockers {
            let reason = format!("failed {failures} times, last: {reason}");
            return self.block(now, id, reason, out);
        }
        self.tally.blockers += u32::from(blocker);
        self.tally.failures += 1;
        out.push(Effect::Say(format!("{id} deferred: {reason}")));
        self.record(now, out, Some(id), None, FactBody::TaskDeferred { reason, blocker });
    }

    fn block(&mut self, now: Now, id: &TaskId, reason: String, out: &mut Out) {
        self.tally.blockers += 1;
        self.tally.failures += 1;
        out.push(Effect::Say(format!("{id} blocked: {reason}")));
        self.record(now, out, Some(id), None, FactBody::TaskBlocked { reason });
    }

    fn check_guards(&mut self, now: Now, out: &mut Out) {
        let limit = self.config.guards.consecutive_blockers;
        if self.ending.is_none() && limit > 0 && self.tally.blockers >= limit {
            let detail = format!("{} blockers since the last completion", self.tally.blockers);
            self.record(now, out, None, None, FactBody::GuardTripped {
                guard: "consecutive_blockers".to_owned(),
                detail: detail.clone(),
            });
            out.push(Effect::Say(format!("guard: {detail}; nothing more is claimed")));
            self.ending = Some(Finish { decision: Decision::Blocked, exit_code: 1, reason: detail });
        }
    }

    pub(super) fn on_loop_wall_clock(&mut self, now: Now, out: &mut Out) {
        if self.halted {
            return;
        }
        let limit = crate::types::format_duration(self.config.guards.wall_clock);
        let reason = format!("the loop's wall clock of {limit} is over");
        self.record(now, out, None, None, FactBody::GuardTripped {
            guard: "wall_clock".to_owned(),
            detail: reason.clone(),
        });
        out.push(Effect::Say(reason.clone()));
        self.ending = Some(Finish { decision: Decision::LimitReached, exit_code: 3, reason });
        self.halted = true;
        self.stop_children(None, StopReason::Held, false, out);
    }

    fn check_finish(&mut self, now: Now, out: &mut Out) {
        if let Some(finish) = self.finish() {
            self.finished = true;
            self.record(now, out, None, None, FactBody::LoopStopped {
                decision: finish.decision,
                exit_code: finish.exit_code,
                reason: finish.reason.clone(),
            });
            out.push(Effect::Finish(finish));
        }
    }

    /// The last word, once nothing is left to wait for.
    fn finish(&self) -> Option<Finish> {
        let busy = self.claiming.is_some()
            || self.flights.values().any(|f| f.has_child() || f.edge_busy());
        if self.stop.is_some() || self.halted {
            return (!busy).then(|| self.stopped());
        }
        if busy || !self.flights.is_empty() {
            return None;
        }
        if let Some(ending) = &self.ending {
            return Some(ending.clone());
        }
        let limit = self.limit_reached();
        if !self.idle && limit.is_none() {
            return None;
        }
        self.drained(limit)
    }

    fn stopped(&self) -> Finish {
        let left = self.flights.len();
        let tail = if left == 0 {
            String::new()
        } else {
            format!("; {left} tasks in flight go on at the next start")
        };
        match (&self.ending, self.stop) {
            (Some(ending), None) => Finish { reason: format!("{}{tail}", ending.reason), ..ending.clone() },
            (_, stop) => {
                let (level, source) = stop.unwrap_or((StopLevel::Drain, StopSource::Command));
                let how = if level == StopLevel::Drain { "drained" } else { "stopped" };
                let exit_code = if source == StopSource::Signal { 130 } else { 0 };
                Finish { decision: Decision::Stopped, exit_code, reason: format!("{how} on request{tail}") }
            }
        }
    }

    /// Nothing is in flight and nothing can be claimed: is there something left that could change by itself?
    fn drained(&self, limit: Option<String>) -> Option<Finish> {
        let mut open = 0_usize;
        let mut waiting_for_people = 0_usize;
        let mut can_change = false;
        for spec in self.queue.values().filter(|s| s.state == TaskState::Ready) {
            match self.obstacle(spec) {
                Some(Obstacle::Completed | Obstacle::Cancelled | Obstacle::Hold) => {}
                Some(Obstacle::NeedsSelection) => waiting_for_people += 1,
                Some(Obstacle::Blocked(_) | Obstacle::Deferred(_) | Obstacle::After(_)) => open += 1,
                Some(Obstacle::InFlightClaim(..) | Obstacle::ForeignClaim(..)) | None => {
                    open += 1;
                    can_change = true;
                }
            }
        }
        let done = self.tally.completed;
        if open + waiting_for_people == 0 {
            let reason = if done == 0 { "nothing to do".to_owned() } else { format!("{done} tasks completed, nothing is left") };
            return Some(Finish { decision: Decision::Completed, exit_code: 0, reason });
        }
        if let Some(reason) = limit {
            return Some(Finish { decision: Decision::LimitReached, exit_code: 3, reason });
        }
        if can_change {
            return None;
        }
        let reason = format!("{done} tasks completed, {open} did not, {waiting_for_people} wait for a choice");
        let (decision, exit_code) = match (open, done + self.tally.selections) {
            (0, _) => (Decision::Partial, 0),
            (_, 0) => (Decision::Blocked, 1),
            _ => (Decision::Partial, 1),
        };
        Some(Finish { decision, exit_code, reason })
    }
}
