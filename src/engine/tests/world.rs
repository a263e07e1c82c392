//! The simulated world: carries effects out on virtual time and checks what must hold at every step.

use crate::config::{Config, TaskSpec};
use crate::engine::{
    ClaimRefusal, Conflict, Core, EdgeError, Effect, Event, Finish, Granted, IdSource, Markers,
    RunEnd, RunPlan, TimerKey, WorkKept, WorktreeReady,
};
use crate::ledger::{FactBody, LedgerState, NewFact};
use crate::types::{ClaimSet, LeaseId, Now, Outcome, RunId, Timestamp, Verdict};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Ids that count, so that a run of the world repeats to the byte.
#[derive(Default)]
struct Counting {
    runs: u32,
    tokens: u32,
}

impl IdSource for Counting {
    fn run_id(&mut self) -> RunId {
        self.runs += 1;
        RunId::new(&format!("R{:04}", self.runs)).unwrap()
    }
    fn token(&mut self) -> String {
        self.tokens += 1;
        format!("token-{}", self.tokens)
    }
    fn jitter(&mut self) -> f64 {
        0.5
    }
}

/// What a child will do.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) outcome: Outcome,
    pub(super) verdict: Verdict,
    pub(super) millis: u64,
}

impl Script {
    pub(super) fn pass(millis: u64) -> Self {
        Self {
            outcome: Outcome::Succeeded,
            verdict: Verdict::Pass,
            millis,
        }
    }
    pub(super) fn fail(reason: &str) -> Self {
        Self {
            outcome: Outcome::Failed,
            verdict: Verdict::Fail(reason.to_owned()),
            millis: 10,
        }
    }
    pub(super) fn blocked(reason: &str) -> Self {
        Self {
            outcome: Outcome::Succeeded,
            verdict: Verdict::Blocked(reason.to_owned()),
            millis: 10,
        }
    }
    pub(super) fn ends(outcome: Outcome) -> Self {
        Self {
            outcome,
            verdict: Verdict::Fail(outcome.to_string()),
            millis: 10,
        }
    }
}

struct Child {
    plan: RunPlan,
    until: Duration,
    script: Script,
}

pub(super) struct World {
    pub(super) core: Core,
    pub(super) now: Duration,
    pub(super) facts: Vec<NewFact>,
    pub(super) said: Vec<String>,
    pub(super) finish: Option<Finish>,
    pub(super) peak: u32,
    pub(super) peak_flights: usize,
    /// Claims that somebody outside the loop has.
    pub(super) foreign: Vec<ClaimSet>,
    /// Why no worktree can be made.
    pub(super) refuse_worktrees: Option<EdgeError>,
    settled: Vec<RunId>,
    m: u32,
    used: BTreeMap<RunId, u32>,
    waits: VecDeque<(RunId, u32)>,
    children: BTreeMap<RunId, Child>,
    timers: BTreeMap<(Duration, u64), TimerKey>,
    inbox: VecDeque<Event>,
    leases: BTreeMap<LeaseId, ClaimSet>,
    epoch: u64,
    serial: u64,
    script: Box<dyn FnMut(&RunPlan) -> Script>,
    /// Events to give at a virtual time.
    pub(super) at: BTreeMap<Duration, Vec<Event>>,
}

impl World {
    pub(super) fn new(
        config: Config,
        tasks: Vec<TaskSpec>,
        script: impl FnMut(&RunPlan) -> Script + 'static,
    ) -> Self {
        Self::over(LedgerState::default(), config, tasks, script)
    }

    pub(super) fn over(
        book: LedgerState,
        config: Config,
        tasks: Vec<TaskSpec>,
        script: impl FnMut(&RunPlan) -> Script + 'static,
    ) -> Self {
        let m = config.loop_.global_concurrency;
        // Ids are never used twice, as ULIDs are not.
        let ids = Counting {
            runs: u32::try_from(book.last_seq()).unwrap() * 10,
            tokens: 0,
        };
        let mut world = Self {
            core: Core::new(config, Box::new(ids), book),
            now: Duration::ZERO,
            facts: Vec::new(),
            said: Vec::new(),
            finish: None,
            peak: 0,
            peak_flights: 0,
            foreign: Vec::new(),
            refuse_worktrees: None,
            settled: Vec::new(),
            m,
            used: BTreeMap::new(),
            waits: VecDeque::new(),
            children: BTreeMap::new(),
            timers: BTreeMap::new(),
            inbox: VecDeque::new(),
            leases: BTreeMap::new(),
            epoch: 0,
            serial: 0,
            script: Box::new(script),
            at: BTreeMap::new(),
        };
        let effects = world.core.begin(world.clock());
        world.carry_out(effects);
        world.inbox.push_back(Event::Markers(Markers::default()));
        world.inbox.push_back(Event::TasksChanged {
            upserts: tasks,
            removed: Vec::new(),
        });
        world
    }

    pub(super) fn clock(&self) -> Now {
        let millis = i64::try_from(self.now.as_millis()).unwrap();
        Now {
            wall: Timestamp::from_millis(1_767_225_600_000 + millis),
            mono: self.now,
        }
    }

    pub(super) fn give(&mut self, event: Event) {
        self.inbox.push_back(event);
    }

    /// Runs until the loop is over; a world in which nothing can happen any more is a hang.
    pub(super) fn run(&mut self) -> Finish {
        for _ in 0..200_000 {
            if let Some(finish) = &self.finish {
                return finish.clone();
            }
            assert!(
                self.step(),
                "hang: nothing is left to happen, the loop is not over\n{}",
                self.said.join("\n")
            );
        }
        panic!("the loop does not end:\n{}", self.said.join("\n"));
    }

    /// Runs until a condition holds.
    pub(super) fn run_until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        for _ in 0..200_000 {
            if done(self) {
                return;
            }
            assert!(
                self.finish.is_none() && self.step(),
                "{what} never came\n{}",
                self.said.join("\n")
            );
        }
        panic!("{what} never came");
    }

    fn step(&mut self) -> bool {
        if let Some(event) = self.inbox.pop_front() {
            let effects = self.core.handle(self.clock(), event);
            self.carry_out(effects);
            self.check();
            return true;
        }
        let child = self
            .children
            .iter()
            .map(|(r, c)| (c.until, r.clone()))
            .min();
        let timer = self.timers.keys().next().copied();
        let planned = self.at.keys().next().copied();
        let next = [child.as_ref().map(|c| c.0), timer.map(|t| t.0), planned]
            .into_iter()
            .flatten()
            .min();
        let Some(next) = next else { return false };
        self.now = self.now.max(next);
        if planned == Some(next) {
            self.inbox.extend(self.at.remove(&next).unwrap_or_default());
        } else if timer.is_some_and(|t| t.0 == next) {
            let key = self.timers.remove(&timer.unwrap()).unwrap();
            self.inbox.push_back(Event::Timer(key));
        } else {
            self.end_child(&child.unwrap().1, None);
        }
        true
    }

    fn end_child(&mut self, run: &RunId, cancelled: Option<Outcome>) {
        let Some(child) = self.children.remove(run) else {
            return;
        };
        let outcome = cancelled.unwrap_or(child.script.outcome);
        let verdict = match cancelled {
            Some(_) => Verdict::Fail("cancelled".to_owned()),
            None => child.script.verdict,
        };
        let at = self.clock().wall;
        self.inbox.push_back(Event::RunExited {
            run: run.clone(),
            end: Box::new(RunEnd {
                outcome,
                exit_code: (outcome == Outcome::Succeeded).then_some(0),
                signal: None,
                verdict,
                detail: String::new(),
                started_at: at,
                ended_at: at,
                duration_ms: child.script.millis,
                user_ms: 0,
                system_ms: 0,
                max_rss_kib: 0,
                stdout_bytes: 0,
                stderr_bytes: 0,
                truncated: false,
                stragglers_killed: 0,
                systemic: false,
            }),
        });
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Record(facts) => self.facts.extend(facts),
                Effect::Claim { task, base, .. } => self.claim(&task, base),
                Effect::Release { lease_id, .. } => {
                    self.leases.remove(&lease_id);
                    self.inbox.push_back(Event::LeasesChanged);
                }
                Effect::PrepareWorktree { task, worker, .. } => {
                    let ready = WorktreeReady {
                        path: format!("/worktrees/{task}.{worker}").into(),
                        branch: format!("flockd/{task}.{worker}"),
                        moved_aside: Vec::new(),
                    };
                    let result = self.refuse_worktrees.clone().map_or(Ok(ready), Err);
                    self.inbox.push_back(Event::WorktreeDone {
                        task,
                        worker,
                        result,
                    });
                }
                Effect::AcquireSlot { run, slots } => {
                    self.waits.push_back((run, slots.min(self.m)));
                }
                Effect::ForgetSlot { run } | Effect::Settle { run } => {
                    self.settled.push(run.clone());
                    self.used.remove(&run);
                    self.waits.retain(|(r, _)| *r != run);
                }
                Effect::Launch(plan) => self.launch(*plan),
                Effect::StopRun { run, .. } => self.end_child(&run, Some(Outcome::Cancelled)),
                Effect::Capture { task, worker, .. } => {
                    let result = Ok(WorkKept {
                        commit: "c".repeat(40),
                        patch: None,
                        changed_files: vec![format!("{}.txt", task.id)],
                        outside_claim: Vec::new(),
                        notes: Vec::new(),
                    });
                    self.inbox.push_back(Event::CaptureDone {
                        task: task.id.clone(),
                        worker,
                        result,
                    });
                }
                Effect::SetTimer { at, key } => {
                    self.serial += 1;
                    self.timers.insert((at, self.serial), key);
                }
                Effect::Say(line) => self.said.push(line),
                Effect::Finish(finish) => self.finish = Some(finish),
            }
            self.grant();
        }
    }

    /// Permits in the order of asking, as the semaphore gives them.
    fn grant(&mut self) {
        while let Some((run, weight)) = self.waits.front().cloned() {
            if self.used.values().sum::<u32>() + weight > self.m {
                return;
            }
            self.waits.pop_front();
            self.used.insert(run.clone(), weight);
            self.inbox.push_back(Event::SlotGranted { run });
        }
    }

    fn claim(&mut self, task: &TaskSpec, base: Option<String>) {
        let foreign = self
            .foreign
            .iter()
            .any(|f| f.overlap_with(&task.claims).is_some());
        let result = if foreign {
            Err(ClaimRefusal::Conflict(Conflict {
                task: "X".to_owned(),
                path: "p".to_owned(),
            }))
        } else {
            self.epoch += 1;
            let lease_id = LeaseId::new(&format!("L{:04}", self.epoch)).unwrap();
            self.leases.insert(lease_id.clone(), task.claims.clone());
            Ok(Granted {
                lease_id,
                epoch: self.epoch,
                base: base.unwrap_or_else(|| "b".repeat(40)),
                reclaimed: Vec::new(),
            })
        };
        self.inbox.push_back(Event::ClaimDecided {
            task: task.id.clone(),
            result,
        });
    }

    fn launch(&mut self, plan: RunPlan) {
        let script = (self.script)(&plan);
        let run = plan.run.clone();
        self.inbox.push_back(Event::RunStarted {
            run: run.clone(),
            pid: 1000,
            start_ticks: 1,
            slots: vec![0],
        });
        let until = self.now + Duration::from_millis(script.millis);
        self.children.insert(
            run,
            Child {
                plan,
                until,
                script,
            },
        );
    }

    fn check(&mut self) {
        let alive: u32 = self
            .children
            .values()
            .map(|c| c.plan.slots.min(self.m))
            .sum();
        assert!(
            alive <= self.m,
            "P1: {alive} permits in use, M is {}",
            self.m
        );
        self.peak = self.peak.max(alive);
        let held: Vec<_> = self.leases.values().collect();
        for (i, a) in held.iter().enumerate() {
            for b in held.iter().skip(i + 1) {
                assert!(a.overlap_with(b).is_none(), "P5: two leases overlap");
            }
        }
        self.peak_flights = self.peak_flights.max(held.len());
    }

    /// The kinds and tasks of the facts, one line each.
    pub(super) fn story(&self) -> Vec<String> {
        self.facts.iter().map(tell).collect()
    }

    /// The ledger's state after these facts.
    pub(super) fn book(&self) -> LedgerState {
        let mut book = LedgerState::default();
        for (i, fact) in self.facts.iter().enumerate() {
            book.apply(&crate::ledger::Fact {
                seq: i as u64 + 1,
                at: fact.at,
                task: fact.task.clone(),
                run: fact.run.clone(),
                body: fact.body.clone(),
            });
        }
        book
    }

    /// Permits that did not come back.
    pub(super) fn permits_out(&self) -> u32 {
        self.used.values().sum()
    }

    /// Runs whose permits were given back more than once.
    pub(super) fn settled_twice(&self) -> usize {
        let unique: std::collections::BTreeSet<_> = self.settled.iter().collect();
        self.settled.len() - unique.len()
    }

    pub(super) fn alive(&self) -> usize {
        self.children.len()
    }
}

/// How many facts of this story begin so.
pub(super) fn count(world: &World, what: &str) -> usize {
    world
        .story()
        .iter()
        .filter(|line| line.starts_with(what))
        .count()
}

/// A fact as one line without times and ids that differ between orders.
pub(super) fn tell(fact: &NewFact) -> String {
    let task = fact
        .task
        .as_ref()
        .map(|t| format!(" {t}"))
        .unwrap_or_default();
    let body = match &fact.body {
        FactBody::LoopStarted { .. } => "loop_started".to_owned(),
        FactBody::LoopStopped {
            decision,
            exit_code,
            ..
        } => format!("loop_stopped {decision} {exit_code}"),
        FactBody::TaskClaimed { workers, retry, .. } => {
            format!("task_claimed workers={workers} retry={retry}")
        }
        FactBody::RunIntended {
            worker,
            stage,
            role,
            attempt,
            ..
        } => {
            format!("run_intended {worker} {stage}/{role} attempt={attempt}")
        }
        FactBody::RunStarted { .. } => "run_started".to_owned(),
        FactBody::RunExited { outcome, .. } => format!("run_exited {outcome}"),
        FactBody::StagePassed { worker, stage } => format!("stage_passed {worker} {stage}"),
        FactBody::StageFailed {
            worker,
            stage,
            reason,
            ..
        } => format!("stage_failed {worker} {stage} ({reason})"),
        FactBody::WorkerCaptured { worker, passed, .. } => {
            format!("worker_captured {worker} passed={passed}")
        }
        FactBody::TaskCompleted { .. } => "task_completed".to_owned(),
        FactBody::TaskDeferred { reason, blocker } => {
            format!("task_deferred blocker={blocker} ({reason})")
        }
        FactBody::TaskBlocked { reason } => format!("task_blocked ({reason})"),
        FactBody::TaskNeedsSelection { branches } => {
            format!("task_needs_selection {}", branches.len())
        }
        FactBody::TaskCancelled { .. } => "task_cancelled".to_owned(),
        FactBody::TaskRetried {} => "task_retried".to_owned(),
        FactBody::TaskWaiting { wait_for, .. } => format!("task_waiting {wait_for}"),
        FactBody::GuardTripped { guard, .. } => format!("guard_tripped {guard}"),
        other => format!("{other:?}"),
    };
    format!("{body}{task}")
}

impl World {
    /// What the daemon does for open runs that nobody has any more.
    pub(super) fn lose(&mut self, runs: &[RunId]) {
        let at = self.clock().wall;
        for run in runs {
            self.inbox.push_back(Event::RunExited {
                run: run.clone(),
                end: Box::new(RunEnd {
                    outcome: Outcome::Lost,
                    exit_code: None,
                    signal: None,
                    verdict: Verdict::Fail("lost".to_owned()),
                    detail: String::new(),
                    started_at: at,
                    ended_at: at,
                    duration_ms: 0,
                    user_ms: 0,
                    system_ms: 0,
                    max_rss_kib: 0,
                    stdout_bytes: 0,
                    stderr_bytes: 0,
                    truncated: false,
                    stragglers_killed: 0,
                    systemic: false,
                }),
            });
        }
    }
}
