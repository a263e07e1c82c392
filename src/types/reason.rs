//! Closed vocabularies: how a run ended, what a role said, what a task waits for, how a loop ended.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How one child process ended (`exit.json`, config §4). Every run has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Exit code 0.
    Succeeded,
    /// A non-zero exit code.
    Failed,
    /// The deadline passed; the tree was stopped.
    TimedOut,
    /// No output and no CPU time for the idle bound; the tree was stopped.
    Idle,
    /// More output than `limits.output_stop` allows; the tree was stopped.
    OutputLimit,
    /// Stopped on request: cancel, stop, estop.
    Cancelled,
    /// Ended by a signal that flockd did not send.
    Killed,
    /// The program could not be started.
    SpawnFailed,
    /// The runner died before it could report; what was left of the tree was swept.
    Lost,
}

impl Outcome {
    /// Whether the machine rather than the agent failed, so that `limits.retries` applies.
    #[must_use]
    pub fn is_infrastructure_failure(self) -> bool {
        matches!(
            self,
            Self::Killed | Self::Lost | Self::SpawnFailed | Self::Idle
        )
    }
}

/// What a role said about its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "reason")]
pub enum Verdict {
    /// The work is good.
    Pass,
    /// The work is not good, and why.
    Fail(String),
    /// The role cannot go on without a person, and why.
    Blocked(String),
}

/// What a waiting task waits for (`status --json`, config §8; promise P6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// Paths another holder has.
    Lease,
    /// A permit under the ceiling M (or a place among the X tasks in flight).
    Slot,
    /// Another task that is not completed.
    Dependency,
    /// A provider's usage limit.
    Quota,
    /// A person.
    Human,
    /// The time until a failed run is tried again.
    Backoff,
}

/// The decision word of a loop (`auto_loop_state.json`, config §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// A loop is at work, or died without a last word.
    Running,
    /// The queue is drained and everything in it is completed.
    Completed,
    /// A target or limit was reached: completions, attempts, time, cost.
    LimitReached,
    /// The queue is drained; something is left that did not complete.
    Partial,
    /// Nothing completed, or a guard stopped the loop.
    Blocked,
    /// A person stopped it.
    Stopped,
}

macro_rules! display_as_serde {
    ($($t:ty),*) => {$(
        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(f)
            }
        }
    )*};
}
display_as_serde!(Outcome, WaitFor, Decision);
