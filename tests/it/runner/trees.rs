//! Trees: nothing of a run outlives it, whatever it forks, ignores or stops.

use super::rig::{Rig, members};
use crate::common::{PATIENCE, eventually};
use flockd::runner::StopHow;
use flockd::types::Outcome;
use std::time::{Duration, Instant};

/// Stops a run once it has written `ready`; answers how long it took to end.
fn cancel(rig: &mut Rig, script: &str) -> (flockd::runner::ExitReport, Duration) {
    let spec = rig.script(script);
    rig.launch(&spec);
    rig.wait_for_stdout(&spec, "ready");
    let asked = Instant::now();
    assert!(rig.pool.stop(&spec.run_id, StopHow::Term));
    let report = rig.exited();
    let took = asked.elapsed();
    assert_eq!(
        members(&spec),
        0,
        "the end is told only when the tree is gone"
    );
    rig.pool.settled(&spec.run_id);
    (report, took)
}

#[test]
fn fault_27_a_child_sees_three_descriptors() {
    let mut rig = Rig::new();
    let spec = rig.script("ls /proc/self/fd");
    assert_eq!(rig.run(&spec).outcome, Outcome::Succeeded);
    // The fourth is the listing's own.
    assert_eq!(rig.stdout(&spec), "0\n1\n2\n3\n");
}

#[test]
fn fault_30_group_until_empty() {
    let mut rig = Rig::new();
    let script = "trap 'exit 0' TERM; (trap '' TERM; echo ready; sleep 600; sleep 600)& wait";
    let (report, took) = cancel(&mut rig, script);
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(report.stragglers_killed >= 1, "{report:?}");
    assert!(
        took >= Duration::from_millis(900),
        "the grace time is given: {took:?}"
    );
}

#[test]
fn behaviour_082_fault_31_term_reaches_the_whole_group_before_the_grace_time() {
    let mut rig = Rig::new();
    let (report, took) = cancel(&mut rig, "sh -c 'echo ready; sleep 600'; true");
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(
        took < Duration::from_millis(900),
        "TERM was enough: {took:?}"
    );
}

#[test]
fn fault_32_a_session_of_its_own_does_not_escape() {
    let mut rig = Rig::new();
    let (report, _) = cancel(&mut rig, "setsid sh -c 'echo ready; sleep 600' & wait");
    assert_eq!(report.outcome, Outcome::Cancelled);
    // Also when the leader leaves by itself and the other has forgotten its parent.
    let spec =
        rig.script("setsid sh -c '(trap \"\" TERM; sleep 600; true) & echo ready' & sleep 0.2");
    let report = rig.run(&spec);
    assert_eq!((report.outcome, members(&spec)), (Outcome::Succeeded, 0));
    assert!(report.stragglers_killed >= 1);
}

#[test]
fn fault_35_a_run_ends_when_its_slowest_process_does() {
    let mut rig = Rig::new();
    let slow = rig.home.file("slow");
    let script = format!(
        "trap 'exit 0' TERM; sh -c 'trap \"sleep 0.4; touch {} ; exit\" TERM; echo ready; while :; do sleep 0.05; done' & wait",
        slow.display()
    );
    cancel(&mut rig, &script);
    assert!(
        slow.exists(),
        "the end came before the child that cleans up was done"
    );
}

#[test]
fn fault_36_fault_37_behaviour_081_mask_dispositions_and_session_are_the_childs_own() {
    let mut rig = Rig::new();
    let spec = rig.script("cat /proc/self/status; cut -d' ' -f6 /proc/$$/stat; echo $$");
    assert_eq!(rig.run(&spec).outcome, Outcome::Succeeded);
    let text = rig.stdout(&spec);
    for field in ["SigBlk", "SigIgn"] {
        let line = text.lines().find(|line| line.starts_with(field)).unwrap();
        let bits = u64::from_str_radix(line.split_ascii_whitespace().nth(1).unwrap(), 16).unwrap();
        // 32 and 33 are the C library's own: its posix_spawn ignores them in every child, and hides
        // them from every program.
        assert_eq!(bits & !0x1_8000_0000, 0, "{line}");
    }
    let mut last = text.lines().rev();
    assert_eq!(
        last.next(),
        last.next(),
        "the child leads a session of its own"
    );
}

#[test]
fn fault_39_no_terminal_and_a_stopped_child_ends_at_its_deadline() {
    let mut rig = Rig::new();
    let spec = rig.script("stty sane </dev/tty");
    assert_eq!(rig.run(&spec).outcome, Outcome::Failed);
    let mut spec = rig.script("kill -STOP $$");
    spec.limits.deadline_ms = 300;
    let report = rig.run(&spec);
    assert_eq!((report.outcome, members(&spec)), (Outcome::TimedOut, 0));
    assert!(report.duration_ms < 10_000, "{report:?}");
}

#[test]
fn fault_40_stdin_is_empty_or_the_prompt() {
    let mut rig = Rig::new();
    let mut spec = rig.script("cat");
    assert_eq!(rig.run(&spec).outcome, Outcome::Succeeded);
    assert_eq!(rig.stdout(&spec), "");
    spec = rig.script("cat");
    spec.input = flockd::runner::RunInput::Prompt;
    std::fs::write(rig.dir(&spec.run_id).join("prompt"), "do it").unwrap();
    assert_eq!(rig.run(&spec).outcome, Outcome::Succeeded);
    assert_eq!(rig.stdout(&spec), "do it");
}

#[test]
fn fault_42_no_zombie_is_left_after_runs_and_cancels() {
    let mut rig = Rig::new();
    for number in 0..30 {
        let spec = rig.script("(sleep 0.01 &) ; (exec sleep 0.02) & exec sleep 0.01");
        rig.launch(&spec);
        if number % 2 == 0 {
            rig.pool.stop(&spec.run_id, StopHow::Kill);
        }
        rig.exited();
        rig.pool.settled(&spec.run_id);
    }
    let runner = runner_pids(&rig);
    assert_eq!(runner.len(), 1, "one runner was kept for all");
    eventually("no process below the runner", || {
        flockd::proc::all_processes()
            .iter()
            .all(|stat| !runner.contains(&stat.parent))
            .then_some(())
    });
    rig.pool.close();
    eventually(
        "an idle runner that was let go leaves and is reaped",
        || {
            runner
                .iter()
                .all(|pid| flockd::proc::stat_of(*pid).is_none())
                .then_some(())
        },
    );
}

fn runner_pids(rig: &Rig) -> Vec<u32> {
    let state = rig.home.state().display().to_string();
    flockd::proc::all_processes()
        .iter()
        .map(|stat| stat.pid)
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(" runner --state") && line.contains(&state)
        })
        .collect()
}

#[test]
fn fault_45_a_background_process_does_not_delay_the_end() {
    let mut rig = Rig::new();
    let spec = rig.script("sleep 60 & echo hi");
    let started = Instant::now();
    let report = rig.run(&spec);
    assert!(started.elapsed() < PATIENCE / 2);
    assert!(report.duration_ms < 1_000, "{report:?}");
    assert_eq!(
        (report.outcome, report.stragglers_killed),
        (Outcome::Succeeded, 1)
    );
    assert_eq!(rig.stdout(&spec), "hi\n");
}

#[test]
fn fault_47_a_failure_that_leaks_keeps_its_output() {
    let mut rig = Rig::new();
    let spec = rig.script("sleep 60 & echo why it failed; exit 7");
    let report = rig.run(&spec);
    assert_eq!(
        (report.outcome, report.exit_code),
        (Outcome::Failed, Some(7))
    );
    assert_eq!(rig.stdout(&spec), "why it failed\n");
}

#[test]
fn a_term_to_the_runner_stops_its_run_and_reports_it() {
    let mut rig = Rig::new();
    let spec = rig.script("echo ready; sleep 600");
    rig.launch(&spec);
    rig.wait_for_stdout(&spec, "ready");
    for pid in runner_pids(&rig) {
        let runner = flockd::proc::identity_of(pid).unwrap();
        assert!(flockd::proc::signal(runner, flockd::proc::Sent::Term));
    }
    assert_eq!(rig.exited().outcome, Outcome::Cancelled);
    rig.pool.settled(&spec.run_id);
    eventually("the runner leaves", || {
        runner_pids(&rig).is_empty().then_some(())
    });
}
