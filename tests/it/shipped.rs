//! `make start` as it ships: the loop of this repository over its own tasks, with the real program.

use crate::common::{copy_of_repository, flockd};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The facts in order.
fn facts(state: &Path) -> Vec<Value> {
    let mut segments: Vec<_> = fs::read_dir(state.join("ledger"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    segments.sort();
    let text: String = segments
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The sequence number of the first such fact.
fn seq(facts: &[Value], kind: &str, task: &str) -> u64 {
    let found = facts
        .iter()
        .find(|fact| fact["kind"] == kind && fact["task"] == task);
    found.unwrap_or_else(|| panic!("no {kind} of {task}"))["seq"]
        .as_u64()
        .unwrap()
}

/// How many runs are alive at once, at most, among those that `counts`.
fn most_at_once(facts: &[Value], counts: impl Fn(&str) -> bool) -> usize {
    let mut roles = std::collections::BTreeMap::new();
    let (mut alive, mut most) = (BTreeSet::new(), 0);
    for fact in facts {
        let run = fact["run"].as_str().unwrap_or_default().to_owned();
        match fact["kind"].as_str().unwrap() {
            "run_intended" => {
                drop(roles.insert(run, fact["data"]["role"].as_str().unwrap().to_owned()));
            }
            "run_started" if counts(&roles[&run]) => drop(alive.insert(run)),
            "run_exited" => drop(alive.remove(&run)),
            _ => {}
        }
        most = most.max(alive.len());
    }
    most
}

fn start(folder: &Path) {
    let output = Command::new(flockd())
        .arg("start")
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn behaviour_058_the_shipped_loop_completes_its_tasks_in_worktrees() {
    let folder = copy_of_repository();
    start(folder.path());
    let tasks: BTreeSet<String> = fs::read_dir(folder.path().join("tasks"))
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .into_owned()
        })
        .collect();

    let git = |words: &[&str]| {
        let output = Command::new("git")
            .args(words)
            .current_dir(folder.path())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let branches = git(&[
        "for-each-ref",
        "--format=%(refname:lstrip=3)",
        "refs/heads/flockd/",
    ]);
    let worked: BTreeSet<String> = branches
        .lines()
        .map(|b| b.trim_end_matches(".1").to_owned())
        .collect();
    assert_eq!(worked, tasks, "a branch for every task");
    assert_eq!(
        git(&["status", "--porcelain"]),
        "",
        "the user's checkout is untouched"
    );
    let changed = git(&["diff", "--name-only", "HEAD", "flockd/make-targets.1"]);
    assert_eq!(changed, "docs/generated/make.md\n");

    let state = folder.path().join("state");
    let view: Value =
        serde_json::from_slice(&fs::read(state.join("auto_loop_state.json")).unwrap()).unwrap();
    assert_eq!(view["decision"], "completed");
    assert_eq!(view["completed_count"].as_u64(), Some(tasks.len() as u64));
    let leases: Value =
        serde_json::from_slice(&fs::read(state.join("leases.json")).unwrap()).unwrap();
    assert_eq!(leases["leases"], Value::Array(Vec::new()));

    let facts = facts(&state);
    assert!(
        seq(&facts, "task_claimed", "promised-tests") > seq(&facts, "task_completed", "decisions")
    );
    let overlap = seq(&facts, "task_claimed", "modules")
        < seq(&facts, "task_completed", "module-sizes")
        && seq(&facts, "task_claimed", "module-sizes") < seq(&facts, "task_completed", "modules");
    assert!(
        !overlap,
        "two tasks that claim the same file never run together"
    );
    assert!(
        most_at_once(&facts, |_| true) <= 4,
        "the ceiling of flockd.toml"
    );
}
