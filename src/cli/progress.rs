//! What the ledger says of tasks' progress when no daemon answers: its replay, or its view where there is
//! nothing to replay.

use super::output::say;
use crate::ledger::{LedgerError, LedgerState, read_facts};
use crate::types::TaskId;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Tasks' progress.
#[derive(Debug)]
pub(super) enum Progress {
    /// From the facts.
    Facts {
        state: Box<LedgerState>,
        in_flight: BTreeSet<TaskId>,
    },
    /// From `auto_loop_state.json`: its lists are bounded and it is a blink behind.
    View(ViewProgress),
}

/// What the view's lists say.
#[derive(Debug, Default)]
pub(super) struct ViewProgress {
    completed: BTreeSet<String>,
    deferred: BTreeSet<String>,
    /// With the reason.
    blocked: BTreeMap<String, String>,
    in_flight: BTreeSet<String>,
}

impl Progress {
    /// Replays the facts. A damaged ledger is said; then the view has to do.
    pub(super) fn read(state_dir: &Path, view: Option<&Value>) -> Self {
        let of_view = || Self::View(view.map(ViewProgress::of).unwrap_or_default());
        if !state_dir.join("ledger").is_dir() {
            return of_view();
        }
        match replay(state_dir) {
            Ok(state) if state.last_seq() == 0 => of_view(),
            Ok(state) => {
                let in_flight = state.in_flight().map(|(task, _)| task.clone()).collect();
                Self::Facts {
                    state: Box::new(state),
                    in_flight,
                }
            }
            Err(error) => {
                say(format!("warning: {error}; showing what the view says"));
                of_view()
            }
        }
    }

    pub(super) fn is_completed(&self, task: &TaskId) -> bool {
        match self {
            Self::Facts { state, .. } => state.is_completed(task),
            Self::View(view) => view.completed.contains(task.as_str()),
        }
    }

    pub(super) fn is_deferred(&self, task: &TaskId) -> bool {
        match self {
            Self::Facts { state, .. } => state.is_deferred(task),
            Self::View(view) => view.deferred.contains(task.as_str()),
        }
    }

    pub(super) fn is_cancelled(&self, task: &TaskId) -> bool {
        match self {
            Self::Facts { state, .. } => state.is_cancelled(task),
            Self::View(_) => false,
        }
    }

    pub(super) fn is_in_flight(&self, task: &TaskId) -> bool {
        match self {
            Self::Facts { in_flight, .. } => in_flight.contains(task),
            Self::View(view) => view.in_flight.contains(task.as_str()),
        }
    }

    /// Why a task needs a person; none: it does not.
    pub(super) fn blocked(&self, task: &TaskId) -> Option<String> {
        match self {
            Self::Facts { state, .. } if state.needs_selection(task).is_some() => {
                Some("all its workers passed: choose one of its branches".to_owned())
            }
            Self::Facts { state, .. } => {
                state.is_blocked(task).map(|blocked| blocked.reason.clone())
            }
            Self::View(view) => view.blocked.get(task.as_str()).cloned(),
        }
    }

    /// How many blockers count against a task.
    pub(super) fn blockers_of(&self, task: &TaskId) -> u32 {
        match self {
            Self::Facts { state, .. } => state.blockers_of(task),
            Self::View(_) => 0,
        }
    }

    /// Whether anything was ever recorded about a task.
    pub(super) fn knows(&self, task: &TaskId) -> bool {
        match self {
            Self::Facts { state, .. } => state.knows(task),
            Self::View(view) => {
                let id = task.as_str();
                let sets = [&view.completed, &view.deferred, &view.in_flight];
                sets.iter().any(|set| set.contains(id)) || view.blocked.contains_key(id)
            }
        }
    }
}

/// The state that the facts lead to. Takes no lock and writes nothing.
fn replay(state_dir: &Path) -> Result<LedgerState, LedgerError> {
    let mut state = LedgerState::default();
    for fact in read_facts(state_dir, 0) {
        state.apply(&fact?);
    }
    Ok(state)
}

/// Every task id that the view names.
pub(super) fn ids_in_view(view: &Value) -> Vec<String> {
    let found = ViewProgress::of(view);
    let sets = [found.completed, found.deferred, found.in_flight];
    sets.into_iter()
        .flatten()
        .chain(found.blocked.into_keys())
        .collect()
}

impl ViewProgress {
    fn of(view: &Value) -> Self {
        let list = |key: &str| {
            view.get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let text = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
        let ids = |key: &str| {
            list(key)
                .filter_map(|id| id.as_str().map(str::to_owned))
                .collect()
        };
        Self {
            completed: ids("completed_task_ids"),
            deferred: ids("deferred_task_ids"),
            blocked: list("blocked_task_ids")
                .filter_map(|id| Some((id.as_str()?.to_owned(), "needs a person".to_owned())))
                .collect(),
            in_flight: list("cycles")
                .filter(|cycle| cycle.get("ended_at").is_none_or(Value::is_null))
                .filter_map(|cycle| text(cycle, "task_id"))
                .collect(),
        }
    }
}
