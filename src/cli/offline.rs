//! What the files say when no daemon answers: the ledger's view, the task files, the leases, the
//! markers. Starts nothing and writes nothing.

use super::failure::Failure;
use super::progress::Progress;
use crate::api::{TaskRow, TaskStatus, WhyReport};
use crate::config::{Config, TaskDir, TaskSpec, TaskState, scan_tasks};
use crate::types::{ClaimSet, TaskId, WaitFor};
use serde_json::Value;
use std::path::Path;

/// The ledger's view.
const VIEW_FILE: &str = "auto_loop_state.json";

/// A lease of somebody.
#[derive(Debug)]
pub(super) struct HeldLease {
    pub(super) lease_id: String,
    pub(super) task_id: String,
    pub(super) paths: ClaimSet,
}

/// Everything the files say.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) view: Option<Value>,
    pub(super) progress: Progress,
    pub(super) tasks: TaskDir,
    pub(super) leases: Vec<HeldLease>,
    pub(super) paused: bool,
    pub(super) estop: bool,
}

/// One task's state with its reason.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) state: TaskStatus,
    pub(super) waits_for: Option<WaitFor>,
    pub(super) detail: String,
    pub(super) advice: Option<String>,
}

impl Snapshot {
    /// Reads it all.
    pub(super) fn read(config: &Config) -> Result<Self, Failure> {
        let state_dir = &config.state_dir;
        let view = read_view(state_dir);
        let tasks = scan_tasks(&config.task_dir).map_err(|e| {
            Failure::failed(format!("cannot list {}: {e}", config.task_dir.display()))
        })?;
        Ok(Self {
            progress: Progress::read(state_dir, view.as_ref()),
            leases: held_leases(state_dir),
            paused: state_dir.join("PAUSED").exists(),
            estop: state_dir.join("ESTOP").exists(),
            view,
            tasks,
        })
    }

    /// A task's state.
    pub(super) fn standing(&self, task: &TaskSpec) -> Standing {
        let id = task.id.as_str();
        let progress = &self.progress;
        let plain = |state, detail: &str| Standing {
            state,
            waits_for: None,
            detail: detail.to_owned(),
            advice: None,
        };
        let waits = |wait_for, detail: String| Standing {
            state: TaskStatus::Waiting,
            waits_for: Some(wait_for),
            detail,
            advice: None,
        };
        if progress.is_in_flight(&task.id) {
            return Standing {
                advice: Some("`flockd start` takes it up where it was".to_owned()),
                ..plain(TaskStatus::Running, "in flight when the loop ended")
            };
        }
        if progress.is_cancelled(&task.id) {
            return Standing {
                advice: Some(format!("`flockd retry {id}` puts it back")),
                ..plain(TaskStatus::Cancelled, "cancelled")
            };
        }
        if let Some(reason) = progress.blocked(&task.id) {
            return Standing {
                state: TaskStatus::Blocked,
                waits_for: Some(WaitFor::Human),
                detail: reason,
                advice: Some(format!("see `flockd logs {id}`, then `flockd retry {id}`")),
            };
        }
        if progress.is_completed(&task.id) {
            return plain(TaskStatus::Completed, "completed");
        }
        if task.state == TaskState::Hold {
            return Standing {
                state: TaskStatus::Hold,
                advice: Some("write state = \"ready\" into its file".to_owned()),
                ..waits(WaitFor::Human, "its file says state = \"hold\"".to_owned())
            };
        }
        if let Some(other) = task.after.iter().find(|o| !progress.is_completed(o)) {
            return waits(WaitFor::Dependency, self.dependency(other));
        }
        if let Some(detail) = self.conflict(task) {
            return waits(WaitFor::Lease, detail);
        }
        if progress.is_deferred(&task.id) {
            let detail = "did not pass; tried again when nothing fresh is left";
            return plain(TaskStatus::Deferred, detail);
        }
        self.idle()
    }

    fn dependency(&self, other: &TaskId) -> String {
        let known = self.tasks.tasks.iter().any(|task| task.id == *other);
        if known {
            format!("comes after {other}, which is not completed")
        } else {
            format!("comes after {other}, which has no task file")
        }
    }

    fn conflict(&self, task: &TaskSpec) -> Option<String> {
        let others = self
            .leases
            .iter()
            .filter(|lease| lease.task_id != task.id.as_str());
        for lease in others {
            if let Some((mine, theirs)) = task.claims.overlap_with(&lease.paths) {
                let (holder, id) = (&lease.task_id, &lease.lease_id);
                return Some(format!(
                    "{mine} overlaps {theirs}, held by {holder} (lease {id})"
                ));
            }
        }
        None
    }

    /// Ready, and nothing in its way but the loop.
    fn idle(&self) -> Standing {
        let (detail, advice) = if self.estop {
            ("an emergency stop holds the loop", "`flockd thaw`")
        } else if self.paused {
            ("the loop is paused", "`flockd resume`")
        } else {
            ("no loop is running: `flockd start`", "`flockd start`")
        };
        Standing {
            state: TaskStatus::Queued,
            waits_for: Some(WaitFor::Slot),
            detail: detail.to_owned(),
            advice: Some(advice.to_owned()),
        }
    }

    /// `why TASK`; none: no file and no fact knows it.
    pub(super) fn why(&self, id: &TaskId) -> Option<WhyReport> {
        let report = |standing: Standing| WhyReport {
            task_id: id.clone(),
            state: standing.state,
            waits_for: standing.waits_for,
            detail: standing.detail,
            runs: Vec::new(),
            blockers: self.progress.blockers_of(id),
            advice: standing.advice,
        };
        if let Some(task) = self.tasks.tasks.iter().find(|task| task.id == *id) {
            return Some(report(self.standing(task)));
        }
        let stem = std::ffi::OsStr::new(id.as_str());
        if let Some(error) = self
            .tasks
            .malformed
            .iter()
            .find(|e| e.file.file_stem() == Some(stem))
        {
            return Some(report(Standing {
                state: TaskStatus::Malformed,
                waits_for: Some(WaitFor::Human),
                detail: error.to_string(),
                advice: Some("correct the file; the loop notices".to_owned()),
            }));
        }
        let done = self.progress.is_completed(id);
        done.then(|| {
            report(Standing {
                state: TaskStatus::Completed,
                waits_for: None,
                detail: "completed; its file is gone".to_owned(),
                advice: None,
            })
        })
    }

    /// `list`: queue order, then malformed files.
    pub(super) fn rows(&self) -> Vec<TaskRow> {
        let mut rows: Vec<TaskRow> = self
            .tasks
            .tasks
            .iter()
            .map(|task| {
                let standing = self.standing(task);
                TaskRow {
                    task_id: task.id.to_string(),
                    title: task.title.clone(),
                    state: standing.state,
                    priority: task.priority,
                    waits_for: standing.waits_for,
                    detail: standing.detail,
                    claims: task.claims.to_strings(),
                    after: task.after.clone(),
                }
            })
            .collect();
        rows.extend(self.tasks.malformed.iter().map(|error| {
            TaskRow {
                task_id: error
                    .file
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                title: String::new(),
                state: TaskStatus::Malformed,
                priority: 0,
                waits_for: Some(WaitFor::Human),
                detail: error.to_string(),
                claims: Vec::new(),
                after: Vec::new(),
            }
        }));
        rows
    }
}

/// The ledger's view; none when there is none or it cannot be read: it is a cache.
pub(super) fn read_view(state_dir: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(state_dir.join(VIEW_FILE)).ok()?;
    serde_json::from_str(&text).ok()
}

/// Leases that somebody holds: a dead one stops nobody.
fn held_leases(state_dir: &Path) -> Vec<HeldLease> {
    let found = super::lease::leases(state_dir)
        .into_iter()
        .filter(|view| view.alive);
    found
        .map(|view| HeldLease {
            lease_id: view.record.lease_id.to_string(),
            task_id: view.record.task_id.to_string(),
            paths: view.record.paths,
        })
        .collect()
}
