//! Daemons and runners that are killed: what ran goes on or is swept, and nothing is done twice.

use crate::common::processes::{alive, kill_9, runners};
use crate::common::{Looping, Sandbox, eventually, text};
use std::collections::BTreeSet;

/// Tasks that run side by side.
const TASKS: usize = 3;

/// Lines that each agent writes: half of them before the gate is open, half of them after.
const LINES: usize = 400;

/// Tasks whose agents write their lines and, at their end, their name into `done`.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.configure_shell(&format!("[loop]\ntasks = {TASKS}\n"));
    let half = LINES / 2;
    let script = format!(
        "seq 1 {half}\n{}\nseq {} {LINES}\necho $FLOCKD_TASK_ID >> {}\n",
        sandbox.until_open("gate"),
        half + 1,
        sandbox.gate("done").display()
    );
    for n in 1..=TASKS {
        let header = format!("title = \"Task {n}\"\nclaims = [\"file-{n}\"]");
        sandbox.task(&format!("task-{n}"), &header, &script);
    }
    sandbox
}

fn tasks() -> Vec<String> {
    (1..=TASKS).map(|n| format!("task-{n}")).collect()
}

/// Every agent has written its first half.
fn all_wait_at_the_gate(sandbox: &Sandbox) -> Vec<(String, i32)> {
    let runs = sandbox.running(TASKS);
    eventually("all agents wait at the gate", || {
        let wrote_half = |run: &str| stdout(sandbox, run).lines().count() == LINES / 2;
        runs.iter()
            .all(|(run, _)| wrote_half(run.as_str()))
            .then_some(())
    });
    let mut runs: Vec<_> = runs
        .into_iter()
        .map(|(run, pid)| (run.to_string(), pid))
        .collect();
    runs.sort();
    runs
}

fn stdout(sandbox: &Sandbox, run: &str) -> String {
    let file = sandbox.state().join("runs").join(run).join("stdout.log");
    std::fs::read_to_string(file).unwrap_or_default()
}

fn all_done_once(sandbox: &Sandbox, runs: &[(String, i32)]) {
    let all: String = (1..=LINES).map(|n| format!("{n}\n")).collect();
    for (run, _) in runs {
        assert_eq!(stdout(sandbox, run), all, "{run}");
    }
    let done = std::fs::read_to_string(sandbox.gate("done")).unwrap();
    let mut done: Vec<&str> = done.lines().collect();
    done.sort_unstable();
    assert_eq!(done, tasks());
    assert_eq!(sandbox.tasks_of("task_completed"), tasks());
    assert_eq!(sandbox.tasks_of("task_claimed"), tasks());
    sandbox.every_run_ended_once();
    sandbox.verify();
}

#[test]
fn p4_takeover_of_children_that_run_on() {
    let sandbox = sandbox();
    let mut first = Looping::start(&sandbox, &[]);
    let before = all_wait_at_the_gate(&sandbox);
    first.kill_9();
    let mut second = Looping::start(&sandbox, &[]);
    second.is_up(&sandbox);
    assert_eq!(all_wait_at_the_gate(&sandbox), before);
    sandbox.open_gate("gate");
    let ended = second.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    all_done_once(&sandbox, &before);
    assert_eq!(sandbox.facts_of("run_started").len(), TASKS);
}

#[test]
fn p4_takeover_of_children_that_ended_meanwhile() {
    let sandbox = sandbox();
    let mut first = Looping::start(&sandbox, &[]);
    let runs = all_wait_at_the_gate(&sandbox);
    first.kill_9();
    sandbox.open_gate("gate");
    eventually("every run has an exit.json and none is alive", || {
        let ended = |run: &str| {
            sandbox
                .state()
                .join("runs")
                .join(run)
                .join("exit.json")
                .exists()
        };
        let all = runs.iter().all(|(run, _)| ended(run)) && alive(&sandbox.state()).is_empty();
        all.then_some(())
    });
    let ended = Looping::start(&sandbox, &[]).ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    all_done_once(&sandbox, &runs);
}

#[test]
fn p4_takeover_again_and_again() {
    let sandbox = sandbox();
    // All of them are kept to the end: one that is let go of takes its children with it.
    let mut loops = vec![Looping::start(&sandbox, &[])];
    let runs = all_wait_at_the_gate(&sandbox);
    for _ in 0..5 {
        loops.last_mut().unwrap().kill_9();
        loops.push(Looping::start(&sandbox, &[]));
        loops.last().unwrap().is_up(&sandbox);
    }
    assert_eq!(all_wait_at_the_gate(&sandbox), runs);
    sandbox.open_gate("gate");
    let ended = loops.last_mut().unwrap().ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    all_done_once(&sandbox, &runs);
}

#[test]
fn p4_takeover_after_the_runners_are_dead_too_sweeps_and_retries() {
    let sandbox = sandbox();
    let mut first = Looping::start(&sandbox, &[]);
    let runs = all_wait_at_the_gate(&sandbox);
    let tokens: BTreeSet<String> = alive(&sandbox.state()).into_keys().collect();
    assert_eq!(tokens.len(), TASKS);
    let killed = runners(&sandbox.state());
    assert_eq!(killed.len(), TASKS);
    first.kill_9();
    killed.into_iter().for_each(kill_9);
    let mut second = Looping::start(&sandbox, &[]);
    eventually("the old runs' processes are gone", || {
        let left = alive(&sandbox.state());
        left.keys()
            .all(|token| !tokens.contains(token))
            .then_some(())
    });
    second.is_up(&sandbox);
    sandbox.open_gate("gate");
    let ended = second.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let exits = sandbox.facts_of("run_exited");
    let lost: BTreeSet<String> = exits
        .iter()
        .filter(|fact| fact["data"]["outcome"] == "lost")
        .map(|fact| text(&fact["run"]))
        .collect();
    assert_eq!(lost, runs.into_iter().map(|(run, _)| run).collect());
    let retried: Vec<(String, i32)> = exits
        .iter()
        .map(|fact| (text(&fact["run"]), 0))
        .filter(|(run, _)| !lost.contains(run))
        .collect();
    assert_eq!(retried.len(), TASKS);
    all_done_once(&sandbox, &retried);
}
