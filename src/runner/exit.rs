//! How a run ended: the report to the daemon and the `exit.json` that is the same. Decides the outcome's word.

use super::run::StopReason;
use crate::fsx::{self, FsError};
use crate::proc::ExitStatus;
use crate::types::{Outcome, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The end of a run (config §4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    /// The run.
    pub run_id: RunId,
    /// How.
    pub outcome: Outcome,
    /// The child's exit code, when it had one.
    pub exit_code: Option<i32>,
    /// The signal that ended the child, when one did.
    pub signal: Option<i32>,
    /// When the child was started (or would have been).
    pub started_at: Timestamp,
    /// When the last process of its tree was gone.
    pub ended_at: Timestamp,
    /// By a monotonic clock.
    pub duration_ms: u64,
    /// CPU time in user mode of the tree.
    pub user_ms: u64,
    /// CPU time in kernel mode of the tree.
    pub system_ms: u64,
    /// Largest resident size of one process; sampled while the run lives when an earlier run of the
    /// same runner had a larger one.
    pub max_rss_kib: u64,
    /// All it wrote, kept or not.
    pub stdout_bytes: u64,
    /// All it wrote, kept or not.
    pub stderr_bytes: u64,
    /// Whether something was not kept.
    pub truncated: bool,
    /// Processes of the tree that outlived the child and were ended.
    pub stragglers_killed: u32,
    /// What went wrong, for people; empty when nothing did.
    pub detail: String,
}

impl ExitReport {
    /// A report of a run that never had a child.
    #[must_use]
    pub fn without_child(run_id: &RunId, outcome: Outcome, at: Timestamp, detail: String) -> Self {
        Self {
            run_id: run_id.clone(),
            outcome,
            exit_code: None,
            signal: None,
            started_at: at,
            ended_at: at,
            duration_ms: 0,
            user_ms: 0,
            system_ms: 0,
            max_rss_kib: 0,
            stdout_bytes: 0,
            stderr_bytes: 0,
            truncated: false,
            stragglers_killed: 0,
            detail,
        }
    }

    /// The text of `exit.json`: keys sorted, with a final newline.
    #[must_use]
    pub fn exit_json(&self) -> String {
        sorted_json(self)
    }
}

/// Indented, keys sorted at every depth, with a final newline: as all state files are.
pub(super) fn sorted_json(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    format!("{value:#}\n")
}

/// The word for an end: why we stopped it, else how it ended by itself.
#[must_use]
pub fn outcome_of(reason: Option<StopReason>, status: Option<ExitStatus>) -> Outcome {
    match (reason, status) {
        (Some(StopReason::Cancelled), _) => Outcome::Cancelled,
        (Some(StopReason::TimedOut), _) => Outcome::TimedOut,
        (Some(StopReason::Idle), _) => Outcome::Idle,
        (Some(StopReason::OutputLimit), _) => Outcome::OutputLimit,
        (None, Some(ExitStatus::Code(0))) => Outcome::Succeeded,
        (None, Some(ExitStatus::Code(_))) => Outcome::Failed,
        (None, Some(ExitStatus::Signal(_))) => Outcome::Killed,
        (None, None) => Outcome::SpawnFailed,
    }
}

/// `runs/<run-id>/`.
#[must_use]
pub fn run_dir(state_dir: &Path, run_id: &RunId) -> PathBuf {
    state_dir.join("runs").join(run_id.as_str())
}

/// Reads a run's `exit.json`; none when it has none (yet) or it cannot be read as one.
///
/// # Errors
/// [`FsError`] when the file is there and reading fails.
pub fn read_exit(state_dir: &Path, run_id: &RunId) -> Result<Option<ExitReport>, FsError> {
    let bytes = fsx::read(&run_dir(state_dir, run_id).join("exit.json"))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_to_stop_comes_before_the_exit_status() {
        let code = |n| Some(ExitStatus::Code(n));
        for (reason, status, outcome) in [
            (None, code(0), Outcome::Succeeded),
            (None, code(3), Outcome::Failed),
            (None, Some(ExitStatus::Signal(9)), Outcome::Killed),
            (None, None, Outcome::SpawnFailed),
            (Some(StopReason::TimedOut), code(0), Outcome::TimedOut),
            (
                Some(StopReason::Idle),
                Some(ExitStatus::Signal(15)),
                Outcome::Idle,
            ),
            (Some(StopReason::OutputLimit), code(1), Outcome::OutputLimit),
            (Some(StopReason::Cancelled), code(0), Outcome::Cancelled),
            (Some(StopReason::Cancelled), None, Outcome::Cancelled),
        ] {
            assert_eq!(outcome_of(reason, status), outcome, "{reason:?} {status:?}");
        }
    }

    #[test]
    fn exit_json_has_every_key_and_comes_back() {
        let run_id = RunId::new("R1").unwrap();
        let at = Timestamp::from_millis(1);
        let report = ExitReport::without_child(&run_id, Outcome::SpawnFailed, at, "no".into());
        let json: serde_json::Value = serde_json::from_str(&report.exit_json()).unwrap();
        for key in [
            "run_id",
            "outcome",
            "exit_code",
            "signal",
            "started_at",
            "ended_at",
            "duration_ms",
            "user_ms",
            "system_ms",
            "max_rss_kib",
            "stdout_bytes",
            "stderr_bytes",
            "truncated",
            "stragglers_killed",
        ] {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert!(report.exit_json().starts_with("{\n  \"detail\": \"no\",\n"));
        assert_eq!(serde_json::from_value::<ExitReport>(json).unwrap(), report);
    }
}
