//! `status` without a daemon.

use super::failure::Failure;
use super::offline::Snapshot;
use super::runs::RunRecord;
use crate::api::{
    DaemonReport, LoopReport, RunReport, SettingsReport, SlotsReport, StatusReport, TaskCounts,
    TaskStatus, WaitReport,
};
use crate::budget::{SlotDir, SlotText};
use crate::config::Config;
use crate::types::{TaskId, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The whole picture as the files have it.
pub(super) fn status(config: &Config) -> Result<StatusReport, Failure> {
    let snapshot = Snapshot::read(config)?;
    let mut tasks = TaskCounts::default();
    let mut waiting = Vec::new();
    for row in snapshot.rows() {
        let count = match row.state {
            TaskStatus::Queued => &mut tasks.queued,
            TaskStatus::Running => &mut tasks.running,
            TaskStatus::Waiting | TaskStatus::Hold => &mut tasks.waiting,
            TaskStatus::Blocked => &mut tasks.blocked,
            TaskStatus::Completed => &mut tasks.completed,
            TaskStatus::Deferred => &mut tasks.deferred,
            TaskStatus::Cancelled => &mut tasks.cancelled,
            TaskStatus::Malformed | TaskStatus::Unknown => &mut tasks.malformed,
        };
        *count += 1;
        let waits = matches!(
            row.state,
            TaskStatus::Waiting | TaskStatus::Hold | TaskStatus::Blocked
        );
        if let (true, Some(wait_for), Ok(task_id)) =
            (waits, row.waits_for, TaskId::new(&row.task_id))
        {
            waiting.push(WaitReport {
                task_id,
                wait_for,
                detail: row.detail,
            });
        }
    }
    let held = held_slots(config);
    let view = snapshot.view.as_ref();
    if let Some(completed) = field::<u32>(view, "completed_count") {
        tasks.completed = completed;
    }
    Ok(StatusReport {
        daemon: DaemonReport::default(),
        slots: SlotsReport {
            total: config.loop_.global_concurrency,
            used: u32::try_from(held.len()).unwrap_or(u32::MAX),
        },
        tasks,
        runs: runs(config, &held),
        waiting,
        quota: Vec::new(),
        loop_: LoopReport {
            decision: field(view, "decision"),
            settings: view.map(settings),
            consecutive_blockers: field(view, "consecutive_blockers").unwrap_or_default(),
            next_task_id: field(view, "next_task_id"),
            paused: snapshot.paused,
            estop: snapshot.estop,
            parallelism_kill: config.parallelism_kill
                || config.state_dir.join("PARALLELISM_KILL").exists(),
            ..LoopReport::default()
        },
        warnings: warnings(view),
        ledger_seq: view
            .and_then(|view| view.pointer("/ledger/seq")?.as_u64())
            .unwrap_or_default(),
    })
}

fn field<T: DeserializeOwned>(view: Option<&Value>, key: &str) -> Option<T> {
    serde_json::from_value(view?.get(key)?.clone()).ok()
}

fn settings(view: &Value) -> SettingsReport {
    let mut settings: SettingsReport = serde_json::from_value(view.clone()).unwrap_or_default();
    settings.infinite = view
        .get("infinite_mode")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    settings
}

fn warnings(view: Option<&Value>) -> Vec<String> {
    let list = view
        .and_then(|view| view.get("warnings")?.as_array())
        .into_iter()
        .flatten();
    list.map(|warning| match warning {
        Value::String(text) => text.clone(),
        other => other
            .get("text")
            .and_then(Value::as_str)
            .map_or_else(|| other.to_string(), str::to_owned),
    })
    .collect()
}

/// Slots that living runners or `flockd run` hold: runs go on without a daemon.
fn held_slots(config: &Config) -> Vec<(u32, SlotText)> {
    // A look makes no folder.
    if !config.state_dir.join("slots").is_dir() {
        return Vec::new();
    }
    let Ok(slots) = SlotDir::open(&config.state_dir) else {
        return Vec::new();
    };
    let m = slots
        .ceiling()
        .unwrap_or(1)
        .max(config.loop_.global_concurrency);
    slots
        .used(m)
        .into_iter()
        .filter_map(|(slot, text)| Some((slot, text?)))
        .collect()
}

fn runs(config: &Config, held: &[(u32, SlotText)]) -> Vec<RunReport> {
    let mut runs: Vec<RunReport> = Vec::new();
    for (slot, text) in held {
        if let Some(run) = runs.iter_mut().find(|run| run.run_id == text.run_id) {
            run.slots.push(*slot);
            continue;
        }
        let folder = config.state_dir.join("runs").join(text.run_id.as_str());
        let record = RunRecord::read(&folder);
        let field = |key: &str| record.as_ref().map(|r| r.text(key)).unwrap_or_default();
        let created = field("created_at").parse::<Timestamp>().ok();
        let elapsed = created.map_or(0, |at| super::queue::now().as_millis() - at.as_millis());
        runs.push(RunReport {
            run_id: text.run_id.clone(),
            task_id: TaskId::new(&field("task_id")).ok(),
            worker: field("worker").parse().unwrap_or_default(),
            stage: field("stage"),
            role: field("role"),
            state: "running".to_owned(),
            pid: None,
            elapsed_ms: u64::try_from(elapsed).unwrap_or_default(),
            slots: vec![*slot],
        });
    }
    runs
}
