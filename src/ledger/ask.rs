//! Questions to the state that follows from the facts.

use super::progress::{Blocked, InFlight, RunProgress};
use super::state::LedgerState;
use crate::types::{RunId, TaskId};

impl LedgerState {
    /// The sequence number of the last fact; 0 for none.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The largest fencing token that was ever recorded.
    #[must_use]
    pub fn max_epoch(&self) -> u64 {
        self.max_epoch
    }

    /// Whether a task is done.
    #[must_use]
    pub fn is_completed(&self, task: &TaskId) -> bool {
        self.completed.contains(task)
    }

    /// Whether a task did not pass and may be tried again.
    #[must_use]
    pub fn is_deferred(&self, task: &TaskId) -> bool {
        self.deferred.contains(task)
    }

    /// Whether a person is to choose among a task's branches.
    #[must_use]
    pub fn needs_selection(&self, task: &TaskId) -> bool {
        self.needs_selection.contains(task)
    }

    /// Why a task needs a person, if it does.
    #[must_use]
    pub fn blocked(&self, task: &TaskId) -> Option<&Blocked> {
        self.blocked.get(task)
    }

    /// How many tasks are done.
    #[must_use]
    pub fn completed_count(&self) -> usize {
        self.completed.len()
    }

    /// Blockers since the last completion, or since the loop began.
    #[must_use]
    pub fn consecutive_blockers(&self) -> u32 {
        self.consecutive_blockers
    }

    /// The last 50 warnings of this loop, newest last.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str)
    }

    /// Tasks in flight, by id.
    pub fn in_flight(&self) -> impl Iterator<Item = (&TaskId, &InFlight)> {
        self.in_flight.iter()
    }

    /// Runs that were intended and have not exited, those of no task too.
    pub fn open_runs(&self) -> impl Iterator<Item = (&RunId, &RunProgress)> {
        let of_flights = self.in_flight.values().flat_map(|flight| &flight.runs);
        of_flights
            .filter(|(_, run)| run.exited.is_none())
            .chain(self.loose_runs())
    }

    /// Whether a run was intended and has not exited.
    #[must_use]
    pub fn is_open(&self, run: &RunId) -> bool {
        self.run(run).is_some_and(|r| r.exited.is_none())
    }

    /// The task of a run that is open or whose task is in flight.
    #[must_use]
    pub fn task_of_run(&self, run: &RunId) -> Option<TaskId> {
        self.run(run)?.task.clone()
    }
}
