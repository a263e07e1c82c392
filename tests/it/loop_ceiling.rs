//! The ceiling, counted from outside: tokens in `/proc` of a real loop and of `flockd run` beside it.

use crate::common::processes::{Observer, alive, kill_9, runners};
use crate::common::{Looping, Sandbox, eventually};
use std::process::Child;

/// M of these tests.
const CEILING: usize = 4;

/// How often the observer looks at a full ceiling before anything may end.
const LOOKS: usize = 50;

/// Two workers for each of six tasks, two roles at once: twelve children would run without a ceiling.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let role = |name: &str| {
        format!(
            "[roles.{name}]\nagent = \"shell\"\nconcurrency = \"concurrent_safe\"\nside_effect = \"read_only\"\n"
        )
    };
    sandbox.write(
        "flockd.toml",
        &format!(
            "[loop]\ntasks = 3\nworkers = 2\nroles = 2\nmax_completed = 50\nmax_attempts = 50\n\n\
             [agents.shell]\nkind = \"command\"\ncommand = [\"sh\", \"-e\"]\n\n{}{}\n\
             [[stages]]\nname = \"look\"\nroles = [\"one\", \"two\"]\n\n\
             [[stages]]\nname = \"verify\"\nrun = [\"true\"]\n",
            role("one"),
            role("two")
        ),
    );
    for n in 1..=6 {
        let header = format!("title = \"Task {n}\"\nclaims = [\"file-{n}\"]");
        sandbox.task(&format!("task-{n}"), &header, &sandbox.until_open("gate"));
    }
    sandbox
}

fn start(sandbox: &Sandbox) -> Looping {
    let mut command = sandbox.flockd_command(&["start"]);
    command.env("FLOCKD_GLOBAL_CONCURRENCY", CEILING.to_string());
    Looping::spawn(sandbox, command)
}

/// `flockd run` of a command that waits for the gate.
fn client(sandbox: &Sandbox) -> Child {
    let script = sandbox.until_open("gate");
    let mut command = sandbox.flockd_command(&["run", "--", "sh", "-c", &script]);
    command.env("FLOCKD_GLOBAL_CONCURRENCY", CEILING.to_string());
    command.spawn().unwrap()
}

fn full_and_stays_full(sandbox: &Sandbox, observer: &Observer) {
    eventually("the ceiling is reached", || {
        (alive(&sandbox.state()).len() == CEILING).then_some(())
    });
    let from = observer.looks();
    eventually("the observer has looked often", || {
        (observer.looks() > from + LOOKS).then_some(())
    });
}

fn all_tasks_passed(sandbox: &Sandbox, looping: &mut Looping, observer: &Observer) {
    let ended = looping.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(observer.peak(), CEILING);
    // Both workers passed: a person chooses. That is the end of the loop's part.
    assert_eq!(sandbox.tasks_of("task_needs_selection").len(), 6);
    sandbox.every_run_ended_once();
    sandbox.verify();
}

#[test]
fn p1_ceiling_of_six_tasks_is_reached_and_never_passed() {
    let sandbox = sandbox();
    let observer = Observer::of(&sandbox.state());
    let mut looping = start(&sandbox);
    full_and_stays_full(&sandbox, &observer);
    sandbox.open_gate("gate");
    all_tasks_passed(&sandbox, &mut looping, &observer);
}

#[test]
fn p1_ceiling_holds_with_clients_that_came_first() {
    let sandbox = sandbox();
    let observer = Observer::of(&sandbox.state());
    let mut clients = [client(&sandbox), client(&sandbox)];
    eventually("both clients run", || {
        (alive(&sandbox.state()).len() == 2).then_some(())
    });
    let mut looping = start(&sandbox);
    full_and_stays_full(&sandbox, &observer);
    sandbox.open_gate("gate");
    for client in &mut clients {
        assert!(client.wait().unwrap().success());
    }
    all_tasks_passed(&sandbox, &mut looping, &observer);
}

#[test]
fn p1_ceiling_holds_with_clients_that_come_later() {
    let sandbox = sandbox();
    let observer = Observer::of(&sandbox.state());
    let mut looping = start(&sandbox);
    eventually("the loop has all slots", || {
        (alive(&sandbox.state()).len() == CEILING).then_some(())
    });
    let mut clients = [client(&sandbox), client(&sandbox)];
    full_and_stays_full(&sandbox, &observer);
    sandbox.open_gate("gate");
    for client in &mut clients {
        assert!(client.wait().unwrap().success());
    }
    all_tasks_passed(&sandbox, &mut looping, &observer);
}

#[test]
fn p1_ceiling_holds_over_deaths_of_the_daemon_and_of_runners() {
    let sandbox = sandbox();
    let observer = Observer::of(&sandbox.state());
    let mut first = start(&sandbox);
    full_and_stays_full(&sandbox, &observer);
    first.kill_9();
    let mut second = start(&sandbox);
    second.is_up(&sandbox);
    full_and_stays_full(&sandbox, &observer);
    // Two of the four die with their runs, which wait for their back-off then; others take their slots.
    runners(&sandbox.state())
        .into_iter()
        .take(2)
        .for_each(kill_9);
    eventually("two runs are lost", || {
        (sandbox.facts_of("run_exited").len() == 2).then_some(())
    });
    full_and_stays_full(&sandbox, &observer);
    sandbox.open_gate("gate");
    all_tasks_passed(&sandbox, &mut second, &observer);
}
