//! What follows from the state: which calls start, when a stage, a worker, a task and the loop are over.

use super::core::{Core, Out};
use super::event::Effect;
use super::flight::{CallState, Phase, StageVerdict, StopReason, WorkerResult, judge};
use crate::gate::{CallPhase, Reason};
use crate::ledger::FactBody;
use crate::types::{Now, TaskId};
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
        let Some(flight) = self.flights.get(id) else {
            return;
        };
        if flight.lease.is_none() {
            return;
        }
        let workers: Vec<u32> = flight.workers.iter().map(|w| w.no).collect();
        for worker in workers {
            while self.advance_worker(now, id, worker, out) {}
        }
        let over = self.flights.get(id).is_some_and(|f| {
            f.workers
                .iter()
                .all(|w| w.phase == Phase::Done && !w.has_child())
        });
        if over {
            self.end_flight(now, id, out);
        }
    }

    /// One step of a worker; true when another may follow at once.
    fn advance_worker(&mut self, now: Now, id: &TaskId, no: u32, out: &mut Out) -> bool {
        let Some(flight) = self.flights.get_mut(id) else {
            return false;
        };
        let aborted = flight.abort.is_some();
        let stages = flight.stages.len();
        let Some(ix) = flight.workers.iter().position(|w| w.no == no) else {
            return false;
        };
        let Some(worker) = flight.workers.get_mut(ix) else {
            return false;
        };
        if worker.phase != Phase::Staging {
            return false;
        }
        if aborted || worker.result != WorkerResult::Open || worker.stage_ix >= stages {
            return self.leave_stages(now, id, no, out);
        }
        let Some(stage) = flight.stages.get(worker.stage_ix) else {
            return false;
        };
        if worker.calls.is_empty() {
            worker.calls = stage
                .calls
                .iter()
                .map(super::flight::CallTemplate::call)
                .collect();
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
        let Some(worker) = self.flights.get_mut(id).and_then(|f| f.worker_mut(no)) else {
            return;
        };
        let phases: Vec<_> = worker.calls.iter().map(|c| (c.decl, c.phase())).collect();
        let admitted: Vec<usize> = self
            .gate
            .decide(&phases)
            .iter()
            .zip(&phases)
            .enumerate()
            .filter(|(_, (reason, (_, phase)))| {
                **reason == Reason::Admitted && *phase == CallPhase::Pending
            })
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
        let Some(worker) = self.flights.get_mut(id).and_then(|f| f.worker_mut(no)) else {
            return false;
        };
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
                        out.push(Effect::StopRun {
                            run: run.clone(),
                            kill: false,
                        });
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
                worker.result = WorkerResult::Failed {
                    reason: format!("{stage}: {reason}"),
                    blocked,
                };
                FactBody::StageFailed {
                    worker: no,
                    stage,
                    reason,
                    blocked,
                }
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
        let Some(flight) = self.flights.get_mut(id) else {
            return false;
        };
        let (spec, base, aborted) = (
            Arc::clone(&flight.spec),
            flight.base.clone(),
            flight.abort.is_some(),
        );
        let stages = flight.stages.len();
        let Some(worker) = flight.worker_mut(no) else {
            return false;
        };
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
            worker.result = WorkerResult::Failed {
                reason: "aborted".to_owned(),
                blocked: false,
            };
        }
        let passed = worker.result == WorkerResult::Passed;
        match worker.worktree.clone() {
            Some(worktree) => {
                worker.phase = Phase::Capturing;
                let run = worker.last_run.clone();
                out.push(Effect::Capture {
                    task: spec,
                    worker: no,
                    base,
                    worktree,
                    run,
                    passed,
                });
            }
            None => worker.phase = Phase::Done,
        }
        let _ = now;
        false
    }
}
