//! What follows from the facts: who is done, who is in flight, who is blocked. Pure; the live loop
//! and recovery build it by the same [`LedgerState::apply`].

use super::fact::LoopSettings;
use super::ordered::Ordered;
use super::progress::{EndedCycle, InFlight, OpenRun};
use crate::types::{Decision, RunId, TaskId, Timestamp, WaitFor};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Ended cycles, blockers and warnings that are kept for the view.
pub(super) const KEPT: usize = 50;
/// Completed, deferred and blocked ids that the view shows, so that its size has a bound.
pub(super) const IDS_SHOWN: usize = 1_000;
/// Changed files kept per ended cycle: more than a person reads in a view; `TaskCompleted` has all.
pub(super) const FILES_KEPT: usize = 200;

/// Why and how often a task was blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedInfo {
    /// The last reason, for people.
    pub reason: String,
    /// Blockers of this task since it last completed or was retried, this one included.
    pub count: u32,
    /// Since when, for people.
    pub at: Timestamp,
}

/// Why a task was put off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeferredInfo {
    /// The last reason, for people.
    pub reason: String,
    /// Whether the last one counted as a blocker.
    pub blocker: bool,
    /// Since when, for people.
    pub at: Timestamp,
}

/// What a task said it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingInfo {
    /// What for.
    pub wait_for: WaitFor,
    /// One sentence for people.
    pub detail: String,
    /// Since when, for people.
    pub at: Timestamp,
}

/// How many tasks are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Completed ever and not retried since.
    pub completed: usize,
    /// Deferred now.
    pub deferred: usize,
    /// Blocked now.
    pub blocked: usize,
    /// Cancelled and not retried since.
    pub cancelled: usize,
    /// Waiting for a person to choose a branch.
    pub needs_selection: usize,
    /// Claimed and not ended.
    pub in_flight: usize,
    /// Completed since the last loop started.
    pub completed_this_loop: u32,
    /// Claimed since the last loop started.
    pub claimed_this_loop: u32,
}

/// The state after a fact. Memory per finished task: its id in a set.
///
/// `apply` takes every fact of every released version in any order; odd ones (an end without a
/// beginning, a repetition) change little or nothing and never panic.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LedgerState {
    pub(super) last_seq: u64,
    pub(super) last_at: Timestamp,
    pub(super) decision: Option<Decision>,
    pub(super) settings: Option<LoopSettings>,
    pub(super) completed: HashSet<TaskId>,
    /// The newest completed ids, for the view.
    pub(super) completed_newest: VecDeque<TaskId>,
    pub(super) deferred: Ordered<DeferredInfo>,
    pub(super) blocked: Ordered<BlockedInfo>,
    pub(super) cancelled: Ordered<()>,
    pub(super) selections: Ordered<Vec<String>>,
    pub(super) waiting: Ordered<WaitingInfo>,
    pub(super) blockers_per_task: HashMap<TaskId, u32>,
    pub(super) consecutive_blockers: u32,
    pub(super) completed_this_loop: u32,
    pub(super) claimed_this_loop: u32,
    pub(super) in_flight: BTreeMap<TaskId, InFlight>,
    pub(super) open_runs: BTreeMap<RunId, OpenRun>,
    pub(super) ended: VecDeque<EndedCycle>,
    pub(super) blockers: VecDeque<String>,
    pub(super) warnings: VecDeque<String>,
    pub(super) epoch_max: u64,
}

impl LedgerState {
    /// The sequence number of the last applied fact; 0 before the first.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The decision of the last loop; none before the first.
    #[must_use]
    pub fn decision(&self) -> Option<Decision> {
        self.decision
    }

    /// The settings of the last loop; none before the first.
    #[must_use]
    pub fn settings(&self) -> Option<&LoopSettings> {
        self.settings.as_ref()
    }

    /// Whether a task is done.
    #[must_use]
    pub fn is_completed(&self, task: &TaskId) -> bool {
        self.completed.contains(task)
    }

    /// Whether a task did not pass and was not claimed since.
    #[must_use]
    pub fn is_deferred(&self, task: &TaskId) -> bool {
        self.deferred.contains(task)
    }

    /// Why a deferred task is.
    #[must_use]
    pub fn deferred(&self, task: &TaskId) -> Option<&DeferredInfo> {
        self.deferred.get(task)
    }

    /// Deferred tasks in the order in which they were deferred.
    pub fn all_deferred(&self) -> impl Iterator<Item = (&TaskId, &DeferredInfo)> {
        self.deferred.iter()
    }

    /// Why a task needs a person; none when it does not.
    #[must_use]
    pub fn is_blocked(&self, task: &TaskId) -> Option<&BlockedInfo> {
        self.blocked.get(task)
    }

    /// Blocked tasks in the order in which they were blocked.
    pub fn all_blocked(&self) -> impl Iterator<Item = (&TaskId, &BlockedInfo)> {
        self.blocked.iter()
    }

    /// Whether a task was cancelled and not retried since.
    #[must_use]
    pub fn is_cancelled(&self, task: &TaskId) -> bool {
        self.cancelled.contains(task)
    }

    /// The branches among which a person has to choose; none when nobody has to.
    #[must_use]
    pub fn needs_selection(&self, task: &TaskId) -> Option<&[String]> {
        self.selections.get(task).map(Vec::as_slice)
    }

    /// What a task waits for as the last `task_waiting` said; cleared by what happens to it next.
    #[must_use]
    pub fn waiting(&self, task: &TaskId) -> Option<&WaitingInfo> {
        self.waiting.get(task)
    }

    /// Tasks that wait, in the order in which they began to.
    pub fn all_waiting(&self) -> impl Iterator<Item = (&TaskId, &WaitingInfo)> {
        self.waiting.iter()
    }

    /// Blockers of a task since it last completed or was retried.
    #[must_use]
    pub fn blockers_of(&self, task: &TaskId) -> u32 {
        self.blockers_per_task.get(task).copied().unwrap_or(0)
    }

    /// Blockers of any task since the last completion of this loop. A deferral that is no blocker
    /// (a lease conflict, a stop) neither counts nor resets.
    #[must_use]
    pub fn consecutive_blockers(&self) -> u32 {
        self.consecutive_blockers
    }

    /// Tasks that were claimed and have not ended, by id.
    pub fn in_flight(&self) -> impl Iterator<Item = (&TaskId, &InFlight)> {
        self.in_flight.iter()
    }

    /// A task in flight.
    #[must_use]
    pub fn in_flight_task(&self, task: &TaskId) -> Option<&InFlight> {
        self.in_flight.get(task)
    }

    /// Runs that were intended and have no recorded end, those without a task included.
    pub fn open_runs(&self) -> impl Iterator<Item = (&RunId, &OpenRun)> {
        self.open_runs.iter()
    }

    /// The highest fencing token that a fact carries: the next lease's has to be higher.
    #[must_use]
    pub fn epoch_max(&self) -> u64 {
        self.epoch_max
    }

    /// How many tasks are where.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            completed: self.completed.len(),
            deferred: self.deferred.len(),
            blocked: self.blocked.len(),
            cancelled: self.cancelled.len(),
            needs_selection: self.selections.len(),
            in_flight: self.in_flight.len(),
            completed_this_loop: self.completed_this_loop,
            claimed_this_loop: self.claimed_this_loop,
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
