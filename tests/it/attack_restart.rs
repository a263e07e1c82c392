//! Attacks on restarts: what was killed when, and what the next one makes of it.

use crate::common::processes::{alive, kill_9, runners};
use crate::common::{Looping, Sandbox, eventually};

/// One task whose agent writes a line and waits at a gate.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("");
    let script = format!("{}\necho done > file", sandbox.until_open("gate"));
    sandbox.task("one", "title = \"One\"\nclaims = [\"file\"]", &script);
    sandbox
}

#[test]
fn p4_a_task_taken_up_once_is_taken_over_again() {
    let sandbox = sandbox();
    let mut first = Looping::start(&sandbox, &[]);
    sandbox.running(1);
    assert_eq!(sandbox.run(&["stop", "--now"]).code, Some(0));
    first.ended();
    let mut second = Looping::start(&sandbox, &[]);
    let before = sandbox.running(1);
    second.kill_9();
    let mut third = Looping::start(&sandbox, &[]);
    third.is_up(&sandbox);
    assert_eq!(sandbox.running(1), before, "its child goes on");
    sandbox.open_gate("gate");
    assert_eq!(third.ended().code, Some(0));
    assert_eq!(sandbox.tasks_of("task_claimed"), ["one"]);
    assert_eq!(sandbox.tasks_of("task_completed"), ["one"]);
    sandbox.every_run_ended_once();
}

/// A client's child, alive after `kill -9` of the client, in a slot that the next loop has not.
#[test]
fn p1_the_child_of_a_killed_client_ends_before_a_lower_ceiling_counts() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("[loop]\nglobal_concurrency = 2\n");
    let hold = crate::common::fake_agent().display().to_string();
    let gate = sandbox.gate("gate").display().to_string();
    let run = ["run", "--", &hold, "hold-until", &gate];
    let mut clients = [sandbox.beside(&run), sandbox.beside(&run)];
    eventually("both children run", || {
        (alive(&sandbox.state()).len() == 2).then_some(())
    });
    for client in &mut clients {
        client.kill().unwrap();
        client.wait().unwrap();
    }
    assert_eq!(alive(&sandbox.state()).len(), 2, "orphans");
    let mut looping = Looping::start(&sandbox, &["-m", "1"]);
    assert_eq!(looping.ended().code, Some(0));
    assert_eq!(alive(&sandbox.state()).len(), 0);
    sandbox.every_run_ended_once();
}

#[test]
fn p7_lines_whose_runner_was_killed_leave_no_process() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("");
    let (agent, gate) = (crate::common::fake_agent(), sandbox.gate("gate"));
    let line = format!("{} hold-until {}\n", agent.display(), gate.display());
    sandbox.write("lines", &line);
    let client = sandbox.beside(&["run", "--lines", "lines"]);
    eventually("the child runs", || {
        (alive(&sandbox.state()).len() == 1).then_some(())
    });
    for runner in runners(&sandbox.state()) {
        kill_9(runner);
    }
    let ended = client.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_eq!(alive(&sandbox.state()).len(), 0);
}

#[test]
fn p7_a_line_that_is_no_text_leaves_no_run_behind() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("");
    let script = b"sleep 0.3; echo over > over\n\xff\xfe\necho never > never\n";
    std::fs::write(sandbox.root().join("lines"), script).unwrap();
    let ended = sandbox.run(&["run", "--lines", "lines"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.said.contains("line 2"), "{ended:?}");
    assert_eq!(sandbox.read("over"), "over\n", "the first line ended first");
    assert_eq!(sandbox.read("never"), "");
}

#[test]
fn a_stopped_daemon_does_not_hang_those_who_look() {
    let sandbox = sandbox();
    let mut looping = Looping::start(&sandbox, &[]);
    sandbox.running(1);
    looping.signal(nix::sys::signal::Signal::SIGSTOP);
    let started = std::time::Instant::now();
    for look in [&["status"][..], &["why", "one"], &["list"]] {
        let looked = sandbox.run(look);
        assert_eq!(looked.code, Some(0), "{looked:?}");
        assert!(looked.said.contains("kill -CONT"), "{looked:?}");
        assert!(looked.said.contains("one"), "{looked:?}");
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(50));
    looping.signal(nix::sys::signal::Signal::SIGCONT);
    sandbox.open_gate("gate");
    assert_eq!(looping.ended().code, Some(0));
}
