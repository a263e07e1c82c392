//! Which task is next: priority, dependencies, claims, what was tried before. Pure.

use super::core::Core;
use crate::config::{TaskSpec, TaskState};
use crate::types::TaskId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What stands between a queued task and its claim, in the order in which it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Obstacle {
    Completed,
    Cancelled,
    Hold,
    NeedsSelection,
    /// Parked: too many failures, or tried already in this loop.
    Blocked(String),
    /// Failed, and its one retry of this loop is used up.
    Deferred(String),
    /// These tasks are not completed yet.
    After(Vec<TaskId>),
    /// A task in flight has overlapping paths.
    InFlightClaim(TaskId, String),
    /// Somebody outside this loop has them.
    ForeignClaim(String, String),
}

impl Core {
    /// The next task to claim: the best fresh one, else the best deferred one (behaviour 72).
    pub(super) fn next_task(&self) -> Option<(Arc<TaskSpec>, bool)> {
        let mut retry = None;
        for (_, id) in &self.order {
            let Some(spec) = self.queue.get(id) else {
                continue;
            };
            if self.flights.contains_key(id) || self.obstacle(spec).is_some() {
                continue;
            }
            if !self.is_retry(id) {
                return Some((Arc::clone(spec), false));
            }
            if retry.is_none() {
                retry = Some((Arc::clone(spec), true));
            }
        }
        retry
    }

    pub(super) fn is_retry(&self, id: &TaskId) -> bool {
        self.attempted.contains_key(id)
            || self.book.is_deferred(id)
            || self.book.is_blocked(id).is_some()
    }

    /// Why a queued task cannot be claimed now; none: it can.
    pub(super) fn obstacle(&self, spec: &TaskSpec) -> Option<Obstacle> {
        let id = &spec.id;
        if self.book.is_completed(id) {
            return Some(Obstacle::Completed);
        }
        if self.book.is_cancelled(id) {
            return Some(Obstacle::Cancelled);
        }
        if self.book.needs_selection(id).is_some() {
            return Some(Obstacle::NeedsSelection);
        }
        if spec.state == TaskState::Hold {
            return Some(Obstacle::Hold);
        }
        let tried = self.attempted.get(id).copied().unwrap_or(0);
        if let Some(blocked) = self.book.is_blocked(id) {
            if tried > 0 || blocked.count >= self.config.guards.task_blockers {
                return Some(Obstacle::Blocked(blocked.reason.clone()));
            }
        } else if self.book.is_deferred(id) && tried > self.tries_before_rest(id) {
            return Some(Obstacle::Deferred(
                self.book
                    .deferred(id)
                    .map(|d| d.reason.clone())
                    .unwrap_or_default(),
            ));
        }
        let missing: Vec<TaskId> = spec
            .after
            .iter()
            .filter(|dep| !self.book.is_completed(dep))
            .cloned()
            .collect();
        if !missing.is_empty() {
            return Some(Obstacle::After(missing));
        }
        for flight in self.flights.values() {
            if let Some((mine, _)) = spec.claims.overlap_with(&flight.spec.claims) {
                return Some(Obstacle::InFlightClaim(
                    flight.id().clone(),
                    mine.as_str().to_owned(),
                ));
            }
        }
        self.conflicts
            .get(id)
            .map(|c| Obstacle::ForeignClaim(c.task.clone(), c.path.clone()))
    }

    /// How often a failing task may have been tried in this loop before it rests: once as a fresh
    /// task and once more; a task that came deferred from an earlier loop is tried once.
    fn tries_before_rest(&self, id: &TaskId) -> u32 {
        u32::from(!self.came_deferred.contains(id))
    }
}

/// The order in which a plain sequential loop would claim these tasks, if all went well; what is left
/// over waits for ever and comes second. For `start --dry-run`.
#[must_use]
pub fn plan_order(
    tasks: &[TaskSpec],
    completed: &dyn Fn(&TaskId) -> bool,
) -> (Vec<TaskId>, Vec<TaskId>) {
    let mut open: BTreeMap<(std::cmp::Reverse<i64>, TaskId), &TaskSpec> = tasks
        .iter()
        .filter(|t| t.state == TaskState::Ready && !completed(&t.id))
        .map(|t| ((std::cmp::Reverse(t.priority), t.id.clone()), t))
        .collect();
    let mut planned: Vec<TaskId> = Vec::new();
    while let Some(key) = open
        .iter()
        .find(|(_, t)| t.after.iter().all(|d| completed(d) || planned.contains(d)))
        .map(|(key, _)| key.clone())
    {
        open.remove(&key);
        planned.push(key.1);
    }
    (planned, open.into_keys().map(|(_, id)| id).collect())
}
