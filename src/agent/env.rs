//! A child's environment (config §3): a base set, named pass-throughs, and who it is. All else is stripped.

use crate::config::TaskSpec;
use crate::types::RunId;
use std::path::Path;

/// Who a child is, as its environment tells it.
#[derive(Debug, Clone, Copy)]
pub struct RunIdentity<'a> {
    /// The run.
    pub run: &'a RunId,
    /// The task.
    pub task: &'a TaskSpec,
    /// The stage's name.
    pub stage: &'a str,
    /// The role's name.
    pub role: &'a str,
    /// From 1.
    pub worker: u32,
    /// From 1.
    pub attempt: u32,
    /// Where the state lies.
    pub state_dir: &'a Path,
    /// What left-over processes are recognised by.
    pub token: &'a str,
}

/// Passed through when set.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// The complete environment of a child. `lookup` reads the daemon's own environment.
#[must_use]
pub fn child_env(
    identity: &RunIdentity<'_>,
    names: &[String],
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: String| {
        env.retain(|(n, _)| n != name);
        env.push((name.to_owned(), value));
    };
    for name in INHERITED
        .iter()
        .copied()
        .chain(names.iter().map(String::as_str))
    {
        if let Some(value) = lookup(name) {
            set(name, value);
        }
    }
    for (name, value) in [
        ("LC_ALL", "C.UTF-8"),
        ("TERM", "dumb"),
        ("NO_COLOR", "1"),
        ("TZ", "UTC"),
    ] {
        if !names.iter().any(|n| n == name) {
            set(name, value.to_owned());
        }
    }
    let claims: Vec<String> = identity
        .task
        .claims
        .iter()
        .map(|c| c.as_str().to_owned())
        .collect();
    set("FLOCKD_TASK_ID", identity.task.id.to_string());
    set("FLOCKD_TASK_TITLE", identity.task.title.clone());
    set("FLOCKD_CLAIMS", claims.join("\n"));
    set("FLOCKD_RUN_ID", identity.run.to_string());
    set("FLOCKD_STAGE", identity.stage.to_owned());
    set("FLOCKD_ROLE", identity.role.to_owned());
    set("FLOCKD_WORKER", identity.worker.to_string());
    set("FLOCKD_ATTEMPT", identity.attempt.to_string());
    set("FLOCKD_STATE_DIR", identity.state_dir.display().to_string());
    set("FLOCKD_TOKEN", identity.token.to_owned());
    env
}
