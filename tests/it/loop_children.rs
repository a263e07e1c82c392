//! Children that misbehave, in one loop with others that do not: each spoils its own run and nothing else.

use crate::common::processes::alive;
use crate::common::{Looping, Sandbox, text};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is kept of a stream.
const OUTPUT_MAX: u64 = 64 << 10;

/// What a flooding agent writes.
const FLOOD: u64 = 8 << 20;

/// A loop over one task per script, each tried once; ends when all have been.
fn loop_over(scripts: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.configure_fake_agent(
        "[loop]\ntasks = 3\nmax_attempts = 100\nmax_completed = 100\n\n\
         [guards]\ntask_blockers = 1\nconsecutive_blockers = 100\n\n\
         [limits]\ndeadline = \"6s\"\ngrace = \"500ms\"\nretries = 0\noutput_max = \"64KiB\"\n",
    );
    for (task, steps) in scripts {
        let header = format!("title = \"{task}\"\nclaims = [\"{task}\"]");
        sandbox.task(task, &header, &format!("agent: {steps}"));
    }
    sandbox
}

/// The only end of the task's run.
fn end_of(sandbox: &Sandbox, task: &str) -> Value {
    let mut ends = sandbox.facts_of("run_exited");
    ends.retain(|fact| fact["task"] == task);
    assert_eq!(ends.len(), 1, "{task}: {ends:?}");
    ends.remove(0)["data"].take()
}

fn kept(sandbox: &Sandbox, task: &str) -> u64 {
    let mut runs = sandbox.facts_of("run_exited");
    runs.retain(|fact| fact["task"] == task);
    let folder = sandbox.state().join("runs").join(text(&runs[0]["run"]));
    std::fs::metadata(folder.join("stdout.log")).unwrap().len()
}

#[test]
fn p7_one_bad_child_spoils_one_run() {
    let flood = format!("flood --stdout {FLOOD} --stderr {FLOOD}");
    let scripts = [
        ("dies", "print begun ; die-mid-line"),
        ("floods", flood.as_str()),
        (
            "forks",
            "double-fork hang ; setsid-child ignore-term,hang ; fork 3 ; exit 0",
        ),
        ("good-1", "write good-1 done"),
        ("good-2", "write good-2 done ; verdict pass"),
        (
            "good-3",
            "print a ; close-stdin ; close-output ; write good-3 done",
        ),
        ("hangs", "hang"),
        ("ignores", "ignore-term ; fork 2 ignore-term,hang ; hang"),
        ("lies", "verdict pass ; exit 3"),
        ("terms", "signal-self 15"),
    ];
    let sandbox = loop_over(&scripts);
    let ended = Looping::start(&sandbox, &[]).ended();
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    let outcomes: BTreeMap<&str, String> = scripts
        .iter()
        .map(|(task, _)| (*task, text(&end_of(&sandbox, task)["outcome"])))
        .collect();
    let expected = [
        ("dies", "killed"),
        ("floods", "succeeded"),
        ("forks", "succeeded"),
        ("good-1", "succeeded"),
        ("good-2", "succeeded"),
        ("good-3", "succeeded"),
        ("hangs", "timed_out"),
        ("ignores", "timed_out"),
        ("lies", "failed"),
        ("terms", "killed"),
    ];
    let expected = expected.map(|(task, outcome)| (task, outcome.to_owned()));
    assert_eq!(outcomes, expected.into());
    let good = ["floods", "forks", "good-1", "good-2", "good-3"];
    assert_eq!(sandbox.tasks_of("task_completed"), good);
    let bad = ["dies", "hangs", "ignores", "lies", "terms"];
    assert_eq!(sandbox.tasks_of("task_blocked"), bad);
    assert!(alive(&sandbox.state()).is_empty());
    details(&sandbox);
    sandbox.every_run_ended_once();
    sandbox.verify();
}

/// What else is known of some of these ends.
fn details(sandbox: &Sandbox) {
    let lies = end_of(sandbox, "lies");
    assert_eq!(lies["exit_code"], 3);
    assert_eq!(lies["verdict"]["verdict"], "fail", "{lies}");
    assert_eq!(end_of(sandbox, "dies")["signal"], 9);
    assert_eq!(end_of(sandbox, "terms")["signal"], 15);
    let floods = end_of(sandbox, "floods");
    assert_eq!(floods["stdout_bytes"], FLOOD);
    assert_eq!(floods["stderr_bytes"], FLOOD);
    assert_eq!(floods["truncated"], true);
    let kept = kept(sandbox, "floods");
    assert!((OUTPUT_MAX..OUTPUT_MAX + 1024).contains(&kept), "{kept}");
    // The double-forked one, the one in a session of its own, and three plain children.
    assert_eq!(end_of(sandbox, "forks")["stragglers_killed"], 5);
    let ignores = end_of(sandbox, "ignores");
    let took = ignores["duration_ms"].as_u64().unwrap();
    assert!(
        took >= 6500,
        "deadline and grace come before KILL: {ignores}"
    );
    for task in ["good-1", "good-2", "good-3"] {
        let file = format!("flockd/{task}.1:{task}");
        assert_eq!(sandbox.git(&["show", &file]), "done\n");
    }
}
