//! The core: its state, the entry point, and what every event leads to.

use super::claiming::Tally;
use super::event::{Conflict, Effect, Event, Finish, Markers, StopLevel, StopSource, TimerKey};
use super::flight::{Abort, CallState, Flight, StopReason};
use crate::config::{Config, TaskSpec};
use crate::gate::BatchGate;
use crate::ledger::{Fact, FactBody, LedgerState, NewFact};
use crate::types::{Now, RunId, TaskId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where ids and chance come from, so that the core stays deterministic.
pub trait IdSource: Send {
    /// A fresh run id.
    fn run_id(&mut self) -> RunId;
    /// A fresh secret for `FLOCKD_TOKEN`.
    fn token(&mut self) -> String;
    /// Uniform in 0.0..1.0.
    fn jitter(&mut self) -> f64;
}

/// What an event leads to: facts first, then effects that wait for them.
#[derive(Debug, Default)]
#[must_use]
pub struct Out {
    facts: Vec<NewFact>,
    effects: Vec<Effect>,
}

impl Out {
    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(super) fn into_effects(self) -> Vec<Effect> {
        let mut all = Vec::with_capacity(self.effects.len() + 1);
        if !self.facts.is_empty() {
            all.push(Effect::Record(self.facts));
        }
        all.extend(self.effects);
        all
    }
}

/// Where a run belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallRef {
    pub(super) task: TaskId,
    pub(super) worker: u32,
    pub(super) call: usize,
}

/// The loop's state. One owner, no locks.
pub struct Core {
    pub(super) config: Config,
    pub(super) gate: BatchGate,
    pub(super) ids: Box<dyn IdSource>,
    /// The ledger's state, with every fact asked for already applied.
    pub(super) book: LedgerState,
    pub(super) queue: BTreeMap<TaskId, Arc<TaskSpec>>,
    /// The tasks that are not completed, best first: looking for the next one costs nothing for
    /// finished ones (P10).
    pub(super) order: BTreeSet<(Reverse<i64>, TaskId)>,
    pub(super) flights: BTreeMap<TaskId, Flight>,
    pub(super) runs: BTreeMap<RunId, CallRef>,
    pub(super) claiming: Option<TaskId>,
    pub(super) conflicts: BTreeMap<TaskId, Conflict>,
    /// Claims of this loop, by task.
    pub(super) attempted: BTreeMap<TaskId, u32>,
    pub(super) came_deferred: BTreeSet<TaskId>,
    pub(super) tally: Tally,
    /// What this loop completed, and on which branches.
    pub(super) done: Vec<(TaskId, Vec<String>)>,
    pub(super) markers: Markers,
    pub(super) stop: Option<(StopLevel, StopSource)>,
    /// A guard, a limit or a fault: nothing more is claimed, what is in flight goes on.
    pub(super) ending: Option<Finish>,
    /// With `ending`: nothing more is started either; tasks in flight are left for the next loop.
    pub(super) halted: bool,
    /// Nothing was claimable at the last look and nothing has changed since.
    pub(super) idle: bool,
    pub(super) finished: bool,
    /// The tasks that an earlier loop left in flight are taken up.
    pub(super) taken_up: bool,
}

impl Core {
    /// The current time labels and timers of one call.
    pub(super) fn record(
        &mut self,
        now: Now,
        out: &mut Out,
        task: Option<&TaskId>,
        run: Option<&RunId>,
        body: FactBody,
    ) {
        let fact = NewFact {
            at: now.wall,
            task: task.cloned(),
            run: run.cloned(),
            body,
        };
        self.book.apply(&Fact {
            seq: self.book.last_seq() + 1,
            at: fact.at,
            task: fact.task.clone(),
            run: fact.run.clone(),
            body: fact.body.clone(),
        });
        out.facts.push(fact);
    }

    /// Handles one event. Total: an event that no longer fits the state changes nothing.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Effect> {
        let mut out = Out::default();
        if !self.finished {
            self.react(now, event, &mut out);
            self.advance(now, &mut out);
        }
        out.into_effects()
    }

    fn react(&mut self, now: Now, event: Event, out: &mut Out) {
        match event {
            Event::TasksChanged { upserts, removed } => {
                self.on_tasks_changed(upserts, removed);
                if !std::mem::replace(&mut self.taken_up, true) {
                    self.take_up(now, out);
                }
            }
            Event::ClaimDecided { task, result } => self.on_claim_decided(now, &task, result, out),
            Event::LeasesChanged => {
                self.conflicts.clear();
                self.idle = false;
            }
            Event::WorktreeDone {
                task,
                worker,
                result,
            } => self.on_worktree(now, &task, worker, result, out),
            Event::SlotGranted { run } => self.on_slot_granted(now, &run, out),
            Event::SlotFileBusy { run } => self.on_slot_busy(&run),
            Event::RunStarted {
                run,
                pid,
                start_ticks,
                slots,
            } => {
                self.on_run_started(now, &run, pid, start_ticks, slots, out);
            }
            Event::RunExited { run, end } => self.on_run_exited(now, &run, &end, out),
            Event::CaptureDone {
                task,
                worker,
                result,
            } => self.on_captured(now, &task, worker, result, out),
            Event::Timer(key) => self.on_timer(now, key, out),
            Event::Stop(level, source) => self.on_stop(level, source, out),
            Event::Markers(markers) => self.on_markers(now, markers, out),
            Event::Cancel(task) => self.on_cancel(now, &task, out),
            Event::Retry(task) => self.on_retry(now, &task, out),
            Event::Systemic(detail) => self.end_by_fault(now, detail, out),
        }
    }

    fn on_tasks_changed(&mut self, upserts: Vec<TaskSpec>, removed: Vec<TaskId>) {
        self.idle = false;
        for id in removed {
            if let Some(old) = self.queue.remove(&id) {
                self.order.remove(&(Reverse(old.priority), id));
            }
        }
        for spec in upserts {
            if let Some(old) = self.queue.get(&spec.id) {
                self.order.remove(&(Reverse(old.priority), old.id.clone()));
            }
            self.conflicts.remove(&spec.id);
            if !self.book.is_completed(&spec.id) {
                self.order.insert((Reverse(spec.priority), spec.id.clone()));
            }
            self.queue.insert(spec.id.clone(), Arc::new(spec));
        }
    }

    fn on_timer(&mut self, now: Now, key: TimerKey, out: &mut Out) {
        match key {
            TimerKey::LoopWallClock => self.on_loop_wall_clock(now, out),
            TimerKey::TaskWallClock(task, iteration) => {
                let Some(flight) = self.flights.get_mut(&task) else {
                    return;
                };
                if flight.iteration != iteration || flight.abort.is_some() {
                    return;
                }
                let limit = crate::types::format_duration(self.config.guards.task_wall_clock);
                let detail = format!("its wall clock of {limit} is over");
                flight.abort = Some(Abort::WallClock(detail.clone()));
                self.stop_children(Some(&task), StopReason::TaskWallClock, false, out);
                self.record(
                    now,
                    out,
                    Some(&task),
                    None,
                    FactBody::GuardTripped {
                        guard: "task_wall_clock".to_owned(),
                        detail,
                    },
                );
            }
            TimerKey::Backoff(task, worker, call) => {
                let call = self
                    .flights
                    .get_mut(&task)
                    .and_then(|f| f.worker_mut(worker))
                    .and_then(|w| w.calls.get_mut(call));
                if let Some(call) = call
                    && matches!(call.state, CallState::Backoff { until } if until <= now.mono)
                {
                    call.state = CallState::Pending;
                }
            }
        }
    }

    fn on_stop(&mut self, level: StopLevel, source: StopSource, out: &mut Out) {
        match self.stop {
            Some((now, _)) if now >= level => return,
            Some((_, first)) => self.stop = Some((level, first)),
            None => self.stop = Some((level, source)),
        }
        self.unqueue(out);
        let again = match source {
            StopSource::Signal => "; once more stops it",
            StopSource::Command => "; `flockd stop --now` stops it",
        };
        match level {
            StopLevel::Drain if self.flights.is_empty() => {}
            StopLevel::Drain => out.push(Effect::Say(format!(
                "stopping: running work ends first, nothing new starts{again}"
            ))),
            StopLevel::Now | StopLevel::Kill => {
                out.push(Effect::Say("stopping: children are stopped".to_owned()));
            }
        }
        if level >= StopLevel::Now {
            self.stop_children(None, StopReason::Held, level == StopLevel::Kill, out);
        }
    }

    fn on_markers(&mut self, now: Now, markers: Markers, out: &mut Out) {
        let before = std::mem::replace(&mut self.markers, markers);
        self.idle = false;
        if markers.estop && !before.estop {
            self.unqueue(out);
            self.stop_children(None, StopReason::Held, true, out);
            self.record(now, out, None, None, FactBody::Warning {
                text: "emergency stop: children are killed, nothing is started until `flockd thaw`".to_owned(),
            });
            out.push(Effect::Say(
                "emergency stop; `flockd thaw` goes on".to_owned(),
            ));
        } else if markers.paused && !before.paused {
            self.unqueue(out);
            out.push(Effect::Say("paused; `flockd resume` goes on".to_owned()));
        } else if (before.estop || before.paused) && !markers.estop && !markers.paused {
            out.push(Effect::Say("going on".to_owned()));
        }
    }

    fn on_cancel(&mut self, now: Now, task: &TaskId, out: &mut Out) {
        let reason = "cancelled by command".to_owned();
        if let Some(flight) = self.flights.get_mut(task) {
            if flight.abort.is_none() {
                flight.abort = Some(Abort::Cancelled(reason));
                self.stop_children(Some(task), StopReason::TaskCancelled, false, out);
            }
        } else if !self.book.is_completed(task) && !self.book.is_cancelled(task) {
            self.record(
                now,
                out,
                Some(task),
                None,
                FactBody::TaskCancelled { reason },
            );
        }
    }

    fn on_retry(&mut self, now: Now, task: &TaskId, out: &mut Out) {
        if self.flights.contains_key(task) {
            return;
        }
        self.attempted.remove(task);
        self.came_deferred.remove(task);
        self.conflicts.remove(task);
        if let Some(spec) = self.queue.get(task) {
            self.order.insert((Reverse(spec.priority), task.clone()));
        }
        self.idle = false;
        self.record(now, out, Some(task), None, FactBody::TaskRetried {});
    }

    /// Whether children may be started now.
    pub(super) fn may_start(&self) -> bool {
        self.stop.is_none() && !self.halted && !self.markers.estop && !self.markers.paused
    }

    /// Calls that only wait for a permit leave the queue and start over later.
    fn unqueue(&mut self, out: &mut Out) {
        for flight in self.flights.values_mut() {
            for worker in &mut flight.workers {
                for call in &mut worker.calls {
                    if let CallState::AwaitingSlot { run } = &call.state {
                        out.push(Effect::ForgetSlot { run: run.clone() });
                        self.runs.remove(run);
                        call.state = CallState::Pending;
                    }
                }
            }
        }
    }

    /// Asks children to stop: all, or those of one task. A stronger reason replaces a weaker one.
    pub(super) fn stop_children(
        &mut self,
        task: Option<&TaskId>,
        reason: StopReason,
        kill: bool,
        out: &mut Out,
    ) {
        for flight in self.flights.values_mut() {
            if task.is_some_and(|t| t != flight.id()) {
                continue;
            }
            for call in flight.workers.iter_mut().flat_map(|w| &mut w.calls) {
                let asked = call.stop.is_some();
                if let Some(run) = call.child().cloned() {
                    call.stop = call.stop.max(Some(reason));
                    if !asked || kill {
                        out.push(Effect::StopRun { run, kill });
                    }
                } else if let CallState::AwaitingSlot { run } = &call.state
                    && task.is_some()
                {
                    out.push(Effect::ForgetSlot { run: run.clone() });
                    self.runs.remove(run);
                    call.state = CallState::Pending;
                }
            }
        }
    }
}
