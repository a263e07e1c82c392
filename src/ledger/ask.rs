//! Questions that the loop asks the state besides the plain look-ups.

use super::error::LedgerError;
use super::reader::read_facts;
use super::state::LedgerState;
use crate::types::{RunId, TaskId};
use std::path::Path;

impl LedgerState {
    /// Whether a run was intended and is not known to have ended.
    #[must_use]
    pub fn is_open(&self, run: &RunId) -> bool {
        self.open_runs.contains_key(run)
    }

    /// The task of an open run.
    #[must_use]
    pub fn task_of_run(&self, run: &RunId) -> Option<TaskId> {
        self.open_runs.get(run)?.task.clone()
    }

    /// Whether some fact says where the task stands.
    #[must_use]
    pub fn knows(&self, task: &TaskId) -> bool {
        self.is_completed(task)
            || self.is_deferred(task)
            || self.is_blocked(task).is_some()
            || self.is_cancelled(task)
            || self.needs_selection(task).is_some()
            || self.in_flight_task(task).is_some()
    }

    /// The newest warnings of the current loop, oldest first.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str)
    }
}

/// The state of a ledger that somebody else may be writing. Takes no lock and changes nothing.
///
/// # Errors
/// As [`read_facts`].
pub fn replay_read_only(state_dir: &Path) -> Result<LedgerState, LedgerError> {
    let mut state = LedgerState::default();
    for fact in read_facts(state_dir, 0) {
        state.apply(&fact?);
    }
    Ok(state)
}
