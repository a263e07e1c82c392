//! Recorded outputs of real agents, replayed through the real runner.
//!
//! `make conformance` names the folder in `FLOCKD_FIXTURES`; its `INDEX.md` says how each program ended.
//! The runner alone sees exit codes, signals and silence; what an adapter would read in the bytes is
//! not asked here. Without the variable, and without a folder at the usual place, nothing is checked.

use crate::common::{Runs, fake_agent, repository};
use flockd::runner::{RunLimits, StopHow};
use flockd::types::Outcome;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// How a recorded program ended, as the table of `INDEX.md` has it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    /// With this exit code.
    Code(u8),
    /// By this signal, which flockd did not send.
    Signal(u8),
    /// It did not: silent, or printing for ever.
    Hangs { silent: bool },
    /// By a stop that flockd asked for, with exit code 0 of its own.
    Stopped,
}

/// One row: `| file | what happened | exit | expected outcome |`.
fn row(line: &str) -> Option<(String, Ending)> {
    let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
    let [file, _, exit, expected, ..] = cells.as_slice() else {
        return None;
    };
    let file = file.strip_prefix('`')?.strip_suffix('`')?;
    let exit = exit.trim_matches('*');
    let ending = match exit.parse::<i32>() {
        Ok(code @ 0..=255) => Ending::Code(u8::try_from(code).ok()?),
        Ok(signal) => Ending::Signal(u8::try_from(-signal).ok()?),
        Err(_) if exit == "see note" => Ending::Stopped,
        Err(_) if exit.starts_with("none") => Ending::Hangs {
            silent: !expected.contains("not idle"),
        },
        Err(_) => return None,
    };
    Some((file.to_owned(), ending))
}

fn fixtures() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("FLOCKD_FIXTURES") {
        let folder = PathBuf::from(named);
        assert!(
            folder.is_dir(),
            "FLOCKD_FIXTURES names no folder: {}",
            folder.display()
        );
        return Some(folder);
    }
    let usual = repository().join("../shared/fixtures");
    usual.is_dir().then_some(usual)
}

/// The agent's steps, the limits, whether it is stopped, and the outcome it must come to.
fn plan(path: &str, ending: Ending) -> (Vec<String>, RunLimits, Option<StopHow>, Outcome) {
    let words = |text: &[&str]| text.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
    let limits = Runs::limits();
    match ending {
        Ending::Code(code) => {
            let outcome = if code == 0 {
                Outcome::Succeeded
            } else {
                Outcome::Failed
            };
            (
                words(&["replay", path, &code.to_string()]),
                limits,
                None,
                outcome,
            )
        }
        Ending::Signal(signal) => (
            words(&["replay", path, &format!("-{signal}")]),
            limits,
            None,
            Outcome::Killed,
        ),
        Ending::Hangs { silent: true } => {
            let limits = RunLimits {
                idle_ms: 300,
                ..limits
            };
            (
                words(&["show", path, "--", "hang"]),
                limits,
                None,
                Outcome::Idle,
            )
        }
        Ending::Hangs { silent: false } => {
            let limits = RunLimits {
                deadline_ms: 300,
                ..limits
            };
            (
                words(&["show", path, "--", "hang"]),
                limits,
                None,
                Outcome::TimedOut,
            )
        }
        Ending::Stopped => {
            let steps = words(&["exit-on-term", "0", "--", "show", path, "--", "hang"]);
            (steps, limits, Some(StopHow::Term), Outcome::Cancelled)
        }
    }
}

#[test]
fn conformance_every_recording_keeps_its_bytes_and_its_end() {
    let Some(fixtures) = fixtures() else { return };
    let index = fs::read_to_string(fixtures.join("INDEX.md")).unwrap();
    let rows: Vec<(String, Ending)> = index.lines().filter_map(row).collect();
    let listed: BTreeSet<String> = rows.iter().map(|(file, _)| file.clone()).collect();
    let found: BTreeSet<String> = fs::read_dir(fixtures.join("cli"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(listed, found, "the table lists what is there");
    let mut runs = Runs::new();
    for (file, ending) in rows {
        let path = fixtures.join("cli").join(&file);
        let (steps, limits, stop, outcome) = plan(path.to_str().unwrap(), ending);
        let mut argv = vec![fake_agent().to_str().unwrap()];
        argv.extend(steps.iter().map(String::as_str));
        let ended = runs.run(&argv, limits, stop);
        assert_eq!(ended.report.outcome, outcome, "{file}: {:?}", ended.report);
        assert!(
            ended.stdout == fs::read(&path).unwrap(),
            "{file}: other bytes"
        );
        let code = ended
            .report
            .exit_code
            .and_then(|code| u8::try_from(code).ok());
        match ending {
            Ending::Code(expected) => assert_eq!(code, Some(expected), "{file}"),
            Ending::Signal(signal) => {
                assert_eq!(ended.report.signal, Some(i32::from(signal)), "{file}");
            }
            Ending::Hangs { .. } | Ending::Stopped => {}
        }
    }
}

#[test]
fn conformance_rows_are_read_as_written() {
    let of = |exit: &str, expected: &str| {
        row(&format!("| `a.jsonl` | x | {exit} | {expected} |")).map(|r| r.1)
    };
    assert_eq!(of("0", "succeeded"), Some(Ending::Code(0)));
    assert_eq!(of("**0**", "failed"), Some(Ending::Code(0)));
    assert_eq!(of("173", "failed"), Some(Ending::Code(173)));
    assert_eq!(of("-15", "killed"), Some(Ending::Signal(15)));
    assert_eq!(of("see note", "killed"), Some(Ending::Stopped));
    assert_eq!(
        of("none: still running", "idle or timed_out"),
        Some(Ending::Hangs { silent: true })
    );
    assert_eq!(
        of("none: still running", "timed_out (not idle)"),
        Some(Ending::Hangs { silent: false })
    );
    assert_eq!(of("exit", "expected outcome class"), None);
}
