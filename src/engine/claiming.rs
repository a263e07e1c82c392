//! From the queue into flight: claims, their answers, worktrees, and the bounds on both.

use super::core::{Core, Out};
use super::event::{ClaimRefusal, EdgeError, Effect, Finish, Granted, TimerKey, WorktreeReady};
use super::flight::{CallTemplate, Flight, Phase, Stage, Worker, WorkerResult};
use crate::config::{Require, RoleConcurrency, StageConfig, TaskSpec};
use crate::ledger::FactBody;
use crate::types::{Decision, Now, TaskId};
use std::sync::Arc;

/// Counts of this loop, not of history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) claims: u32,
    pub(super) completed: u32,
    pub(super) selections: u32,
    pub(super) failures: u32,
    /// Blockers since the last completion.
    pub(super) blockers: u32,
}

impl Core {
    /// X as it is now: the kill switch makes it 1, live (W23).
    pub(super) fn tasks_max(&self) -> usize {
        if self.parallelism_killed() {
            1
        } else {
            self.config.loop_.tasks as usize
        }
    }

    pub(super) fn parallelism_killed(&self) -> bool {
        self.markers.parallelism_kill || self.config.parallelism_kill
    }

    fn target_reached(&self, counting: usize) -> bool {
        !self.config.loop_.infinite
            && self.tally.completed as usize + counting >= self.config.loop_.max_completed as usize
    }

    pub(super) fn limit_reached(&self) -> Option<String> {
        if self.config.loop_.infinite {
            return None;
        }
        if self.target_reached(0) {
            return Some(format!(
                "{} tasks completed, the target of this run",
                self.tally.completed
            ));
        }
        (self.tally.claims >= self.config.loop_.max_attempts)
            .then(|| format!("{} claims, the bound of this run", self.tally.claims))
    }

    /// Claims the next task if the bounds allow one more. Claims are decided one at a time.
    pub(super) fn claim_next(&mut self, out: &mut Out) {
        let open = self.taken_up
            && self.claiming.is_none()
            && self.ending.is_none()
            && self.may_start()
            && !self.idle
            && self.flights.len() < self.tasks_max()
            && !self.target_reached(self.flights.len())
            && self.limit_reached().is_none();
        if !open {
            return;
        }
        match self.next_task() {
            Some((task, _)) => {
                self.claiming = Some(task.id.clone());
                out.push(Effect::Claim {
                    task,
                    previous: None,
                    base: None,
                });
            }
            None => self.idle = true,
        }
    }

    pub(super) fn on_claim_decided(
        &mut self,
        now: Now,
        task: &TaskId,
        result: Result<Granted, ClaimRefusal>,
        out: &mut Out,
    ) {
        if self.claiming.as_ref() == Some(task) {
            self.claiming = None;
        }
        self.idle = false;
        match result {
            Ok(granted) => self.on_granted(now, task, granted, out),
            Err(ClaimRefusal::Conflict(conflict)) if self.flights.contains_key(task) => {
                let reason = format!(
                    "its paths were taken by {} while no flockd was running ({})",
                    conflict.task, conflict.path
                );
                self.drop_flight(now, task, reason, false, out);
            }
            Err(ClaimRefusal::Conflict(conflict)) => {
                self.conflicts.insert(task.clone(), conflict);
            }
            Err(ClaimRefusal::Failed(error)) if error.systemic => {
                self.end_by_fault(now, error.detail, out);
            }
            Err(ClaimRefusal::Failed(error)) => {
                *self.attempted.entry(task.clone()).or_default() += 1;
                self.drop_flight(now, task, error.detail, true, out);
            }
        }
    }

    fn on_granted(&mut self, now: Now, task: &TaskId, granted: Granted, out: &mut Out) {
        for (lease_id, epoch, _) in granted.reclaimed {
            self.record(
                now,
                out,
                None,
                None,
                FactBody::LeaseReclaimed { lease_id, epoch },
            );
        }
        if self.flights.contains_key(task) {
            return self.on_regranted(now, task, granted.lease_id, granted.epoch, out);
        }
        let Some(spec) = self.queue.get(task).cloned() else {
            out.push(Effect::Release {
                lease_id: granted.lease_id,
                epoch: granted.epoch,
            });
            return;
        };
        let retry = self.is_retry(task);
        if self.book.is_deferred(task) && !self.attempted.contains_key(task) {
            self.came_deferred.insert(task.clone());
        }
        *self.attempted.entry(task.clone()).or_default() += 1;
        self.tally.claims += 1;
        let workers = if self.parallelism_killed() {
            1
        } else {
            self.config.loop_.workers
        };
        let flight = Flight {
            stages: self.stages_of(&spec),
            workers: (1..=workers).map(Worker::new).collect(),
            lease: Some((granted.lease_id, granted.epoch)),
            base: granted.base,
            iteration: self.tally.claims,
            spec,
            abort: None,
            since: now.mono,
        };
        self.record_claim(now, &flight, retry, out);
        for worker in &flight.workers {
            out.push(Effect::PrepareWorktree {
                task: task.clone(),
                worker: worker.no,
                base: flight.base.clone(),
                reuse: false,
            });
        }
        self.arm_task_clock(now, task, flight.iteration, out);
        out.push(Effect::Say(format!(
            "{task} claimed: {}",
            flight.spec.title
        )));
        self.flights.insert(task.clone(), flight);
    }

    fn record_claim(&mut self, now: Now, flight: &Flight, retry: bool, out: &mut Out) {
        let Some((lease_id, epoch)) = flight.lease.clone() else {
            return;
        };
        let body = FactBody::TaskClaimed {
            title: flight.spec.title.clone(),
            iteration: flight.iteration,
            base: flight.base.clone(),
            claims: flight.spec.claims.to_strings(),
            workers: u32::try_from(flight.workers.len()).unwrap_or(u32::MAX),
            stages: flight.stages.iter().map(|s| s.name.clone()).collect(),
            lease_id,
            epoch,
            retry,
        };
        self.record(now, out, Some(flight.id()), None, body);
    }

    pub(super) fn arm_task_clock(&self, now: Now, task: &TaskId, iteration: u32, out: &mut Out) {
        let limit = self.config.guards.task_wall_clock;
        if !limit.is_zero() {
            out.push(Effect::SetTimer {
                at: now.mono + limit,
                key: TimerKey::TaskWallClock(task.clone(), iteration),
            });
        }
    }

    /// The configured stages that the task goes through, in the configured order.
    pub(super) fn stages_of(&self, spec: &TaskSpec) -> Vec<Stage> {
        self.config
            .stages
            .iter()
            .filter(|s| {
                spec.stages
                    .as_ref()
                    .is_none_or(|names| names.contains(&s.name))
            })
            .map(|s| self.stage(s))
            .collect()
    }

    fn stage(&self, stage: &StageConfig) -> Stage {
        let roles = stage.roles.iter().filter_map(|name| {
            self.config.roles.get(name).map(|role| CallTemplate {
                role: name.clone(),
                command: None,
                concurrency: role.concurrency,
                slots: role.slots,
                limits: role.limits.clone(),
            })
        });
        let commands = stage
            .run
            .iter()
            .enumerate()
            .map(|(i, command)| CallTemplate {
                role: format!("run-{}", i + 1),
                command: Some(command.clone()),
                concurrency: RoleConcurrency::Sequential,
                slots: 1,
                limits: self.config.limits.clone(),
            });
        Stage {
            name: stage.name.clone(),
            require: if stage.run.is_empty() {
                stage.require
            } else {
                Require::All
            },
            calls: roles.chain(commands).collect(),
        }
    }

    pub(super) fn on_worktree(
        &mut self,
        now: Now,
        task: &TaskId,
        worker: u32,
        result: Result<WorktreeReady, EdgeError>,
        out: &mut Out,
    ) {
        let Some(flight) = self.flights.get_mut(task) else {
            return;
        };
        match result {
            Ok(ready) => {
                let notes = ready.moved_aside.clone();
                if let Some(worker) = flight.worker_mut(worker)
                    && worker.phase == Phase::Preparing
                {
                    worker.worktree = Some(ready);
                    worker.phase = Phase::Staging;
                }
                for text in notes {
                    let text = format!("{task}: {text}");
                    self.record(now, out, Some(task), None, FactBody::Warning { text });
                }
            }
            Err(error) => {
                if let Some(worker) = flight.worker_mut(worker) {
                    worker.phase = Phase::Done;
                    worker.result = WorkerResult::Failed {
                        reason: error.detail.clone(),
                        blocked: false,
                    };
                }
                if error.systemic {
                    self.end_by_fault(now, error.detail, out);
                }
            }
        }
    }

    /// Ends a flight without a word about its work: a conflict, a failed claim, a stage that is no more.
    pub(super) fn drop_flight(
        &mut self,
        now: Now,
        task: &TaskId,
        reason: String,
        blocker: bool,
        out: &mut Out,
    ) {
        self.stop_children(
            Some(task),
            super::flight::StopReason::TaskCancelled,
            false,
            out,
        );
        if let Some(flight) = self.flights.remove(task)
            && let Some((lease_id, epoch)) = flight.lease
        {
            out.push(Effect::Release { lease_id, epoch });
        }
        self.settle_failure(now, task, reason, blocker, out);
    }

    /// The machine is at fault: nothing more is claimed or started, children that run may end.
    pub(super) fn end_by_fault(&mut self, now: Now, detail: String, out: &mut Out) {
        if self
            .ending
            .as_ref()
            .is_some_and(|e| e.decision == Decision::Blocked)
        {
            return;
        }
        self.record(
            now,
            out,
            None,
            None,
            FactBody::GuardTripped {
                guard: "systemic".to_owned(),
                detail: detail.clone(),
            },
        );
        out.push(Effect::Say(format!("stopping: {detail}")));
        self.ending = Some(Finish {
            decision: Decision::Blocked,
            exit_code: 1,
            reason: detail,
        });
        self.halted = true;
    }

    pub(super) fn spec_of(&self, task: &TaskId) -> Option<Arc<TaskSpec>> {
        self.queue.get(task).cloned()
    }
}
