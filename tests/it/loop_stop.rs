//! Stopping, holding and taking back: signals, estop, pause, cancel, retry, two loops, a loop in the background.

use crate::common::processes::alive;
use crate::common::{Ended, Looping, Sandbox, eventually, text};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Tasks `a` and `b`, each waiting for the gate of its own name, then writing a file of that name.
fn sandbox(tasks: usize) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.configure_shell(&format!("[loop]\ntasks = {tasks}\n"));
    for task in ["a", "b"] {
        let header = format!("title = \"{task}\"\nclaims = [\"{task}\"]");
        let script = format!("{}\necho done > {task}", sandbox.until_open(task));
        sandbox.task(task, &header, &script);
    }
    sandbox
}

fn is_stopping(sandbox: &Sandbox) {
    eventually("the loop says that it stops", || {
        let output = sandbox.flockd(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).ok()?;
        (status["loop"]["stopping"] == true).then_some(())
    });
}

fn outcomes(sandbox: &Sandbox) -> Vec<String> {
    let exits = sandbox.facts_of("run_exited");
    exits
        .iter()
        .map(|fact| text(&fact["data"]["outcome"]))
        .collect()
}

fn all_gone(sandbox: &Sandbox) {
    eventually("no child is left", || {
        alive(&sandbox.state()).is_empty().then_some(())
    });
}

fn done(sandbox: &Sandbox, arguments: &[&str]) -> Ended {
    let ended = sandbox.run(arguments);
    assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    ended
}

/// Both gates open, a loop to its end: both tasks are completed.
fn the_rest_completes(sandbox: &Sandbox, looping: Option<Looping>) {
    sandbox.open_gate("a");
    sandbox.open_gate("b");
    let mut looping = looping.unwrap_or_else(|| Looping::start(sandbox, &[]));
    let ended = looping.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(sandbox.tasks_of("task_completed"), ["a", "b"]);
    sandbox.every_run_ended_once();
    sandbox.verify();
}

#[test]
fn stop_by_one_interrupt_lets_children_end() {
    let sandbox = sandbox(1);
    let mut looping = Looping::start(&sandbox, &[]);
    sandbox.running(1);
    looping.signal(Signal::SIGINT);
    is_stopping(&sandbox);
    assert_eq!(alive(&sandbox.state()).len(), 1);
    sandbox.open_gate("a");
    let ended = looping.ended();
    assert_eq!(ended.code, Some(130), "{}", ended.said);
    assert_eq!(outcomes(&sandbox), ["succeeded"]);
    assert_eq!(sandbox.tasks_of("task_claimed"), ["a"]);
    let stopped = &sandbox.facts_of("loop_stopped")[0];
    assert_eq!(stopped["data"]["decision"], "stopped");
    assert_eq!(stopped["data"]["exit_code"], 130);
    the_rest_completes(&sandbox, None);
    assert_eq!(outcomes(&sandbox), ["succeeded", "succeeded"]);
}

#[test]
fn stop_by_two_interrupts_ends_children_and_loses_no_task() {
    let sandbox = sandbox(2);
    let mut looping = Looping::start(&sandbox, &[]);
    sandbox.running(2);
    looping.signal(Signal::SIGINT);
    is_stopping(&sandbox);
    looping.signal(Signal::SIGINT);
    let ended = looping.ended();
    assert_eq!(ended.code, Some(130), "{}", ended.said);
    assert!(alive(&sandbox.state()).is_empty());
    assert_eq!(outcomes(&sandbox), ["cancelled", "cancelled"]);
    the_rest_completes(&sandbox, None);
    // They went on where they were: a stop is no failure of a task.
    assert_eq!(sandbox.tasks_of("task_claimed"), ["a", "b"]);
    assert!(sandbox.facts_of("task_deferred").is_empty());
}

#[test]
fn stop_of_everything_by_estop_and_thaw() {
    let sandbox = sandbox(2);
    let looping = Looping::start(&sandbox, &[]);
    sandbox.running(2);
    done(&sandbox, &["estop"]);
    all_gone(&sandbox);
    let why = sandbox.waits_for("a", "human");
    assert!(text(&why["detail"]).contains("flockd thaw"), "{why}");
    assert_eq!(sandbox.json(&["status", "--json"])["loop"]["estop"], true);
    done(&sandbox, &["thaw"]);
    sandbox.running(2);
    // The file alone does the same.
    std::fs::write(sandbox.state().join("ESTOP"), "").unwrap();
    all_gone(&sandbox);
    std::fs::remove_file(sandbox.state().join("ESTOP")).unwrap();
    sandbox.running(2);
    the_rest_completes(&sandbox, Some(looping));
    assert!(sandbox.facts_of("task_deferred").is_empty());
}

#[test]
fn stop_of_dispatch_by_pause_and_resume() {
    let sandbox = sandbox(1);
    let looping = Looping::start(&sandbox, &[]);
    sandbox.running(1);
    done(&sandbox, &["pause"]);
    assert_eq!(sandbox.json(&["status", "--json"])["loop"]["paused"], true);
    sandbox.open_gate("a");
    eventually("what ran ends", || {
        (sandbox.tasks_of("task_completed") == ["a"]).then_some(())
    });
    let why = sandbox.waits_for("b", "human");
    assert!(text(&why["detail"]).contains("flockd resume"), "{why}");
    assert_eq!(sandbox.tasks_of("task_claimed"), ["a"]);
    done(&sandbox, &["resume"]);
    the_rest_completes(&sandbox, Some(looping));
}

#[test]
fn stop_of_one_task_by_cancel_and_back_by_retry() {
    let sandbox = sandbox(2);
    let mut looping = Looping::start(&sandbox, &[]);
    sandbox.running(2);
    done(&sandbox, &["cancel", "a"]);
    sandbox.running(1);
    assert_eq!(alive(&sandbox.state()).len(), 1);
    eventually("the task is cancelled", || {
        (sandbox.json(&["why", "a", "--json"])["state"] == "cancelled").then_some(())
    });
    sandbox.open_gate("b");
    let ended = looping.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(outcomes(&sandbox), ["cancelled", "succeeded"]);
    assert_eq!(sandbox.tasks_of("task_cancelled"), ["a"]);
    assert_eq!(sandbox.tasks_of("task_completed"), ["b"]);
    done(&sandbox, &["retry", "a"]);
    the_rest_completes(&sandbox, None);
}

#[test]
fn stop_by_command_drains_or_ends() {
    let sandbox = sandbox(1);
    let mut looping = Looping::start(&sandbox, &[]);
    sandbox.running(1);
    done(&sandbox, &["stop"]);
    is_stopping(&sandbox);
    assert_eq!(alive(&sandbox.state()).len(), 1);
    done(&sandbox, &["stop", "--now", "--wait"]);
    let ended = looping.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(outcomes(&sandbox), ["cancelled"]);
    the_rest_completes(&sandbox, None);
}

#[test]
fn stop_is_needed_before_a_second_loop_may_start() {
    let sandbox = sandbox(1);
    let looping = Looping::start(&sandbox, &[]);
    sandbox.running(1);
    for arguments in [&["start"][..], &["start", "--detach"]] {
        let second = sandbox.run(arguments);
        assert_eq!(second.code, Some(4), "{second:?}");
        let pid = format!("pid {} ", looping.pid());
        assert!(second.said.contains(&pid), "{pid}: {}", second.said);
        assert!(second.said.contains("flockd stop"), "{}", second.said);
    }
    the_rest_completes(&sandbox, Some(looping));
}

#[test]
fn stop_of_a_loop_in_the_background() {
    let sandbox = sandbox(1);
    let started = done(&sandbox, &["start", "--detach"]);
    let status = sandbox.json(&["status", "--json"]);
    assert_eq!(status["daemon"]["running"], true);
    let pid = status["daemon"]["pid"].as_i64().unwrap();
    assert!(started.said.contains(&format!("pid {pid};")), "{started:?}");
    sandbox.running(1);
    done(&sandbox, &["stop", "--now", "--wait"]);
    assert!(alive(&sandbox.state()).is_empty());
    assert_eq!(
        sandbox.json(&["status", "--json"])["daemon"]["running"],
        false
    );
    the_rest_completes(&sandbox, None);
}
