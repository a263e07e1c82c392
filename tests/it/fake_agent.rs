//! The scripted agent does what its steps say: a test that relies on it may.

use crate::common::{eventually, fake_agent};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

fn run(words: &[&str]) -> Output {
    let mut command = Command::new(fake_agent());
    command.args(words).stdin(Stdio::null()).output().unwrap()
}

fn stdout(words: &[&str]) -> String {
    String::from_utf8(run(words).stdout).unwrap()
}

#[test]
fn fake_agent_runs_steps_in_order_and_exits_with_its_code() {
    let output = run(&[
        "print", "a", "b", "--", "verdict", "fail", "no", ";", "exit", "3",
    ]);
    assert_eq!(output.stdout, b"a b\nverdict: fail no\n");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(run(&["dance"]).status.code(), Some(97));
}

#[test]
fn fake_agent_takes_its_steps_from_the_prompt() {
    let mut child = Command::new(fake_agent())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let prompt = "Please:\nagent: print \"one  two\" ; print three\nthanks\n  agent: exit 4\n";
    child
        .stdin
        .take()
        .unwrap()
        .write_all(prompt.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"one  two\nthree\n");
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn fake_agent_floods_both_streams_to_the_byte() {
    let output = run(&["flood", "--stdout", "300k", "--stderr", "70001"]);
    assert_eq!(
        (output.stdout.len(), output.stderr.len()),
        (300 << 10, 70001)
    );
}

#[test]
fn fake_agent_dies_of_signals() {
    assert_eq!(run(&["signal-self", "15"]).status.signal(), Some(15));
    let output = run(&["die-mid-line"]);
    assert_eq!(output.status.signal(), Some(9));
    assert!(!output.stdout.is_empty() && !output.stdout.ends_with(b"\n"));
    assert_eq!(
        run(&["ignore-term", "--", "signal-self", "15", "--", "exit", "5"])
            .status
            .code(),
        Some(5)
    );
    assert_eq!(
        run(&["exit-on-term", "6", "--", "signal-self", "15", "--", "hang"])
            .status
            .code(),
        Some(6)
    );
}

#[test]
fn fake_agent_replays_a_file_and_ends_as_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording");
    std::fs::write(&file, b"x\0y").unwrap();
    let name = file.to_str().unwrap();
    assert_eq!(stdout(&["replay", name, "0"]), "x\0y");
    assert_eq!(run(&["replay", name, "145"]).status.code(), Some(145));
    assert_eq!(run(&["replay", name, "-15"]).status.signal(), Some(15));
}

#[test]
fn fake_agent_sees_its_descriptors_and_masks() {
    // Further ones may be inherited from whoever started the tests.
    assert!(stdout(&["print-fds"]).starts_with("fds: 0 1 2"));
    let blocked = stdout(&["ignore-term", "--", "print-sigmask"]);
    assert!(
        blocked.starts_with("SigBlk: 0000000000004003\n"),
        "{blocked}"
    );
}

#[test]
fn fake_agent_children_leave_the_group_and_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let steps = format!("print-ids,hold-until {}", gate.display());
    let mut child = Command::new(fake_agent())
        .args([
            "print-ids",
            "--",
            "fork",
            "1",
            &steps,
            "--",
            "setsid-child",
            &steps,
            "--",
            "double-fork",
        ])
        .arg("print-ids")
        .stdin(Stdio::null())
        .stdout(Stdio::from(
            std::fs::File::create(folder.path().join("out")).unwrap(),
        ))
        .spawn()
        .unwrap();
    let lines = eventually("four processes report", || {
        let text = std::fs::read_to_string(folder.path().join("out")).unwrap();
        (text.lines().count() == 4).then(|| text.lines().map(str::to_owned).collect::<Vec<_>>())
    });
    assert!(child.wait().unwrap().success());
    std::fs::write(&gate, "").unwrap();
    let sid = |line: &str| line.split(' ').next_back().unwrap().to_owned();
    let own = sid(lines
        .iter()
        .find(|l| l.contains(&format!("pid={} ", child.id())))
        .unwrap());
    assert_eq!(
        lines.iter().filter(|line| sid(line) == own).count(),
        2,
        "{lines:?}"
    );
}

#[test]
fn fake_agent_counts_the_living_and_forgets_the_dead() {
    let folder = tempfile::tempdir().unwrap();
    let (registry, gate) = (folder.path().join("alive"), folder.path().join("gate"));
    let (registry, gate) = (registry.to_str().unwrap(), gate.to_str().unwrap());
    let start = || {
        let mut command = Command::new(fake_agent());
        command.args(["count-alive", registry, "--", "hold-until", gate]);
        command.stdin(Stdio::null()).spawn().unwrap()
    };
    let seen = || std::fs::read_to_string(format!("{registry}/seen")).unwrap_or_default();
    let mut first = start();
    eventually("the first one counts", || (seen() == "1\n").then_some(()));
    let mut second = start();
    eventually("the second one counts", || {
        (seen() == "1\n2\n").then_some(())
    });
    first.kill().unwrap();
    first.wait().unwrap();
    let mut third = start();
    eventually("the third one counts", || {
        (seen() == "1\n2\n2\n").then_some(())
    });
    std::fs::write(gate, "").unwrap();
    assert!(second.wait().unwrap().success() && third.wait().unwrap().success());
}
