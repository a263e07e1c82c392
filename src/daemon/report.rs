//! The core's state as the control protocol tells it.

use crate::api::{
    DaemonReport, LoopReport, RunReport, SettingsReport, SlotsReport, StatusReport, TaskCounts,
    TaskRow, TaskStatus, WaitReport, WhyReport,
};
use crate::budget::{SlotDir, SlotText};
use crate::config::Config;
use crate::engine::{CallStateName, Core, RunRow, Standing, Why};
use crate::types::{Decision, Now, TaskId, Timestamp};
use std::path::PathBuf;
use std::sync::Arc;

/// Tasks named in `status`; the counts cover all.
const WAITING_MAX: usize = 200;

/// What reports need besides the core.
pub(super) struct Reporter {
    pub(super) config: Arc<Config>,
    pub(super) slots: SlotDir,
    pub(super) started_at: Timestamp,
    pub(super) malformed: Vec<(PathBuf, String)>,
}

impl Reporter {
    pub(super) fn status(&self, core: &Core, now: Now) -> StatusReport {
        let mut tasks = TaskCounts {
            completed: core.completed_ever(),
            ..TaskCounts::default()
        };
        tasks.malformed = u32::try_from(self.malformed.len()).unwrap_or(u32::MAX);
        let mut waiting = Vec::new();
        for (task_id, why) in core.standings(now) {
            count(&mut tasks, &why);
            if let Some(wait_for) = why.waits_for
                && waiting.len() < WAITING_MAX
            {
                waiting.push(WaitReport {
                    task_id,
                    wait_for,
                    detail: why.detail,
                });
            }
        }
        let m = self.config.loop_.global_concurrency;
        let held = self.slots.held();
        StatusReport {
            daemon: DaemonReport {
                running: true,
                pid: Some(std::process::id()),
                started_at: Some(self.started_at),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            },
            slots: SlotsReport {
                total: m,
                used: u32::try_from(held.len()).unwrap_or(m),
            },
            tasks,
            runs: core
                .run_rows(now)
                .iter()
                .map(|row| run_report(row, &held))
                .collect(),
            waiting,
            quota: Vec::new(),
            loop_: self.loop_report(core),
            warnings: core.warnings(),
            ledger_seq: core.last_seq(),
        }
    }

    fn loop_report(&self, core: &Core) -> LoopReport {
        let l = &self.config.loop_;
        let progress = core.progress();
        LoopReport {
            decision: Some(Decision::Running),
            settings: Some(SettingsReport {
                tasks: l.tasks,
                workers: l.workers,
                roles: l.roles,
                global_concurrency: l.global_concurrency,
                infinite: l.infinite,
                max_completed: l.max_completed,
                max_attempts: l.max_attempts,
            }),
            completed: progress.completed,
            attempts: progress.claims,
            consecutive_blockers: progress.blockers,
            next_task_id: core.next_task_id(),
            paused: progress.markers.paused,
            estop: progress.markers.estop,
            parallelism_kill: progress.parallelism_kill,
            stopping: progress.stopping,
            degraded: None,
        }
    }

    /// Whether a task has a file or a fact.
    pub(super) fn known(&self, core: &Core, task: &TaskId) -> bool {
        core.knows(task)
    }

    pub(super) fn why(&self, core: &Core, now: Now, task: &TaskId) -> WhyReport {
        let why = core.why(task, now);
        let (runs, held) = (core.run_rows(now), self.slots.held());
        let bad = self
            .malformed
            .iter()
            .find(|(path, _)| path.file_stem().is_some_and(|s| s == task.as_str()));
        let (state, detail) = match (why.standing, bad) {
            (Standing::Unknown, Some((_, error))) => (TaskStatus::Malformed, error.clone()),
            _ => (status_of(why.standing), why.detail),
        };
        WhyReport {
            task_id: task.clone(),
            state,
            waits_for: why.waits_for,
            detail,
            runs: runs
                .iter()
                .filter(|r| r.task == *task)
                .map(|row| run_report(row, &held))
                .collect(),
            blockers: core.blockers_of(task),
            advice: None,
        }
    }

    pub(super) fn list(&self, core: &Core, now: Now) -> Vec<TaskRow> {
        let mut rows: Vec<TaskRow> = core
            .queue_order()
            .into_iter()
            .map(|spec| {
                let why = core.why(&spec.id, now);
                TaskRow {
                    task_id: spec.id.to_string(),
                    title: spec.title.clone(),
                    state: status_of(why.standing),
                    priority: spec.priority,
                    waits_for: why.waits_for,
                    detail: why.detail,
                    claims: spec.claims.iter().map(|c| c.as_str().to_owned()).collect(),
                    after: spec.after.clone(),
                }
            })
            .collect();
        rows.extend(self.malformed.iter().map(|(path, error)| {
            TaskRow {
                task_id: path
                    .file_stem()
                    .map(|s| s.to_string_lossy().into_owned())
                    .unwrap_or_default(),
                title: String::new(),
                state: TaskStatus::Malformed,
                priority: 0,
                waits_for: None,
                detail: error.clone(),
                claims: Vec::new(),
                after: Vec::new(),
            }
        }));
        rows
    }
}

fn count(tasks: &mut TaskCounts, why: &Why) {
    match why.standing {
        Standing::Queued => tasks.queued += 1,
        Standing::Running => tasks.running += 1,
        Standing::Waiting | Standing::Held => tasks.waiting += 1,
        Standing::Blocked => tasks.blocked += 1,
        Standing::Deferred => tasks.deferred += 1,
        Standing::Cancelled => tasks.cancelled += 1,
        // Counted from the ledger: a finished task's file may be gone.
        Standing::Completed | Standing::Unknown => {}
    }
}

fn status_of(standing: Standing) -> TaskStatus {
    match standing {
        Standing::Queued => TaskStatus::Queued,
        Standing::Running => TaskStatus::Running,
        Standing::Waiting => TaskStatus::Waiting,
        Standing::Blocked => TaskStatus::Blocked,
        Standing::Completed => TaskStatus::Completed,
        Standing::Deferred => TaskStatus::Deferred,
        Standing::Cancelled => TaskStatus::Cancelled,
        Standing::Held => TaskStatus::Hold,
        Standing::Unknown => TaskStatus::Unknown,
    }
}

fn run_report(row: &RunRow, held: &[(u32, SlotText)]) -> RunReport {
    RunReport {
        run_id: row.run.clone(),
        task_id: Some(row.task.clone()),
        worker: row.worker,
        stage: row.stage.clone(),
        role: row.role.clone(),
        state: match row.state {
            CallStateName::AwaitingSlot => "waiting_for_slot",
            CallStateName::Starting => "starting",
            CallStateName::Running => "running",
            CallStateName::Stopping => "stopping",
        }
        .to_owned(),
        pid: row.pid,
        elapsed_ms: row.elapsed_ms,
        slots: held
            .iter()
            .filter(|(_, text)| text.run_id == row.run)
            .map(|(slot, _)| *slot)
            .collect(),
    }
}

/// The end of a loop for people: what completed, where it is, what to type next.
pub(super) fn summary(core: &Core, now: Now) -> Vec<String> {
    let mut lines = Vec::new();
    for (task, branches) in core.completed_here() {
        lines.push(format!("completed {task}: {}", branches.join(", ")));
    }
    let mut wait_for_people = false;
    for (task, why) in core.standings(now) {
        match why.standing {
            Standing::Completed | Standing::Cancelled | Standing::Unknown => {}
            Standing::Running => lines.push(format!("running {task}: goes on at the next start")),
            _ => {
                wait_for_people |= why.waits_for == Some(crate::types::WaitFor::Human);
                lines.push(format!(
                    "{} {task}: {}",
                    status_of(why.standing),
                    why.detail
                ));
            }
        }
    }
    let first = core
        .completed_here()
        .next()
        .and_then(|(_, branches)| branches.first());
    if let Some(branch) = first {
        lines.push(format!(
            "next: `git log -p {branch}` shows a result, `git merge {branch}` takes it"
        ));
    }
    lines.extend(core.warnings().into_iter().map(|w| format!("warning: {w}")));
    if wait_for_people {
        lines.push("next: `flockd why TASK` says what a task waits for".to_owned());
    }
    lines
}
