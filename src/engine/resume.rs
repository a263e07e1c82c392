//! From the ledger's state to a core that goes on where the last one was (P4).
//!
//! A task in flight comes back with its workers at the stage that their facts say. Its lease is taken
//! over first; until then nothing is started for it, but ends of its children are heard.

use super::claiming::Tally;
use super::core::{CallRef, Core, IdSource, Out};
use super::event::{Effect, Markers, TimerKey};
use super::flight::{Call, CallState, Flight, Phase, Stage, Worker, WorkerResult};
use crate::config::Config;
use crate::gate::BatchGate;
use crate::ledger::{
    FactBody, InFlight, LedgerState, LoopSettings, RunProgress, StageFailure, WorkerProgress,
};
use crate::types::{LeaseId, Now, Outcome, RunId, TaskId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Core {
    /// A core over what the ledger says. Nothing happens before [`Core::begin`].
    #[must_use]
    pub fn new(config: Config, ids: Box<dyn IdSource>, book: LedgerState) -> Self {
        Self {
            gate: BatchGate::new(&config.gate, config.loop_.roles),
            config,
            ids,
            book,
            queue: BTreeMap::new(),
            order: BTreeSet::new(),
            flights: BTreeMap::new(),
            runs: BTreeMap::new(),
            claiming: None,
            conflicts: BTreeMap::new(),
            attempted: BTreeMap::new(),
            came_deferred: BTreeSet::new(),
            tally: Tally::default(),
            done: Vec::new(),
            markers: Markers::default(),
            stop: None,
            ending: None,
            halted: false,
            idle: true,
            finished: false,
            taken_up: false,
        }
    }

    /// The first effects: the loop's start, the tasks that an earlier loop left in flight, its clock.
    /// The first [`super::Event::TasksChanged`] must hold all task files: with it the tasks in flight
    /// are taken up, and one whose file is gone is cancelled.
    pub fn begin(&mut self, now: Now) -> Vec<Effect> {
        let mut out = Out::default();
        let l = &self.config.loop_;
        let settings = LoopSettings {
            global_concurrency: l.global_concurrency,
            tasks: l.tasks,
            workers: l.workers,
            roles: l.roles,
            infinite: l.infinite,
            max_completed: l.max_completed,
            max_attempts: l.max_attempts,
        };
        self.record(
            now,
            &mut out,
            None,
            None,
            FactBody::LoopStarted {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                settings,
            },
        );
        if !self.config.guards.wall_clock.is_zero() {
            out.push(Effect::SetTimer {
                at: now.mono + self.config.guards.wall_clock,
                key: TimerKey::LoopWallClock,
            });
        }
        out.into_effects()
    }

    /// Takes up the tasks in flight, once the task files are known.
    pub(super) fn take_up(&mut self, now: Now, out: &mut Out) {
        let left: Vec<(TaskId, InFlight)> = self
            .book
            .in_flight()
            .filter(|(id, _)| !self.flights.contains_key(*id))
            .map(|(id, f)| (id.clone(), f.clone()))
            .collect();
        for (id, progress) in left {
            let Some(spec) = self.spec_of(&id) else {
                self.record(
                    now,
                    out,
                    Some(&id),
                    None,
                    FactBody::TaskCancelled {
                        reason: "its file was gone when the loop started again".to_owned(),
                    },
                );
                continue;
            };
            let stages: Vec<Stage> = self.stages_of(&spec);
            let names: Vec<&str> = stages.iter().map(|s| s.name.as_str()).collect();
            let same = progress
                .stages
                .iter()
                .map(String::as_str)
                .eq(names.iter().copied());
            let mut workers = Vec::new();
            let untouched = WorkerProgress::default();
            for no in 1..=progress.worker_count {
                let worker = progress.workers.get(&no).unwrap_or(&untouched);
                let runs = progress.runs.iter().filter(|(_, r)| r.worker == no);
                workers.push(restore_worker(no, worker, &stages, same, runs));
            }
            for worker in &workers {
                for (call, run) in worker
                    .calls
                    .iter()
                    .enumerate()
                    .filter_map(|(i, c)| Some((i, c.run()?)))
                {
                    let at = CallRef {
                        task: id.clone(),
                        worker: worker.no,
                        call,
                    };
                    self.runs.insert(run.clone(), at);
                }
            }
            self.tally.claims += 1;
            *self.attempted.entry(id.clone()).or_default() += 1;
            let flight = Flight {
                spec: Arc::clone(&spec),
                lease: None,
                base: progress.base.clone(),
                iteration: self.tally.claims,
                stages,
                workers,
                abort: None,
                since: now.mono,
            };
            out.push(Effect::Claim {
                task: spec,
                previous: Some((progress.lease_id.clone(), progress.epoch)),
                base: Some(progress.base.clone()),
            });
            out.push(Effect::Say(format!("{id} goes on where it was")));
            self.flights.insert(id, flight);
        }
    }

    /// The lease of a task in flight is ours again, under the old number or a new one.
    pub(super) fn on_regranted(
        &mut self,
        now: Now,
        task: &TaskId,
        lease_id: LeaseId,
        epoch: u64,
        out: &mut Out,
    ) {
        let Some(flight) = self.flights.get_mut(task) else {
            return;
        };
        flight.lease = Some((lease_id.clone(), epoch));
        let iteration = flight.iteration;
        let paths = flight
            .spec
            .claims
            .iter()
            .map(|c| c.as_str().to_owned())
            .collect();
        let (base, preparing): (String, Vec<u32>) = (
            flight.base.clone(),
            flight
                .workers
                .iter()
                .filter(|w| w.phase == Phase::Preparing)
                .map(|w| w.no)
                .collect(),
        );
        self.record(
            now,
            out,
            Some(task),
            None,
            FactBody::LeaseClaimed {
                lease_id,
                epoch,
                paths,
                resumed: true,
            },
        );
        for worker in preparing {
            out.push(Effect::PrepareWorktree {
                task: task.clone(),
                worker,
                base: base.clone(),
                reuse: true,
            });
        }
        self.arm_task_clock(now, task, iteration, out);
    }
}

fn restore_worker<'a>(
    no: u32,
    progress: &WorkerProgress,
    stages: &[Stage],
    same_stages: bool,
    runs: impl Iterator<Item = (&'a RunId, &'a RunProgress)>,
) -> Worker {
    let mut worker = Worker::new(no);
    if let Some(captured) = &progress.captured {
        worker.phase = Phase::Done;
        worker.changed_files.clone_from(&captured.changed_files);
        worker.worktree = Some(super::event::WorktreeReady {
            path: std::path::PathBuf::new(),
            branch: captured.branch.clone(),
            moved_aside: Vec::new(),
        });
        worker.result = match (&progress.failed, captured.passed) {
            (_, true) => WorkerResult::Passed,
            (Some(f), _) => WorkerResult::Failed {
                reason: failure_text(f),
                blocked: f.blocked,
            },
            (None, false) => WorkerResult::Failed {
                reason: "did not pass".to_owned(),
                blocked: false,
            },
        };
        return worker;
    }
    if let Some(f) = &progress.failed {
        worker.result = WorkerResult::Failed {
            reason: failure_text(f),
            blocked: f.blocked,
        };
    }
    if !same_stages {
        // The configuration changed under it: from the first stage that it has not passed.
        worker.stage_ix = stages
            .iter()
            .position(|s| !progress.passed_stages.contains(&s.name))
            .unwrap_or(stages.len());
    } else {
        worker.stage_ix = progress.passed_stages.len();
    }
    let Some(stage) = stages.get(worker.stage_ix) else {
        return worker;
    };
    worker.calls = stage
        .calls
        .iter()
        .map(super::flight::CallTemplate::call)
        .collect();
    let mut of_stage: Vec<_> = runs.collect();
    of_stage.sort_by(|a, b| a.0.cmp(b.0));
    for (run, r) in of_stage {
        worker.last_run = Some(run.clone());
        if r.stage != stage.name {
            continue;
        }
        if let Some(call) = worker.calls.iter_mut().find(|c| c.role == r.role) {
            restore_call(call, run, r);
        }
    }
    worker
}

fn restore_call(call: &mut Call, run: &RunId, r: &RunProgress) {
    call.attempt = r.attempt;
    call.state = match (&r.exited, &r.started) {
        (None, Some(start)) => CallState::Running {
            run: run.clone(),
            pid: start.pid,
            since: std::time::Duration::ZERO,
        },
        (None, None) => CallState::Launched {
            run: run.clone(),
            slot_busy: false,
        },
        (Some(end), _) if end.outcome == Outcome::Cancelled => CallState::Pending,
        (Some(end), _) if end.outcome.is_infrastructure_failure() => {
            call.infrastructure_failures += 1;
            if call.infrastructure_failures <= call.limits.retries {
                call.attempt += 1;
                CallState::Pending
            } else {
                CallState::Done(end.verdict.clone())
            }
        }
        (Some(end), _) => CallState::Done(end.verdict.clone()),
    };
}

/// As the live path words it.
fn failure_text(failure: &StageFailure) -> String {
    format!("{}: {}", failure.stage, failure.reason)
}
