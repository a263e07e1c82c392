//! The answers to "what is going on?" and "why does this task wait?" (P6), from the core's own state.

use super::core::Core;
use super::flight::{Call, CallState, Flight};
use super::select::Obstacle;
use crate::types::{Now, TaskId, WaitFor};

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Ready, not claimed.
    Queued,
    /// In flight with a child alive, or with flockd at work for it.
    Running,
    /// In flight or queued, and something must happen first.
    Waiting,
    /// Parked for a person.
    Blocked,
    /// Done.
    Completed,
    /// Failed; may be tried again by the next loop or by `retry`.
    Deferred,
    /// Taken out by command.
    Cancelled,
    /// Kept back by its file.
    Held,
    /// No such task.
    Unknown,
}

/// Where a task stands, what it waits for and one sentence that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// Where it stands.
    pub standing: Standing,
    /// What must happen first.
    pub waits_for: Option<WaitFor>,
    /// One sentence.
    pub detail: String,
}

fn why(standing: Standing, waits_for: Option<WaitFor>, detail: impl Into<String>) -> Why {
    Why {
        standing,
        waits_for,
        detail: detail.into(),
    }
}

impl Core {
    /// Where a task stands and why.
    #[must_use]
    pub fn why(&self, id: &TaskId, now: Now) -> Why {
        if let Some(flight) = self.flights.get(id) {
            return self.why_in_flight(flight, now);
        }
        if self.claiming.as_ref() == Some(id) {
            return why(Standing::Running, None, "its paths are being claimed");
        }
        let Some(spec) = self.queue.get(id) else {
            return match () {
                () if self.book.is_completed(id) => {
                    why(Standing::Completed, None, "completed; its file is gone")
                }
                () if self.book.is_cancelled(id) => {
                    why(Standing::Cancelled, None, "cancelled; its file is gone")
                }
                () => why(
                    Standing::Unknown,
                    None,
                    format!("no task {id}: no valid file of that name in the task folder"),
                ),
            };
        };
        match self.obstacle(spec) {
            Some(obstacle) => self.why_obstacle(id, obstacle),
            None => self.why_queued(),
        }
    }

    fn why_queued(&self) -> Why {
        if let Some(held) = self.why_held() {
            return held;
        }
        if let Some(ending) = &self.ending {
            return why(
                Standing::Queued,
                None,
                format!("this loop claims nothing more: {}", ending.reason),
            );
        }
        if self.stop.is_some() {
            return why(
                Standing::Queued,
                None,
                "the loop is stopping; the next one claims it",
            );
        }
        if let Some(limit) = self.limit_reached() {
            return why(
                Standing::Queued,
                None,
                format!("this loop claims nothing more: {limit}"),
            );
        }
        let (used, max) = (self.flights.len(), self.tasks_max());
        if used >= max {
            return why(
                Standing::Waiting,
                Some(WaitFor::Slot),
                format!("{used} of {max} tasks are in flight (loop.tasks)"),
            );
        }
        why(Standing::Queued, None, "it is next or close to it")
    }

    fn why_obstacle(&self, id: &TaskId, obstacle: Obstacle) -> Why {
        match obstacle {
            Obstacle::Completed => why(Standing::Completed, None, "completed"),
            Obstacle::Cancelled => why(
                Standing::Cancelled,
                None,
                format!("cancelled; `flockd retry {id}` brings it back"),
            ),
            Obstacle::Hold => why(
                Standing::Held,
                Some(WaitFor::Human),
                "its file says state = \"hold\"",
            ),
            Obstacle::NeedsSelection => why(
                Standing::Waiting,
                Some(WaitFor::Human),
                format!(
                    "needs human selection: compare the branches flockd/{id}.*, merge one or `flockd retry {id}`"
                ),
            ),
            Obstacle::Blocked(reason) => why(
                Standing::Blocked,
                Some(WaitFor::Human),
                format!("{reason}; `flockd retry {id}` tries again"),
            ),
            Obstacle::Deferred(reason) => why(
                Standing::Deferred,
                Some(WaitFor::Human),
                format!("{reason}; the next loop tries again, or `flockd retry {id}`"),
            ),
            Obstacle::After(missing) => {
                let names: Vec<String> = missing
                    .iter()
                    .map(|m| {
                        if self.queue.contains_key(m) {
                            m.to_string()
                        } else {
                            format!("{m} (no such task)")
                        }
                    })
                    .collect();
                why(
                    Standing::Waiting,
                    Some(WaitFor::Dependency),
                    format!("after {}", names.join(", ")),
                )
            }
            Obstacle::InFlightClaim(task, path) => why(
                Standing::Waiting,
                Some(WaitFor::Lease),
                format!("{} is claimed by {task}, which is in flight", shown(&path)),
            ),
            Obstacle::ForeignClaim(task, path) => why(
                Standing::Waiting,
                Some(WaitFor::Lease),
                format!(
                    "{} is claimed by {task} (`flockd lease list`)",
                    shown(&path)
                ),
            ),
        }
    }

    fn why_held(&self) -> Option<Why> {
        let way_out = match self.markers {
            m if m.estop => "emergency stop is on: `flockd thaw` goes on",
            m if m.paused => "dispatch is paused: `flockd resume` goes on",
            _ => return None,
        };
        Some(why(Standing::Waiting, Some(WaitFor::Human), way_out))
    }

    fn why_in_flight(&self, flight: &Flight, now: Now) -> Why {
        let calls = || flight.workers.iter().flat_map(|w| &w.calls);
        let running: Vec<&str> = calls()
            .filter(|c| matches!(c.state, CallState::Running { .. }))
            .map(|c| c.role.as_str())
            .collect();
        if !running.is_empty() {
            return why(
                Standing::Running,
                None,
                format!("running: {}", running.join(", ")),
            );
        }
        if let Some(held) = self.why_held() {
            return held;
        }
        let waits = |c: &&Call| {
            matches!(
                c.state,
                CallState::AwaitingSlot { .. }
                    | CallState::Launched {
                        slot_busy: true,
                        ..
                    }
            )
        };
        if let Some(call) = calls().find(waits) {
            let m = self.config.loop_.global_concurrency;
            return why(
                Standing::Waiting,
                Some(WaitFor::Slot),
                format!(
                    "{} needs {} of the {m} slots and they are in use",
                    call.role, call.slots
                ),
            );
        }
        if let Some((call, until)) = calls().find_map(|c| match c.state {
            CallState::Backoff { until } => Some((c, until)),
            _ => None,
        }) {
            let left = until.saturating_sub(now.mono).as_secs();
            return why(
                Standing::Waiting,
                Some(WaitFor::Backoff),
                format!(
                    "{} is tried again in {left} s (attempt {})",
                    call.role, call.attempt
                ),
            );
        }
        if flight.lease.is_none() {
            return why(
                Standing::Waiting,
                Some(WaitFor::Lease),
                "its lease is being taken over after a restart",
            );
        }
        why(
            Standing::Running,
            None,
            "flockd is preparing or keeping its worktree",
        )
    }
}

/// A claimed path for people.
fn shown(path: &str) -> &str {
    if path == "." {
        "the whole repository"
    } else {
        path
    }
}
