//! When the loop is over and what its last word is; the guards that end it early.

use super::core::{Core, Out};
use super::event::{Effect, Finish, StopLevel, StopSource};
use super::flight::StopReason;
use super::select::Obstacle;
use crate::config::TaskState;
use crate::ledger::FactBody;
use crate::types::{Decision, Now};

impl Core {
    pub(super) fn check_guards(&mut self, now: Now, out: &mut Out) {
        let limit = self.config.guards.consecutive_blockers;
        if self.ending.is_none() && limit > 0 && self.tally.blockers >= limit {
            let detail = format!("{} blockers since the last completion", self.tally.blockers);
            self.record(
                now,
                out,
                None,
                None,
                FactBody::GuardTripped {
                    guard: "consecutive_blockers".to_owned(),
                    detail: detail.clone(),
                },
            );
            out.push(Effect::Say(format!(
                "guard: {detail}; nothing more is claimed"
            )));
            self.ending = Some(Finish {
                decision: Decision::Blocked,
                exit_code: 1,
                reason: detail,
            });
        }
    }

    pub(super) fn on_loop_wall_clock(&mut self, now: Now, out: &mut Out) {
        if self.halted {
            return;
        }
        let limit = crate::types::format_duration(self.config.guards.wall_clock);
        let reason = format!("the loop's wall clock of {limit} is over");
        self.record(
            now,
            out,
            None,
            None,
            FactBody::GuardTripped {
                guard: "wall_clock".to_owned(),
                detail: reason.clone(),
            },
        );
        out.push(Effect::Say(reason.clone()));
        self.ending = Some(Finish {
            decision: Decision::LimitReached,
            exit_code: 3,
            reason,
        });
        self.halted = true;
        self.stop_children(None, StopReason::Held, false, out);
    }

    pub(super) fn check_finish(&mut self, now: Now, out: &mut Out) {
        // Before the task files are known, nothing can be said to be drained.
        if let Some(finish) = self.finish().filter(|_| self.taken_up) {
            self.finished = true;
            self.record(
                now,
                out,
                None,
                None,
                FactBody::LoopStopped {
                    decision: finish.decision,
                    exit_code: finish.exit_code,
                    reason: finish.reason.clone(),
                },
            );
            out.push(Effect::Finish(finish));
        }
    }

    /// The last word, once nothing is left to wait for.
    fn finish(&self) -> Option<Finish> {
        let busy = self.claiming.is_some()
            || self
                .flights
                .values()
                .any(|f| f.has_child() || f.edge_busy());
        if self.stop.is_some() || self.halted {
            return (!busy).then(|| self.stopped());
        }
        if busy || !self.flights.is_empty() {
            return None;
        }
        if let Some(ending) = &self.ending {
            return Some(ending.clone());
        }
        let limit = self.limit_reached();
        if !self.idle && limit.is_none() {
            return None;
        }
        self.drained(limit)
    }

    fn stopped(&self) -> Finish {
        let left = self.flights.len();
        let tail = if left == 0 {
            String::new()
        } else {
            format!("; {left} tasks in flight go on at the next start")
        };
        match (&self.ending, self.stop) {
            (Some(ending), None) => Finish {
                reason: format!("{}{tail}", ending.reason),
                ..ending.clone()
            },
            (_, stop) => {
                let (level, source) = stop.unwrap_or((StopLevel::Drain, StopSource::Command));
                let how = if level == StopLevel::Drain {
                    "drained"
                } else {
                    "stopped"
                };
                let exit_code = if source == StopSource::Signal { 130 } else { 0 };
                Finish {
                    decision: Decision::Stopped,
                    exit_code,
                    reason: format!("{how} on request{tail}"),
                }
            }
        }
    }

    /// Nothing is in flight and nothing can be claimed: is there something left that could change by itself?
    fn drained(&self, limit: Option<String>) -> Option<Finish> {
        let mut open = 0_usize;
        let mut waiting_for_people = 0_usize;
        let mut can_change = false;
        for spec in self.queue.values().filter(|s| s.state == TaskState::Ready) {
            match self.obstacle(spec) {
                Some(Obstacle::Completed | Obstacle::Cancelled | Obstacle::Hold) => {}
                Some(Obstacle::NeedsSelection) => waiting_for_people += 1,
                Some(Obstacle::Blocked(_) | Obstacle::Deferred(_) | Obstacle::After(_)) => {
                    open += 1;
                }
                Some(Obstacle::InFlightClaim(..) | Obstacle::ForeignClaim(..)) | None => {
                    open += 1;
                    can_change = true;
                }
            }
        }
        let done = self.tally.completed;
        if open + waiting_for_people == 0 {
            let reason = if done == 0 {
                "nothing to do".to_owned()
            } else {
                format!("{done} tasks completed, nothing is left")
            };
            return Some(Finish {
                decision: Decision::Completed,
                exit_code: 0,
                reason,
            });
        }
        if let Some(reason) = limit {
            return Some(Finish {
                decision: Decision::LimitReached,
                exit_code: 3,
                reason,
            });
        }
        if can_change {
            return None;
        }
        let reason = format!(
            "{done} tasks completed, {open} did not, {waiting_for_people} wait for a choice"
        );
        let (decision, exit_code) = match (open, done + self.tally.selections) {
            (0, _) => (Decision::Partial, 0),
            (_, 0) => (Decision::Blocked, 1),
            _ => (Decision::Partial, 1),
        };
        Some(Finish {
            decision,
            exit_code,
            reason,
        })
    }
}
