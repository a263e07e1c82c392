//! Bounds and outcomes: every way a run can go wrong is one named end of that run.

use super::rig::{Rig, members};
use flockd::types::{LeaseId, Outcome};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn a_run_writes_its_end_with_every_key() {
    let mut rig = Rig::new();
    let spec = rig.script("echo out; echo error >&2; exit 3");
    let report = rig.run(&spec);
    assert_eq!(
        (report.outcome, report.exit_code, report.signal),
        (Outcome::Failed, Some(3), None)
    );
    assert_eq!(
        (report.stdout_bytes, report.stderr_bytes, report.truncated),
        (4, 6, false)
    );
    assert!(report.max_rss_kib > 0 && report.ended_at >= report.started_at);
    let written = flockd::runner::read_exit(&rig.home.state(), &spec.run_id).unwrap();
    assert_eq!(written, Some(report));
    let stdout = rig.dir(&spec.run_id).join("stdout.log").metadata().unwrap();
    assert_eq!(stdout.mode() & 0o777, 0o600);
}

#[test]
fn a_signal_that_is_not_ours_is_killed() {
    let mut rig = Rig::new();
    let spec = rig.script("kill -9 $$");
    let report = rig.run(&spec);
    assert_eq!(
        (report.outcome, report.signal, report.exit_code),
        (Outcome::Killed, Some(9), None)
    );
}

#[test]
fn the_deadline_counts_from_the_spawn() {
    let mut rig = Rig::new();
    let mut spec = rig.script("trap '' TERM; while :; do sleep 0.05; done");
    (spec.limits.deadline_ms, spec.limits.grace_ms) = (200, 100);
    let report = rig.run(&spec);
    assert_eq!((report.outcome, members(&spec)), (Outcome::TimedOut, 0));
    assert!((290..10_000).contains(&report.duration_ms), "{report:?}");
}

#[test]
fn idle_is_neither_output_nor_cpu_time() {
    let mut rig = Rig::new();
    let mut spec = rig.script("sleep 600");
    spec.limits.idle_ms = 300;
    assert_eq!(rig.run(&spec).outcome, Outcome::Idle);
    // Output counts.
    spec = rig.script("for i in 1 2 3 4 5 6 7 8; do echo; sleep 0.15; done");
    spec.limits.idle_ms = 600;
    assert_eq!(rig.run(&spec).outcome, Outcome::Succeeded);
    // CPU time of a grandchild counts.
    spec = rig.script("sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; true");
    spec.limits.idle_ms = 300;
    assert_eq!(rig.run(&spec).outcome, Outcome::Succeeded);
}

#[test]
fn output_stop_stops() {
    let mut rig = Rig::new();
    let mut spec = rig.script("yes");
    (spec.limits.output_max, spec.limits.output_stop) = (1 << 20, 4 << 20);
    let report = rig.run(&spec);
    assert_eq!(
        (report.outcome, report.truncated),
        (Outcome::OutputLimit, true)
    );
    assert!(report.stdout_bytes > 4 << 20);
}

#[test]
fn fault_46_floods_on_both_streams_end() {
    let mut rig = Rig::new();
    let spec = rig.script("head -c 20000000 /dev/zero >&2 & head -c 20000000 /dev/zero; wait");
    let report = rig.run(&spec);
    assert_eq!(report.outcome, Outcome::Succeeded);
    assert_eq!(
        (report.stdout_bytes, report.stderr_bytes),
        (20_000_000, 20_000_000)
    );
}

#[test]
fn fault_48_a_flood_is_cut_and_the_child_is_not_blocked() {
    let mut rig = Rig::new();
    let mut spec = rig.script("yes | head -c 100000000; sleep 0.2");
    spec.limits.output_max = 1 << 20;
    let report = rig.run(&spec);
    assert_eq!(
        (report.outcome, report.truncated),
        (Outcome::Succeeded, true)
    );
    assert_eq!(report.stdout_bytes, 100_000_000);
    let text = rig.stdout(&spec);
    assert!(text.len() < (1 << 20) + 200, "{}", text.len());
    assert!(text.ends_with("\n[flockd: cut at 1MiB, 100000000 bytes were written]\n"));
}

#[test]
fn what_cannot_be_started_is_named() {
    let mut rig = Rig::new();
    let file = |name: &str, text: &str, mode: u32| {
        let path = rig.home.file(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    };
    let plain = file("plain", "x", 0o644);
    let garbage = file("garbage", "no shebang", 0o755);
    let lost = file("lost", "#!/no/such/interpreter\n", 0o755);
    for (program, says) in [
        ("no-such-program", "no-such-program is not in PATH"),
        ("/no/such/program", "/no/such/program does not exist"),
        (plain.as_str(), "may not be executed"),
        ("/tmp", "may not be executed"),
        (garbage.as_str(), "neither a binary"),
        (lost.as_str(), "interpreter"),
    ] {
        let spec = rig.spec(&[program]);
        let report = rig.run(&spec);
        assert_eq!(report.outcome, Outcome::SpawnFailed, "{program}");
        assert!(report.detail.contains(says), "{program}: {}", report.detail);
    }
    let mut spec = rig.script("true");
    spec.cwd = rig.home.file("removed");
    let report = rig.run(&spec);
    assert_eq!(report.outcome, Outcome::SpawnFailed);
    assert!(
        report.detail.contains("removed cannot be entered"),
        "{}",
        report.detail
    );
    // The runner is as good as before.
    let spec = rig.script("pwd");
    assert_eq!(rig.run(&spec).outcome, Outcome::Succeeded);
    assert_eq!(rig.stdout(&spec), "/\n");
}

#[test]
fn fault_49_a_missing_run_folder_spoils_one_run() {
    let mut rig = Rig::new();
    let spec = rig.script("true");
    std::fs::remove_dir_all(rig.dir(&spec.run_id)).unwrap();
    let report = rig.run(&spec);
    assert_eq!(report.outcome, Outcome::SpawnFailed);
    assert!(report.detail.contains("stdout.log"), "{}", report.detail);
    let spec = rig.script("true");
    assert_eq!(rig.run(&spec).outcome, Outcome::Succeeded);
}

#[test]
fn a_released_lease_cancels_the_run_before_it_begins() {
    let mut rig = Rig::new();
    let mut spec = rig.script("true");
    spec.lease_id = Some(LeaseId::new("L1").unwrap());
    let report = rig.run(&spec);
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(
        report.detail.contains("lease L1 was released"),
        "{}",
        report.detail
    );
    let live = rig.home.state().join("leases/L1.live");
    std::fs::create_dir_all(live.parent().unwrap()).unwrap();
    std::fs::write(&live, "").unwrap();
    let mut spec = rig.script("echo ready; read x </dev/stdin; sleep 600");
    spec.lease_id = Some(LeaseId::new("L1").unwrap());
    rig.launch(&spec);
    rig.wait_for_stdout(&spec, "ready");
    let taken = flockd::fsx::lock::Lock::try_exclusive(&live).unwrap();
    assert!(taken.is_none(), "the lease lives as long as the run");
    rig.pool.stop(&spec.run_id, flockd::runner::StopHow::Kill);
    rig.exited();
    rig.pool.settled(&spec.run_id);
    crate::common::eventually("the lease is free", || {
        flockd::fsx::lock::Lock::try_exclusive(&live).unwrap()
    });
}

#[test]
fn fault_55_a_program_just_written_is_started() {
    let mut rig = Rig::new();
    let program = rig.home.file("program");
    std::fs::write(&program, "#!/bin/sh\necho done\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut writer = std::fs::OpenOptions::new()
        .append(true)
        .open(&program)
        .unwrap();
    writer.write_all(b"# still being written\n").unwrap();
    let spec = rig.spec(&[program.to_str().unwrap()]);
    rig.launch(&spec);
    // The runner meets "text file busy" until this closes; nothing here can observe that it has tried.
    std::thread::yield_now();
    drop(writer);
    assert_eq!(rig.exited().outcome, Outcome::Succeeded);
    rig.pool.settled(&spec.run_id);
}
