//! `flockd run -- CMD`: the caller's descriptors and signals, the same slots, nothing left behind.

use super::rig::Home;
use crate::common::{eventually, flockd};
use flockd::budget::SlotDir;
use flockd::proc::{Sent, all_processes, identity_of, signal, stat_of};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

fn command(home: &Arc<Home>, argv: &[&str]) -> Command {
    let mut command = Command::new(flockd());
    command
        .args(["run", "--"])
        .args(argv)
        .env("FLOCKD_STATE_DIR", home.state())
        .env("FLOCKD_GLOBAL_CONCURRENCY", "1")
        .env_remove("FLOCKD_TOKEN")
        .env_remove("FLOCKD_RUN_ID")
        .stdin(Stdio::null());
    command
}

fn code(home: &Arc<Home>, argv: &[&str]) -> Option<i32> {
    command(home, argv)
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .code()
}

fn send(child: &Child, sent: Sent) {
    assert!(signal(identity_of(child.id()).unwrap(), sent));
}

/// The command's child, once there is one with this name.
fn below(parent: &Child, name: &str) -> flockd::proc::Identity {
    eventually("the command's child", || {
        let found = all_processes().into_iter().find(|stat| {
            stat.parent == parent.id()
                && std::fs::read_to_string(format!("/proc/{}/comm", stat.pid))
                    .is_ok_and(|comm| comm.trim() == name)
        });
        found.map(|stat| stat.identity())
    })
}

#[test]
fn the_exit_code_is_the_childs_or_128_and_its_signal() {
    let home = Home::new();
    for (argv, expected) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["no-such-program"], 127),
        (&["/etc/passwd"], 126),
    ] {
        assert_eq!(code(&home, argv), Some(expected), "{argv:?}");
    }
    assert!(
        SlotDir::open(&home.state())
            .unwrap()
            .used(1)
            .iter()
            .all(|(_, holder)| holder.is_none())
    );
}

#[test]
fn stdin_and_stdout_are_the_callers() {
    let home = Home::new();
    let mut child = command(&home, &["cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"through");
}

#[test]
fn behaviour_082_signals_are_passed_on_and_stragglers_end() {
    let home = Home::new();
    let up = home.file("up");
    let script = format!(
        "trap 'exit 5' TERM; setsid sleep 611 & touch {}; while :; do sleep 0.02; done",
        up.display()
    );
    let mut child = command(&home, &["sh", "-c", &script]).spawn().unwrap();
    eventually("the trap is set", || up.exists().then_some(()));
    send(&child, Sent::Term);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let left = all_processes().into_iter().any(|stat| {
        std::fs::read(format!("/proc/{}/cmdline", stat.pid))
            .is_ok_and(|line| line == b"sleep\x00611\x00")
    });
    assert!(!left, "the tree outlived the command");
}

#[test]
fn p1_a_nested_command_uses_its_runs_slot() {
    let home = Home::new();
    let program = flockd().to_str().unwrap();
    assert_eq!(
        code(&home, &[program, "run", "--", "sh", "-c", "exit 9"]),
        Some(9)
    );
}

#[test]
fn p1_a_waiting_command_can_be_stopped_and_a_killed_ones_tree_is_swept() {
    let home = Home::new();
    let mut first = command(&home, &["sleep", "600"]).spawn().unwrap();
    let sleep = below(&first, "sleep");
    let mut second = command(&home, &["true"]).spawn().unwrap();
    eventually("the second waits for events", || {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", second.id())).ok()?;
        fds.flatten()
            .filter_map(|fd| std::fs::read_link(fd.path()).ok())
            .any(|target| target.to_string_lossy().contains("inotify"))
            .then_some(())
    });
    send(&second, Sent::Term);
    assert_eq!(second.wait().unwrap().code(), Some(143));
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(
        stat_of(sleep.pid).is_some(),
        "an orphan that nobody has noticed yet"
    );
    assert_eq!(code(&home, &["true"]), Some(0));
    assert!(!sleep.is_alive(), "its slot was used while it lived");
}
