//! Children of the agent: in its group, in sessions of their own, orphaned. None is waited for.

use crate::Failure;
use std::process::{Child, Command};

/// Starts a copy of this program; `steps` are words joined by ','.
#[expect(
    clippy::disallowed_methods,
    reason = "an agent starts programs as any program does"
)]
fn spawn(before: &[&str], steps: &[String]) -> std::io::Result<Child> {
    let mut words: Vec<String> = before.iter().map(|&word| word.to_owned()).collect();
    let steps = if steps.is_empty() {
        "hang".to_owned()
    } else {
        steps.join(" ")
    };
    for step in steps.split(',') {
        words.push("--".to_owned());
        words.extend(step.split_whitespace().map(str::to_owned));
    }
    Command::new(std::env::current_exe()?).args(words).spawn()
}

/// `count` children in this process's group that inherit its streams.
pub(crate) fn fork(count: i64, steps: &[String]) -> Result<(), Failure> {
    for _ in 0..count {
        drop(spawn(&[], steps)?);
    }
    Ok(())
}

/// Makes this process the leader of a new session.
pub(crate) fn new_session() -> nix::Result<()> {
    nix::unistd::setsid().map(drop)
}

/// A child that leaves this process's group and session.
pub(crate) fn setsid_child(steps: &[String]) -> Result<(), Failure> {
    drop(spawn(&["setsid"], steps)?);
    Ok(())
}

/// A grandchild in a session of its own whose parent has exited.
pub(crate) fn double_fork(steps: &[String]) -> Result<(), Failure> {
    let steps = if steps.is_empty() {
        "hang".to_owned()
    } else {
        steps.join(" ")
    };
    let mut between = spawn(
        &["setsid"],
        &[format!("fork 1 {}", steps.replace(',', " "))],
    )?;
    between.wait()?;
    Ok(())
}

/// A shell command, waited for; its failure is a failed step.
#[expect(
    clippy::disallowed_methods,
    reason = "an agent starts programs as any program does"
)]
pub(crate) fn shell(command: &str) -> Result<(), Failure> {
    let status = Command::new("sh").args(["-c", command]).status()?;
    if status.success() {
        return Ok(());
    }
    Err(format!("sh -c {command:?}: {status}").into())
}
