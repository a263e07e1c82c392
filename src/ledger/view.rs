//! `auto_loop_state.json`: what people read of the state. A cache: written, never read back as truth.

use super::fact::LoopSettings;
use super::progress::{EndedCycle, InFlight, WorkerProgress};
use super::state::{FILES_KEPT, IDS_SHOWN, LedgerState};
use crate::types::{RunId, TaskId, Timestamp};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The version of the view's shape.
const SCHEMA_VERSION: u32 = 1;
/// The view's name in the state directory.
pub(super) const VIEW_FILE: &str = "auto_loop_state.json";

/// The daemon that keeps the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonInfo {
    /// Its process id, for people.
    pub pid: u32,
    /// When it started, for people.
    pub started_at: Timestamp,
    /// flockd's version.
    pub version: String,
}

/// What the view says and the facts do not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ViewContext {
    /// When it is made.
    pub generated_at: Timestamp,
    /// The daemon that keeps it; none when none does.
    pub daemon: Option<DaemonInfo>,
    /// The task that would be taken next.
    pub next_task: Option<TaskId>,
    /// The ledger segment that is written to.
    pub segment: u32,
}

/// The bytes of a state file: 2-space indent, sorted keys, UTF-8, one final newline.
#[must_use]
pub fn render(value: &Value) -> Vec<u8> {
    // serde_json's maps are sorted (its feature `preserve_order` is off; a golden test holds that).
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

impl LedgerState {
    /// The view (config §6): of bounded size, the same for the same facts and context.
    #[must_use]
    pub fn view(&self, context: &ViewContext) -> Value {
        let setting =
            |get: fn(&LoopSettings) -> Value| self.settings.as_ref().map_or(Value::Null, get);
        json!({
            "schema_version": SCHEMA_VERSION,
            "generated_at": context.generated_at.seconds(),
            "decision": self.decision,
            "global_concurrency": setting(|s| s.global_concurrency.into()),
            "tasks": setting(|s| s.tasks.into()),
            "workers": setting(|s| s.workers.into()),
            "roles": setting(|s| s.roles.into()),
            "infinite_mode": setting(|s| s.infinite.into()),
            "max_completed": setting(|s| s.max_completed.into()),
            "max_attempts": setting(|s| s.max_attempts.into()),
            "completed_count": self.completed.len(),
            "deferred_count": self.deferred.len(),
            "completed_task_ids": ids(self.completed_newest.iter()),
            "deferred_task_ids": ids(self.deferred.newest(IDS_SHOWN)),
            "blocked_task_ids": ids(self.blocked.newest(IDS_SHOWN)),
            "consecutive_blockers": self.consecutive_blockers,
            "next_task_id": context.next_task.as_ref().map(TaskId::as_str),
            "cycles": self.cycles(),
            "blockers": distinct(self.blockers.iter()),
            "warnings": distinct(self.warnings.iter()),
            "ledger": { "segment": context.segment, "seq": self.last_seq },
            "daemon": context.daemon.as_ref().map(|daemon| json!({
                "pid": daemon.pid,
                "started_at": daemon.started_at.seconds(),
                "version": daemon.version,
            })),
        })
    }

    /// The ended ones, then those in flight, each in the order of their beginning or end.
    fn cycles(&self) -> Vec<Value> {
        let mut flights: Vec<(&TaskId, &InFlight)> = self.in_flight.iter().collect();
        flights.sort_by_key(|(_, flight)| flight.claimed_seq);
        let running = flights.into_iter().flat_map(|(task, flight)| {
            flight
                .shown_workers()
                .map(move |(number, worker)| running_cycle(task, flight, number, worker))
        });
        self.ended.iter().map(ended_cycle).chain(running).collect()
    }
}

fn running_cycle(
    task: &TaskId,
    flight: &InFlight,
    number: u32,
    worker: Option<&WorkerProgress>,
) -> Value {
    let captured = worker.and_then(|worker| worker.captured.as_ref());
    let files: Vec<&String> = captured
        .iter()
        .flat_map(|captured| captured.changed_files.iter().take(FILES_KEPT))
        .collect();
    json!({
        "task_id": task,
        "title": flight.title,
        "worker": number,
        "iteration": flight.iteration,
        "stage": worker.and_then(|worker| worker.stage.as_deref()),
        "runs": run_ids(&flight.runs_of(number)),
        "decision": "running",
        "changed_files": files,
        "started_at": flight.claimed_at.seconds(),
        "ended_at": null,
    })
}

fn ended_cycle(cycle: &EndedCycle) -> Value {
    json!({
        "task_id": cycle.task,
        "title": cycle.title,
        "worker": cycle.worker,
        "iteration": cycle.iteration,
        "stage": cycle.stage,
        "runs": run_ids(&cycle.runs),
        "decision": cycle.decision,
        "changed_files": cycle.changed_files,
        "started_at": cycle.started_at.seconds(),
        "ended_at": cycle.ended_at.seconds(),
    })
}

fn run_ids(runs: &[RunId]) -> Vec<&str> {
    runs.iter().map(RunId::as_str).collect()
}

fn ids<'a>(tasks: impl Iterator<Item = &'a TaskId>) -> Vec<&'a str> {
    tasks.map(TaskId::as_str).collect()
}

/// Each text once, at its first place.
fn distinct<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    texts
        .map(String::as_str)
        .filter(|text| seen.insert(*text))
        .collect()
}
