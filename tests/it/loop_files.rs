//! Files that people write: a malformed task file stops nothing, an unknown key stops the start.

use crate::common::{Looping, Sandbox, eventually};

#[test]
fn task_files_that_are_malformed_are_reported_and_stop_nothing() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("");
    sandbox.task("a", "title = \"A\"\nclaims = [\"a\"]", "true");
    sandbox.task("bad", "title = \"Bad\"\npriorty = 2", "true");
    sandbox.task("worse", "title = \"Worse", "true");
    sandbox.write("tasks/not a task.md", "no fence\n");
    let ended = Looping::start(&sandbox, &[]).ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(sandbox.tasks_of("task_completed"), ["a"]);
    for part in ["bad.md:3", "priority", "worse.md:2"] {
        assert!(ended.said.contains(part), "{part}: {}", ended.said);
    }
    let status = sandbox.json(&["status", "--json"]);
    assert_eq!(status["tasks"]["malformed"], 3, "{status}");
}

#[test]
fn task_files_are_taken_up_while_the_loop_runs() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("[loop]\ntasks = 3\n");
    sandbox.task(
        "a",
        "title = \"A\"\nclaims = [\"a\"]",
        &sandbox.until_open("gate"),
    );
    let mut looping = Looping::start(&sandbox, &[]);
    sandbox.running(1);
    sandbox.task("b", "title = \"B\"\nclaims = [\"b\"]\nclaim = 1", "true");
    eventually("the mistake is told", || {
        looping.said().contains("b.md:4").then_some(())
    });
    sandbox.task("b", "title = \"B\"\nclaims = [\"b\"]", "true");
    let added = sandbox.run(&["add", "C", "--claim", "c", "--body", "true"]);
    assert_eq!((added.code, added.said.as_str()), (Some(0), "T-0001\n"));
    eventually("both are completed", || {
        (sandbox.tasks_of("task_completed") == ["T-0001", "b"]).then_some(())
    });
    sandbox.open_gate("gate");
    let ended = looping.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(sandbox.tasks_of("task_completed"), ["T-0001", "a", "b"]);
}

#[test]
fn unknown_keys_stop_the_start_with_the_place_and_the_nearest_key() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("[loop]\ntasks = 1\ngobal_concurrency = 4\n");
    sandbox.task("a", "title = \"A\"", "true");
    let ended = Looping::start(&sandbox, &[]).ended();
    assert_eq!(ended.code, Some(2), "{}", ended.said);
    for part in [
        "flockd.toml:3",
        "loop.gobal_concurrency",
        "global_concurrency",
    ] {
        assert!(ended.said.contains(part), "{part}: {}", ended.said);
    }
    assert!(!sandbox.state().join("ledger").exists());
}
