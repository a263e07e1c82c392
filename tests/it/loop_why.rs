//! What tasks wait for in a running loop, by `flockd why`, and that each wait ends with its cause.

use crate::common::processes::{alive, kill_9};
use crate::common::{Looping, Sandbox, eventually, text};
use serde_json::Value;
use std::process::Child;
use std::time::{Duration, Instant};

/// From the end of what a task waits for to its start: an event, not a timer, so far below any poll.
const AT_ONCE: Duration = Duration::from_secs(4);

fn detail(why: &Value) -> String {
    text(&why["detail"])
}

fn says(why: &Value, part: &str) {
    assert!(detail(why).contains(part), "{part:?} is not in {why}");
}

fn completes(sandbox: &Sandbox, looping: &mut Looping, tasks: &[&str]) {
    let ended = looping.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(sandbox.tasks_of("task_completed"), tasks);
}

#[test]
fn p6_why_names_a_lease_and_a_dependency() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("[loop]\ntasks = 4\n");
    let gate = sandbox.until_open("gate");
    sandbox.task(
        "a",
        "title = \"A\"\npriority = 1\nclaims = [\"src/\"]",
        &gate,
    );
    sandbox.task("b", "title = \"B\"\nclaims = [\"src/b.rs\"]", "true");
    sandbox.task(
        "c",
        "title = \"C\"\nclaims = [\"c\"]\nafter = [\"a\"]",
        "true",
    );
    let mut looping = Looping::start(&sandbox, &[]);
    sandbox.running(1);
    let why = sandbox.waits_for("b", "lease");
    assert_eq!(why["state"], "waiting");
    says(&why, "src/b.rs is claimed by a");
    says(&sandbox.waits_for("c", "dependency"), "after a");
    let status = sandbox.json(&["status", "--json"]);
    assert_eq!(status["slots"]["used"], 1, "{status}");
    assert_eq!(
        status["waiting"].as_array().map(Vec::len),
        Some(2),
        "{status}"
    );
    sandbox.open_gate("gate");
    completes(&sandbox, &mut looping, &["a", "b", "c"]);
}

#[test]
fn p6_why_names_a_slot() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("[loop]\ntasks = 2\nglobal_concurrency = 1\n");
    let gate = sandbox.until_open("gate");
    for task in ["a", "b", "c"] {
        let header = format!("title = \"{task}\"\nclaims = [\"{task}\"]");
        sandbox.task(task, &header, &gate);
    }
    let mut looping = Looping::start(&sandbox, &[]);
    let runs = sandbox.running(1);
    let first = sandbox.json(&["status", "--json"])["runs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|run| run["run_id"] == runs[0].0.as_str())
        .map(|run| text(&run["task_id"]))
        .unwrap();
    let second = if first == "a" { "b" } else { "a" };
    says(&sandbox.waits_for(second, "slot"), "of the 1 slots");
    says(
        &sandbox.waits_for("c", "slot"),
        "2 of 2 tasks are in flight",
    );
    sandbox.open_gate("gate");
    completes(&sandbox, &mut looping, &["a", "b", "c"]);
}

#[test]
fn p6_why_names_a_back_off_that_holds_no_slot() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("");
    sandbox.task("a", "title = \"A\"", &sandbox.until_open("gate"));
    let mut looping = Looping::start(&sandbox, &[]);
    let (run, pid) = sandbox.running(1).remove(0);
    kill_9(pid);
    let why = sandbox.waits_for("a", "backoff");
    says(&why, "tried again in");
    says(&why, "attempt 2");
    let status = sandbox.json(&["status", "--json"]);
    assert_eq!(status["slots"]["used"], 0, "{status}");
    assert!(alive(&sandbox.state()).is_empty());
    sandbox.open_gate("gate");
    completes(&sandbox, &mut looping, &["a"]);
    let killed = &sandbox.facts_of("run_exited")[0];
    assert_eq!(killed["run"], run.as_str());
    assert_eq!(killed["data"]["outcome"], "killed");
    assert_eq!(killed["data"]["signal"], 9);
    assert_eq!(
        sandbox.facts_of("task_waiting")[0]["data"]["for"],
        "backoff"
    );
}

#[test]
fn p6_why_names_a_person() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("[loop]\ntasks = 3\n");
    sandbox.task(
        "a",
        "title = \"A\"\nclaims = [\"a\"]",
        &sandbox.until_open("gate"),
    );
    sandbox.task("held", "title = \"Held\"\nstate = \"hold\"", "true");
    let asks = "echo 'verdict: blocked which colour'";
    sandbox.task("asks", "title = \"Asks\"\nclaims = [\"asks\"]", asks);
    let mut looping = Looping::start(&sandbox, &[]);
    says(&sandbox.waits_for("held", "human"), "hold");
    let why = sandbox.waits_for("asks", "human");
    assert_eq!(why["state"], "blocked");
    says(&why, "which colour");
    says(&why, "flockd retry asks");
    // The person has answered.
    sandbox.task("asks", "title = \"Asks\"\nclaims = [\"asks\"]", "true");
    sandbox.task("held", "title = \"Held\"\nclaims = [\"held\"]", "true");
    assert_eq!(sandbox.run(&["retry", "asks"]).code, Some(0));
    eventually("what waited for a person is completed", || {
        (sandbox.tasks_of("task_completed") == ["asks", "held"]).then_some(())
    });
    sandbox.open_gate("gate");
    completes(&sandbox, &mut looping, &["a", "asks", "held"]);
}

/// A loop whose only task waits for paths that a command beside it has claimed.
fn claimed_by_a_command(sandbox: &Sandbox) -> (Child, Looping) {
    sandbox.configure_shell("");
    sandbox.task("a", "title = \"A\"\nclaims = [\"src/\"]", "true");
    let hold = sandbox.until_open("gate");
    let words = [
        "lease",
        "claim",
        "--task",
        "editor",
        "src/lib.rs",
        "--",
        "sh",
        "-c",
    ];
    let claimer = sandbox.beside(&[&words[..], &[&hold]].concat());
    eventually("the command runs under its lease", || {
        (alive(&sandbox.state()).len() == 1).then_some(())
    });
    let looping = Looping::start(sandbox, &[]);
    looping.is_up(sandbox);
    let why = sandbox.waits_for("a", "lease");
    says(&why, "is claimed by editor");
    assert!(sandbox.facts_of("task_claimed").is_empty());
    (claimer, looping)
}

fn goes_on_at_once(sandbox: &Sandbox, looping: &mut Looping, since: Instant) {
    eventually("the task is claimed", || {
        (!sandbox.tasks_of("task_claimed").is_empty()).then_some(())
    });
    assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
    completes(sandbox, looping, &["a"]);
}

#[test]
fn p6_why_a_lease_of_a_command_ends_with_the_command() {
    let sandbox = Sandbox::new();
    let (mut claimer, mut looping) = claimed_by_a_command(&sandbox);
    let since = Instant::now();
    sandbox.open_gate("gate");
    goes_on_at_once(&sandbox, &mut looping, since);
    assert!(claimer.wait().unwrap().success());
}

#[test]
fn p6_why_a_lease_of_a_command_ends_with_kill_9_of_the_command() {
    let sandbox = Sandbox::new();
    let (mut claimer, mut looping) = claimed_by_a_command(&sandbox);
    let since = Instant::now();
    for pid in alive(&sandbox.state()).into_values().flatten() {
        kill_9(pid);
    }
    goes_on_at_once(&sandbox, &mut looping, since);
    assert!(!claimer.wait().unwrap().success());
}

#[test]
fn p6_why_a_lease_of_a_command_ends_with_kill_9_of_its_holder() {
    let sandbox = Sandbox::new();
    let (mut claimer, mut looping) = claimed_by_a_command(&sandbox);
    let since = Instant::now();
    claimer.kill().unwrap();
    claimer.wait().unwrap();
    goes_on_at_once(&sandbox, &mut looping, since);
    // What was left of the command is gone, and the next start writes down that its run is lost.
    assert!(alive(&sandbox.state()).is_empty());
    assert_eq!(Looping::start(&sandbox, &[]).ended().code, Some(0));
    sandbox.every_run_ended_once();
}

#[test]
fn p5_what_a_dead_holder_left_is_gone_before_its_paths_are_used() {
    let sandbox = Sandbox::new();
    // Takes the first slot and gives it back: the task below has no reason to look at the second.
    let hold = sandbox.until_open("first");
    let first = sandbox.beside(&["run", "--", "sh", "-c", &hold]);
    eventually("the first slot is taken", || {
        (alive(&sandbox.state()).len() == 1).then_some(())
    });
    let hold = sandbox.until_open("never");
    let words = [
        "lease", "claim", "--task", "editor", "src/", "--", "sh", "-c",
    ];
    let mut claimer = sandbox.beside(&[&words[..], &[&hold]].concat());
    eventually("the command runs under its lease", || {
        (alive(&sandbox.state()).len() == 2).then_some(())
    });
    sandbox.configure_shell("");
    let script = sandbox.until_open("gate");
    sandbox.task("a", "title = \"A\"\nclaims = [\"src/\"]", &script);
    let mut looping = Looping::start(&sandbox, &[]);
    looping.is_up(&sandbox);
    sandbox.waits_for("a", "lease");
    sandbox.open_gate("first");
    assert!(first.wait_with_output().unwrap().status.success());
    claimer.kill().unwrap();
    claimer.wait().unwrap();
    sandbox.running(1);
    assert_eq!(
        alive(&sandbox.state()).len(),
        1,
        "only the task's own run is alive"
    );
    sandbox.open_gate("gate");
    completes(&sandbox, &mut looping, &["a"]);
}
