//! What a run is asked to be: the request to a runner and the `spec.json` made of it. Starts nothing.

use crate::types::{LeaseId, RunId, TaskId, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Bounds of a run. Zero is off, except for `grace_ms` (kill at once) and `output_max` (keep nothing).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// From spawn to TERM, milliseconds.
    pub deadline_ms: u64,
    /// Without output and without CPU time of the whole tree, milliseconds.
    pub idle_ms: u64,
    /// TERM to KILL, milliseconds.
    pub grace_ms: u64,
    /// Bytes kept per stream.
    pub output_max: u64,
    /// Bytes per stream that stop the run.
    pub output_stop: u64,
}

/// What a child reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum RunInput {
    /// `/dev/null`.
    #[default]
    Null,
    /// `runs/<run-id>/prompt`, which is there before the request.
    Prompt,
}

/// One child to run: everything a runner needs, the values of its environment included.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Names the folder under `runs/`.
    pub run_id: RunId,
    /// Its task; none for `flockd run`.
    pub task_id: Option<TaskId>,
    /// From 1 to Y.
    pub worker: u32,
    /// The stage's name.
    pub stage: String,
    /// The role's name.
    pub role: String,
    /// From 1.
    pub attempt: u32,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Absolute working directory.
    pub cwd: PathBuf,
    /// The complete environment, in order. Values travel over the socket only; `FLOCKD_TOKEN` is in it.
    pub env: Vec<(String, String)>,
    /// What it reads.
    pub input: RunInput,
    /// Its bounds.
    pub limits: RunLimits,
    /// Slots it costs, at least 1; clamped to `ceiling`.
    pub slots: u32,
    /// M: slot files that may be used.
    pub ceiling: u32,
    /// The lease its runner holds while it lives.
    pub lease_id: Option<LeaseId>,
    /// The lease's fencing token.
    pub lease_epoch: Option<u64>,
    /// What its processes carry in `FLOCKD_TOKEN`.
    pub token: String,
    /// When it was asked for.
    pub created_at: Timestamp,
}

impl fmt::Debug for RunSpec {
    /// Without the values of the environment: they may be secrets and debug output may be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSpec")
            .field("run_id", &self.run_id)
            .field("argv", &self.argv)
            .field("cwd", &self.cwd)
            .field("env_names", &self.env_names())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// `spec.json` as written (config §4): names of the environment, never values, and no token.
#[derive(Debug, Serialize)]
struct SpecFile<'a> {
    argv: &'a [String],
    attempt: u32,
    created_at: Timestamp,
    cwd: &'a PathBuf,
    env_names: Vec<&'a str>,
    input: RunInput,
    lease_epoch: Option<u64>,
    lease_id: Option<&'a LeaseId>,
    limits: RunLimits,
    role: &'a str,
    run_id: &'a RunId,
    slots: u32,
    stage: &'a str,
    task_id: Option<&'a TaskId>,
    worker: u32,
}

impl RunSpec {
    /// Names of the environment's variables.
    #[must_use]
    pub fn env_names(&self) -> Vec<&str> {
        self.env.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The text of `spec.json`: keys sorted, with a final newline.
    #[must_use]
    pub fn spec_json(&self) -> String {
        let file = SpecFile {
            argv: &self.argv,
            attempt: self.attempt,
            created_at: self.created_at,
            cwd: &self.cwd,
            env_names: self.env_names(),
            input: self.input,
            lease_epoch: self.lease_epoch,
            lease_id: self.lease_id.as_ref(),
            limits: self.limits,
            role: &self.role,
            run_id: &self.run_id,
            slots: self.slots,
            stage: &self.stage,
            task_id: self.task_id.as_ref(),
            worker: self.worker,
        };
        super::exit::sorted_json(&file)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn sample() -> RunSpec {
        RunSpec {
            run_id: RunId::new("R1").unwrap(),
            task_id: Some(TaskId::new("T-0001").unwrap()),
            worker: 1,
            stage: "write".into(),
            role: "writer".into(),
            attempt: 1,
            argv: vec!["true".into()],
            cwd: "/".into(),
            env: vec![("SECRET".into(), "hunter2".into())],
            input: RunInput::Null,
            limits: RunLimits {
                deadline_ms: 1_000,
                idle_ms: 0,
                grace_ms: 100,
                output_max: 1 << 20,
                output_stop: 0,
            },
            slots: 1,
            ceiling: 2,
            lease_id: None,
            lease_epoch: None,
            token: "token-of-the-run".into(),
            created_at: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn spec_json_has_every_key_and_no_value_of_the_environment() {
        let text = sample().spec_json();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        for key in [
            "run_id",
            "task_id",
            "worker",
            "stage",
            "role",
            "attempt",
            "argv",
            "cwd",
            "env_names",
            "limits",
            "slots",
            "lease_id",
            "lease_epoch",
            "created_at",
        ] {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert!(!text.contains("hunter2") && !text.contains("token-of-the-run"));
        assert!(!format!("{:?}", sample()).contains("hunter2"));
    }
}
