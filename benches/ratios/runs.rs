//! What a run costs through kept runners, against a bare `posix_spawn` loop with the same child.

use crate::baseline::{Cost, cost, no_op, spawn_loop};
use crate::table::{Aim, Table, median};
use flockd::runner::{Pool, PoolSettings, RunInput, RunLimits, RunSpec, RunnerEvent, run_dir};
use flockd::types::{Outcome, RunId, Timestamp};
use nix::sys::wait::{WaitPidFlag, waitpid};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::unbounded_channel;

/// Children of one round, and how many are alive at once.
const COUNT: usize = 2_000;
const AT_ONCE: usize = 8;

/// Rounds, interleaved with the baseline.
const ROUNDS: usize = 5;

/// How long runners may take to leave after a round.
const LEAVE_MAX: Duration = Duration::from_secs(10);

/// Measures and adds the rows.
pub(crate) fn measure(folder: &Path, table: &mut Table) {
    let program = no_op(folder);
    let (mut cpu, mut wall, mut micros) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let raw = cost(|| spawn_loop(&program, COUNT, AT_ONCE));
        let state = folder.join(format!("runs-{round}"));
        flockd::fsx::create_dir_all(&state).unwrap();
        let ours = cost(|| through_runners(&state, &program));
        cpu.push(ours.cpu.as_secs_f64() / raw.cpu.as_secs_f64());
        wall.push(raw.wall.as_secs_f64() / ours.wall.as_secs_f64());
        micros.push((per_run(&ours), per_run(&raw)));
    }
    let (ours, raw): (Vec<f64>, Vec<f64>) = micros.into_iter().unzip();
    table.add(
        "CPU per run ÷ bare posix_spawn, all files, no facts",
        median(cpu),
        Some(Aim::AtMost(2.5)),
        format!(
            "{:.0} µs against {:.0} µs, {AT_ONCE} at once",
            median(ours),
            median(raw)
        ),
    );
    table.add(
        "runs per second ÷ bare posix_spawn, all files, no facts",
        median(wall),
        Some(Aim::AtLeast(0.5)),
        format!("{COUNT} runs a round"),
    );
}

#[expect(clippy::cast_precision_loss, reason = "a count of runs")]
fn per_run(cost: &Cost) -> f64 {
    cost.cpu.as_secs_f64() * 1e6 / COUNT as f64
}

/// Runs them all and waits until the runners are reaped, so that their CPU time counts as ours.
fn through_runners(state: &Path, program: &Path) {
    let runtime_dir = flockd::fsx::runtime_dir(state).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (sender, mut events) = unbounded_channel();
        let settings = PoolSettings {
            state_dir: state.to_owned(),
            runtime_dir: runtime_dir.clone(),
            exe: std::env::current_exe().unwrap(),
            prefix: "b".to_owned(),
        };
        let pool = Pool::new(settings, sender);
        let mut started = 0;
        let mut ended = 0;
        while ended < COUNT {
            while started < COUNT && started - ended < AT_ONCE {
                pool.launch(prepare(state, program, started)).await.unwrap();
                started += 1;
            }
            match events.recv().await.unwrap() {
                RunnerEvent::Exited { run_id, report } => {
                    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
                    pool.settled(&run_id);
                    ended += 1;
                }
                RunnerEvent::RunnerDied { run_id } => panic!("the runner of {run_id} died"),
                RunnerEvent::Started { .. } | RunnerEvent::WaitingForSlot { .. } => {}
            }
        }
        pool.close();
        wait_until_childless().await;
    });
    drop(std::fs::remove_dir_all(runtime_dir));
}

async fn wait_until_childless() {
    let end = Instant::now() + LEAVE_MAX;
    while waitpid(None, Some(WaitPidFlag::WNOHANG)) != Err(nix::errno::Errno::ECHILD) {
        assert!(Instant::now() < end, "a runner stays");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// What the daemon does before a launch: the folder and `spec.json`.
fn prepare(state: &Path, program: &Path, number: usize) -> RunSpec {
    let run_id = RunId::new(&format!("R{number:06}")).unwrap();
    let token = format!("bench-{}-{number}", std::process::id());
    let spec = RunSpec {
        run_id: run_id.clone(),
        task_id: None,
        worker: 1,
        stage: "bench".to_owned(),
        role: "bench".to_owned(),
        attempt: 1,
        argv: vec![program.to_str().unwrap().to_owned()],
        cwd: state.to_owned(),
        env: vec![("FLOCKD_TOKEN".to_owned(), token.clone())],
        input: RunInput::Null,
        limits: RunLimits {
            deadline_ms: 60_000,
            idle_ms: 60_000,
            grace_ms: 1_000,
            output_max: 1 << 20,
            output_stop: 0,
        },
        slots: 1,
        ceiling: u32::try_from(AT_ONCE).unwrap(),
        lease_id: None,
        lease_epoch: None,
        token,
        created_at: Timestamp::from_millis(0),
    };
    let dir = run_dir(state, &run_id);
    flockd::fsx::create_dir_all(&dir).unwrap();
    flockd::fsx::replace_cached(&dir.join("spec.json"), spec.spec_json().as_bytes()).unwrap();
    spec
}
