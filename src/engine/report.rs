//! What the core tells about itself besides one task's why: runs, standings, progress.

use super::core::Core;
use super::flight::{Call, CallState, CallStateName, StopReason};
use super::why::Why;
use crate::types::{Now, RunId, TaskId};

/// One run that is alive or about to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub run: RunId,
    /// Its task.
    pub task: TaskId,
    /// Its worker.
    pub worker: u32,
    /// Its stage.
    pub stage: String,
    /// Its role.
    pub role: String,
    /// How far it is.
    pub state: CallStateName,
    /// Once it exists.
    pub pid: Option<u32>,
    /// Since it exists.
    pub elapsed_ms: u64,
}

impl Core {
    /// Every run that is alive or waits for its permit.
    #[must_use]
    pub fn run_rows(&self, now: Now) -> Vec<RunRow> {
        let mut rows = Vec::new();
        for flight in self.flights.values() {
            for worker in &flight.workers {
                let stage = flight
                    .stages
                    .get(worker.stage_ix)
                    .map(|s| s.name.clone())
                    .unwrap_or_default();
                for call in &worker.calls {
                    let Some(run) = call.run() else { continue };
                    let (pid, elapsed) = match &call.state {
                        CallState::Running { pid, since, .. } => {
                            (Some(*pid), now.mono.saturating_sub(*since))
                        }
                        _ => (None, std::time::Duration::ZERO),
                    };
                    rows.push(RunRow {
                        run: run.clone(),
                        task: flight.id().clone(),
                        worker: worker.no,
                        stage: stage.clone(),
                        role: call.role.clone(),
                        state: state_name(call),
                        pid,
                        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                    });
                }
            }
        }
        rows
    }

    /// Where every known task stands: for counts and lists.
    #[must_use]
    pub fn standings(&self, now: Now) -> Vec<(TaskId, Why)> {
        self.queue
            .keys()
            .map(|id| (id.clone(), self.why(id, now)))
            .collect()
    }

    /// The task that would be claimed next.
    #[must_use]
    pub fn next_task_id(&self) -> Option<TaskId> {
        self.next_task().map(|(spec, _)| spec.id.clone())
    }
}

fn state_name(call: &Call) -> CallStateName {
    match call.state {
        CallState::AwaitingSlot { .. } => CallStateName::AwaitingSlot,
        _ if call.stop.is_some_and(|s| s >= StopReason::BatchDecided) => CallStateName::Stopping,
        CallState::Running { .. } => CallStateName::Running,
        _ => CallStateName::Starting,
    }
}

/// How far a loop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Completions of this loop.
    pub completed: u32,
    /// Claims of this loop.
    pub claims: u32,
    /// Blockers since the last completion.
    pub blockers: u32,
    /// The marker files.
    pub markers: super::event::Markers,
    /// X and Y are 1.
    pub parallelism_kill: bool,
    /// Nothing more is claimed.
    pub stopping: bool,
}

impl Core {
    /// How far the loop is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            completed: self.tally.completed,
            claims: self.tally.claims,
            blockers: self.tally.blockers,
            markers: self.markers,
            parallelism_kill: self.parallelism_killed(),
            stopping: self.stop.is_some() || self.ending.is_some(),
        }
    }

    /// What this loop completed, in order, and on which branches.
    pub fn completed_here(&self) -> impl Iterator<Item = (&TaskId, &Vec<String>)> {
        self.done.iter().map(|(task, branches)| (task, branches))
    }

    /// Whether a task has a file or a fact.
    #[must_use]
    pub fn knows(&self, id: &TaskId) -> bool {
        self.queue.contains_key(id) || self.flights.contains_key(id) || self.book.knows(id)
    }

    /// Whether a task is in flight.
    #[must_use]
    pub fn is_in_flight(&self, id: &TaskId) -> bool {
        self.flights.contains_key(id)
    }

    /// Tasks completed by this loop and all before it.
    #[must_use]
    pub fn completed_ever(&self) -> u32 {
        u32::try_from(self.book.counts().completed).unwrap_or(u32::MAX)
    }

    /// The sequence number of the newest fact asked for; an answer is sent once it is durable.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.book.last_seq()
    }

    /// Blockers counted against a task.
    #[must_use]
    pub fn blockers_of(&self, id: &TaskId) -> u32 {
        self.book.blockers_of(id)
    }

    /// The newest warnings, oldest first.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.book.warnings().map(str::to_owned).collect()
    }

    /// Every task with a file, what would be claimed first comes first.
    #[must_use]
    pub fn queue_order(&self) -> Vec<&crate::config::TaskSpec> {
        let mut all: Vec<_> = self.queue.values().map(AsRef::as_ref).collect();
        all.sort_by_key(|spec| std::cmp::Reverse(spec.priority));
        all
    }
}

#[cfg(test)]
impl Core {
    /// How many tasks a look for the next one may have to look at.
    pub(super) fn candidates(&self) -> usize {
        self.order.len()
    }
}
