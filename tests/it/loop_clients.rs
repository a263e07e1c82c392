//! Commands that share the state directory with a loop: a loop that starts or dies leaves them alone.

use crate::common::processes::alive;
use crate::common::{Ended, Looping, Sandbox, eventually, text};
use std::process::Child;

fn ended(client: Child) -> Ended {
    client.wait_with_output().unwrap().into()
}

/// A command that says `out` when the gate is open, by `flockd` with these words before it.
fn waiting_command(sandbox: &Sandbox, words: &[&str]) -> Child {
    let script = format!("{}; echo out", sandbox.until_open("gate"));
    sandbox.beside(&[words, &["--", "sh", "-c", &script]].concat())
}

fn alive_are(sandbox: &Sandbox, count: usize) {
    eventually(&format!("{count} runs are alive"), || {
        (alive(&sandbox.state()).len() == count).then_some(())
    });
}

/// A loop with nothing to do, to its end.
fn an_idle_loop(sandbox: &Sandbox) {
    let ended = Looping::start(sandbox, &[]).ended_alone();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
}

fn all_succeeded(sandbox: &Sandbox, runs: usize) {
    an_idle_loop(sandbox);
    sandbox.every_run_ended_once();
    let exits = sandbox.facts_of("run_exited");
    let outcomes: Vec<String> = exits.iter().map(|f| text(&f["data"]["outcome"])).collect();
    assert_eq!(outcomes, vec!["succeeded"; runs], "{exits:?}");
}

fn sandbox(concurrency: usize) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.configure_shell(&format!("[loop]\nglobal_concurrency = {concurrency}\n"));
    std::fs::create_dir(sandbox.root().join("tasks")).unwrap();
    sandbox
}

#[test]
fn p4_clients_that_run_and_that_wait_outlive_the_start_of_a_loop() {
    let sandbox = sandbox(2);
    let claim = ["lease", "claim", "--task", "editor", "src/"];
    let mut clients = vec![
        waiting_command(&sandbox, &["run"]),
        waiting_command(&sandbox, &claim),
    ];
    alive_are(&sandbox, 2);
    clients.push(waiting_command(&sandbox, &["run"]));
    eventually("the third one is intended", || {
        let folders = std::fs::read_dir(sandbox.state().join("runs")).ok()?;
        (folders.count() == 3).then_some(())
    });
    an_idle_loop(&sandbox);
    alive_are(&sandbox, 2);
    sandbox.open_gate("gate");
    for client in clients {
        let ended = ended(client);
        assert_eq!((ended.code, ended.said.as_str()), (Some(0), "out\n"));
    }
    all_succeeded(&sandbox, 3);
}

#[test]
fn p4_clients_with_many_lines_outlive_the_start_of_a_loop() {
    let sandbox = sandbox(2);
    let lines = format!("{}\n", sandbox.until_open("gate")).repeat(5);
    sandbox.write("lines", &lines);
    let client = sandbox.beside(&["run", "--lines", "lines"]);
    alive_are(&sandbox, 2);
    an_idle_loop(&sandbox);
    alive_are(&sandbox, 2);
    sandbox.open_gate("gate");
    let ended = ended(client);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    all_succeeded(&sandbox, 5);
}

#[test]
fn p4_clients_inside_of_an_agent_outlive_the_daemon() {
    let sandbox = sandbox(1);
    let (flockd, gate) = (
        crate::common::flockd().display(),
        sandbox.until_open("gate"),
    );
    let script = format!("{flockd} run -- {gate}\necho $? > code");
    sandbox.task("a", "title = \"A\"", &script);
    let mut first = Looping::start(&sandbox, &[]);
    let before = sandbox.running(1);
    eventually("the nested command runs", || {
        (sandbox.facts_of("run_started").len() == 2).then_some(())
    });
    first.kill_9();
    let mut second = Looping::start(&sandbox, &[]);
    second.is_up(&sandbox);
    let pid = alive(&sandbox.state()).into_values().flatten();
    assert!(pid.into_iter().any(|pid| pid == before[0].1));
    sandbox.open_gate("gate");
    let ended = second.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(sandbox.git(&["show", "flockd/a.1:code"]), "0\n");
    all_succeeded(&sandbox, 2);
}
