//! How a worker's work and a task end: kept, completed, deferred, blocked, waiting for a choice.

use super::core::{Core, Out};
use super::event::{EdgeError, Effect, WorkKept};
use super::flight::{Abort, Flight, Phase, WorkerResult};
use crate::ledger::FactBody;
use crate::types::{Now, TaskId};
use std::cmp::Reverse;

impl Core {
    pub(super) fn on_captured(
        &mut self,
        now: Now,
        id: &TaskId,
        no: u32,
        result: Result<WorkKept, EdgeError>,
        out: &mut Out,
    ) {
        let Some(worker) = self.flights.get_mut(id).and_then(|f| f.worker_mut(no)) else {
            return;
        };
        if worker.phase != Phase::Capturing {
            return;
        }
        match result {
            Ok(kept) => {
                worker.phase = Phase::Done;
                worker.changed_files.clone_from(&kept.changed_files);
                let passed = worker.result == WorkerResult::Passed;
                let branch = worker
                    .worktree
                    .as_ref()
                    .map(|w| w.branch.clone())
                    .unwrap_or_default();
                for text in kept.notes {
                    self.record(
                        now,
                        out,
                        Some(id),
                        None,
                        FactBody::Warning {
                            text: format!("{id}: {text}"),
                        },
                    );
                }
                if !kept.outside_claim.is_empty() {
                    let paths = kept.outside_claim;
                    self.record(
                        now,
                        out,
                        Some(id),
                        None,
                        FactBody::ClaimViolated { worker: no, paths },
                    );
                }
                self.record(
                    now,
                    out,
                    Some(id),
                    None,
                    FactBody::WorkerCaptured {
                        worker: no,
                        passed,
                        branch,
                        commit: kept.commit,
                        patch: kept.patch,
                        changed_files: kept.changed_files,
                    },
                );
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
                worker.work_lost = true;
                worker.result = WorkerResult::Failed {
                    reason: format!("its work could not be kept: {}", error.detail),
                    blocked: true,
                };
            }
        }
    }

    pub(super) fn end_flight(&mut self, now: Now, id: &TaskId, out: &mut Out) {
        let Some(flight) = self.flights.remove(id) else {
            return;
        };
        self.idle = false;
        if let Some((lease_id, epoch)) = flight.lease.clone() {
            out.push(Effect::Release { lease_id, epoch });
        }
        match flight.abort.clone() {
            Some(Abort::Cancelled(reason)) => {
                out.push(Effect::Say(format!("{id} cancelled")));
                self.record(now, out, Some(id), None, FactBody::TaskCancelled { reason });
            }
            Some(Abort::WallClock(reason)) => self.settle_failure(now, id, reason, true, out),
            None => self.end_by_results(now, id, &flight, out),
        }
    }

    fn end_by_results(&mut self, now: Now, id: &TaskId, flight: &Flight, out: &mut Out) {
        let passed: Vec<_> = flight
            .workers
            .iter()
            .filter(|w| w.result == WorkerResult::Passed)
            .collect();
        let failures = failures_of(flight);
        let lost_work = flight.workers.iter().any(|w| w.work_lost);
        if passed.is_empty() || lost_work {
            let blocked = failures.iter().any(|(_, blocked)| *blocked);
            let reason = failures
                .into_iter()
                .map(|(r, _)| r)
                .collect::<Vec<_>>()
                .join("; ");
            if blocked {
                self.block(now, id, reason, out);
            } else {
                self.settle_failure(now, id, reason, true, out);
            }
            return;
        }
        let branches: Vec<String> = passed
            .iter()
            .filter_map(|w| w.worktree.as_ref().map(|t| t.branch.clone()))
            .collect();
        let names = branches.join(", ");
        if flight.workers.len() > 1 {
            self.tally.selections += 1;
            out.push(Effect::Say(format!("{id} needs human selection: {names}")));
            let body = FactBody::TaskNeedsSelection { branches };
            return self.record(now, out, Some(id), None, body);
        }
        self.tally.completed += 1;
        self.order
            .remove(&(Reverse(flight.spec.priority), id.clone()));
        if let Some(spec) = self.queue.get(id) {
            self.order.remove(&(Reverse(spec.priority), id.clone()));
        }
        self.tally.blockers = 0;
        out.push(Effect::Say(format!("{id} completed on {names}")));
        self.done.push((id.clone(), branches.clone()));
        let body = FactBody::TaskCompleted {
            branches,
            changed_files: passed
                .iter()
                .flat_map(|w| w.changed_files.clone())
                .collect(),
        };
        self.record(now, out, Some(id), None, body);
    }

    /// A task did not pass. So many times: it is parked for a person.
    pub(super) fn settle_failure(
        &mut self,
        now: Now,
        id: &TaskId,
        reason: String,
        blocker: bool,
        out: &mut Out,
    ) {
        let failures = self.book.blockers_of(id) + u32::from(blocker);
        if blocker && failures >= self.config.guards.task_blockers {
            let reason = format!("failed {failures} times, last: {reason}");
            return self.block(now, id, reason, out);
        }
        self.tally.blockers += u32::from(blocker);
        self.tally.failures += 1;
        out.push(Effect::Say(format!("{id} deferred: {reason}")));
        self.record(
            now,
            out,
            Some(id),
            None,
            FactBody::TaskDeferred { reason, blocker },
        );
    }

    fn block(&mut self, now: Now, id: &TaskId, reason: String, out: &mut Out) {
        self.tally.blockers += 1;
        self.tally.failures += 1;
        out.push(Effect::Say(format!("{id} blocked: {reason}")));
        self.record(now, out, Some(id), None, FactBody::TaskBlocked { reason });
    }
}

/// Why workers did not pass, and whether a role asked for a person.
fn failures_of(flight: &Flight) -> Vec<(String, bool)> {
    flight
        .workers
        .iter()
        .filter_map(|w| match &w.result {
            WorkerResult::Failed { reason, blocked } if flight.workers.len() > 1 => {
                Some((format!("worker {}: {reason}", w.no), *blocked))
            }
            WorkerResult::Failed { reason, blocked } => Some((reason.clone(), *blocked)),
            _ => None,
        })
        .collect()
}
