//! `auto_loop_state.json`: the state as other programs read it (config §6). Derived, bounded, never
//! read back.

use super::progress::{EndedCycle, InFlight, WorkerProgress};
use super::state::{CYCLE_FILES_MAX, CYCLE_RUNS_MAX, LedgerState};
use crate::types::{Decision, RunId, TaskId, Timestamp};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Ids that a list shows; the newest are kept.
const IDS_MAX: usize = 1_000;
const SCHEMA_VERSION: u32 = 1;

/// The daemon that writes the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonInfo {
    /// Its process id.
    pub pid: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// flockd's version.
    pub version: String,
}

impl LedgerState {
    /// The view: exactly the keys of config §6, a copy that later facts do not change.
    #[must_use]
    pub fn view(
        &self,
        now: Timestamp,
        daemon: Option<&DaemonInfo>,
        next_task: Option<&TaskId>,
    ) -> Value {
        let settings = self.settings.as_ref();
        let number = |f: fn(&super::LoopSettings) -> u32| settings.map_or(0, f);
        let waiting: Vec<&TaskId> = self
            .blocked
            .keys()
            .chain(self.needs_selection.newest(IDS_MAX))
            .take(IDS_MAX)
            .collect();
        json!({
            "schema_version": SCHEMA_VERSION,
            "generated_at": now.seconds(),
            "decision": self.decision.unwrap_or(Decision::Stopped),
            "global_concurrency": number(|s| s.global_concurrency),
            "tasks": number(|s| s.tasks),
            "workers": number(|s| s.workers),
            "roles": number(|s| s.roles),
            "infinite_mode": settings.is_some_and(|s| s.infinite),
            "max_completed": number(|s| s.max_completed),
            "max_attempts": number(|s| s.max_attempts),
            "completed_count": self.completed.len(),
            "deferred_count": self.deferred.len(),
            "completed_task_ids": self.completed.newest(IDS_MAX).collect::<Vec<_>>(),
            "deferred_task_ids": self.deferred.newest(IDS_MAX).collect::<Vec<_>>(),
            "blocked_task_ids": waiting,
            "consecutive_blockers": self.consecutive_blockers,
            "next_task_id": next_task,
            "cycles": self.cycles(),
            "blockers": distinct(&self.blockers),
            "warnings": distinct(&self.warnings),
            "ledger": {
                "segment": super::segment::name(self.segment.max(1)),
                "seq": self.last_seq,
            },
            "daemon": daemon.map(|d| json!({
                "pid": d.pid,
                "started_at": d.started_at.seconds(),
                "version": d.version,
            })),
        })
    }

    /// The last ended cycles, then those in flight.
    fn cycles(&self) -> Vec<Value> {
        let ended = self.ended.iter().map(ended);
        let open = self.in_flight.iter().flat_map(|(task, flight)| {
            let one = move |(no, worker): (&u32, &WorkerProgress)| open(task, flight, *no, worker);
            flight.workers.iter().map(one)
        });
        ended.chain(open).collect()
    }
}

/// The file's bytes: sorted keys, two spaces, a newline at the end.
pub(super) fn bytes(view: &Value) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(view)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn distinct(list: &VecDeque<String>) -> Vec<&String> {
    let mut seen = std::collections::HashSet::new();
    list.iter().filter(|text| seen.insert(*text)).collect()
}

fn ended(cycle: &EndedCycle) -> Value {
    json!({
        "task_id": cycle.task,
        "title": cycle.title,
        "worker": cycle.worker,
        "iteration": cycle.iteration,
        "stage": cycle.stage,
        "runs": cycle.runs,
        "decision": cycle.decision,
        "changed_files": cycle.changed_files,
        "started_at": cycle.started_at.seconds(),
        "ended_at": cycle.ended_at.seconds(),
    })
}

fn open(task: &TaskId, flight: &InFlight, no: u32, worker: &WorkerProgress) -> Value {
    let runs: Vec<RunId> = flight.runs_of(no, CYCLE_RUNS_MAX);
    let changed = worker.captured.iter().flat_map(|c| &c.changed_files);
    json!({
        "task_id": task,
        "title": flight.title,
        "worker": no,
        "iteration": flight.iteration,
        "stage": flight.stage_of(worker),
        "runs": runs,
        "decision": "running",
        "changed_files": changed.take(CYCLE_FILES_MAX).collect::<Vec<_>>(),
        "started_at": flight.started_at.seconds(),
        "ended_at": null,
    })
}
