//! A long history: what a start and a look cost over a ledger of many facts.

use crate::common::{Looping, Sandbox};
use flockd::fsx::disk::RealDisk;
use flockd::ledger::{FactBody, Ledger, NewFact, ViewSettings};
use flockd::types::{LeaseId, Outcome, RunId, TaskId, Timestamp, Verdict};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Facts of the history.
const FACTS: usize = 100_000;

/// Facts of one task of it, from its claim to its completion.
const OF_A_TASK: usize = 7;

/// A debug build replays them in about three seconds on a quiet machine; the figure is printed.
const START_WITHIN: Duration = Duration::from_secs(25);

/// A running loop has the history in memory: a look at it costs what one at an empty loop costs.
const STATUS_WITHIN: Duration = Duration::from_secs(3);

/// A task as a loop of one stage records it.
fn task(n: usize) -> Vec<NewFact> {
    let at = Timestamp::from_millis(1_700_000_000_000 + n as i64);
    let task = TaskId::new(&format!("T-{n:06}")).unwrap();
    let run = RunId::new(&format!("R{n:06}")).unwrap();
    let of_task = |body| NewFact::of_task(at, &task, body);
    let of_run = |body| NewFact::of_run(at, Some(&task), &run, body);
    let branch = format!("flockd/{task}.1");
    vec![
        of_task(claimed(n)),
        of_run(FactBody::RunIntended {
            worker: 1,
            stage: "write".to_owned(),
            role: "writer".to_owned(),
            attempt: 1,
            slots: 1,
            token: format!("{n:052}"),
        }),
        of_run(FactBody::RunStarted {
            pid: 1,
            start_ticks: 1,
            slots: vec![0],
        }),
        of_run(exited(at)),
        of_task(FactBody::StagePassed {
            worker: 1,
            stage: "write".to_owned(),
        }),
        of_task(FactBody::WorkerCaptured {
            worker: 1,
            passed: true,
            branch: branch.clone(),
            commit: "0".repeat(40),
            patch: None,
            changed_files: vec!["a".to_owned()],
        }),
        of_task(FactBody::TaskCompleted {
            branches: vec![branch],
            changed_files: vec!["a".to_owned()],
        }),
    ]
}

fn claimed(n: usize) -> FactBody {
    FactBody::TaskClaimed {
        title: format!("Task {n}"),
        iteration: 1,
        base: "0".repeat(40),
        claims: vec!["a".to_owned()],
        workers: 1,
        stages: vec!["write".to_owned()],
        lease_id: LeaseId::new(&format!("L{n:06}")).unwrap(),
        epoch: n as u64 + 1,
        retry: false,
    }
}

fn exited(at: Timestamp) -> FactBody {
    FactBody::RunExited {
        outcome: Outcome::Succeeded,
        exit_code: Some(0),
        signal: None,
        verdict: Verdict::Pass,
        detail: String::new(),
        started_at: at,
        ended_at: at,
        duration_ms: 1,
        user_ms: 1,
        system_ms: 1,
        max_rss_kib: 1,
        stdout_bytes: 1,
        stderr_bytes: 1,
        truncated: false,
        stragglers_killed: 0,
    }
}

/// Writes the history through the ledger itself; answers how many facts and tasks it has.
fn write_history(sandbox: &Sandbox) -> (usize, usize) {
    flockd::fsx::create_dir_all(&sandbox.state()).unwrap();
    let (ledger, _, notes) = Ledger::open(&sandbox.state(), Arc::new(RealDisk)).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let handle = ledger.start(ViewSettings::default());
    let tasks = FACTS.div_ceil(OF_A_TASK);
    let pending: Vec<_> = (0..tasks).map(|n| handle.append(task(n))).collect();
    for answer in pending {
        answer.wait().unwrap();
    }
    handle.close().unwrap();
    (tasks * OF_A_TASK, tasks)
}

#[test]
fn p10_a_start_over_100_000_facts_is_bounded_and_right() {
    let sandbox = Sandbox::new();
    sandbox.configure_shell("");
    std::fs::create_dir(sandbox.root().join("tasks")).unwrap();
    let (facts, tasks) = write_history(&sandbox);
    let began = Instant::now();
    let ended = Looping::start(&sandbox, &[]).ended();
    let took = began.elapsed();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert!(took < START_WITHIN, "{took:?}");
    let view = sandbox.read(".flockd/auto_loop_state.json");
    let view: serde_json::Value = serde_json::from_str(&view).unwrap();
    assert_eq!(view["completed_count"], json!(tasks));
    let shown = view["completed_task_ids"].as_array().map(Vec::len);
    assert_eq!(shown, Some(1_000));
    eprintln!("{facts} facts: a loop with an empty queue takes {took:?}");
    looks_are_flat(&sandbox, tasks);
    sandbox.verify();
}

/// With a loop that runs, over the same history.
fn looks_are_flat(sandbox: &Sandbox, tasks: usize) {
    sandbox.task("now", "title = \"Now\"", &sandbox.until_open("gate"));
    // A task of the distant past is still known to be done.
    sandbox.task("T-000000", "title = \"Done long ago\"", "");
    let mut looping = Looping::start(sandbox, &[]);
    looping.is_up(sandbox);
    sandbox.running(1);
    let began = Instant::now();
    let status = sandbox.json(&["status", "--json"]);
    let took = began.elapsed();
    eprintln!("`flockd status` of a running loop takes {took:?}");
    assert!(took < STATUS_WITHIN, "{took:?}");
    assert_eq!(status["tasks"]["completed"], tasks, "{status}");
    let why = sandbox.json(&["why", "T-000000", "--json"]);
    assert_eq!(why["state"], "completed", "{why}");
    sandbox.open_gate("gate");
    let ended = looping.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
}
