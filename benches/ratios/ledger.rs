//! What a fact costs: with a short and a long history, and how many are durable in a second.

use crate::baseline::{cost, synced_appends};
use crate::table::{Aim, Table, median};
use flockd::fsx::disk::RealDisk;
use flockd::ledger::{FactBody, Ledger, LedgerHandle, NewFact, ViewSettings};
use flockd::types::{LeaseId, Outcome, RunId, TaskId, Timestamp, Verdict};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Facts of the short and of the long history.
const SHORT: u32 = 1_000;
const LONG: u32 = 100_000;

/// Tasks recorded in one round, each with five facts in one append.
const TASKS: u32 = 400;
const FACTS_PER_TASK: u32 = 5;

/// Rounds, interleaved.
const ROUNDS: usize = 5;

/// Bytes of the baseline's record.
const RECORD_BYTES: usize = 256;

/// Threads that each wait for their own fact, with facts per thread and the aim.
const PRODUCERS: [(u32, u32, f64); 3] = [(1, 400, 0.7), (8, 250, 2.5), (32, 150, 5.0)];

/// Measures and adds the rows.
pub(crate) fn measure(folder: &Path, table: &mut Table) {
    growth(folder, table);
    group_commit(folder, table);
}

fn open(state: &Path) -> LedgerHandle {
    flockd::fsx::create_dir_all(state).unwrap();
    let (ledger, _, _) = Ledger::open(state, Arc::new(RealDisk)).unwrap();
    ledger.start(ViewSettings::default())
}

fn growth(folder: &Path, table: &mut Table) {
    let open_with = |name: &str, facts: u32| {
        let ledger = open(&folder.join(name));
        for first in (0..facts / FACTS_PER_TASK).step_by(200) {
            let tasks = (first..first + 200).flat_map(|number| task("old", number));
            ledger.append(tasks.collect()).wait().unwrap();
        }
        ledger
    };
    let (short, long) = (
        open_with("ledger-short", SHORT),
        open_with("ledger-long", LONG),
    );
    let micros = |ledger: &LedgerHandle, round: usize| {
        let spent = cost(|| {
            for number in 0..TASKS {
                ledger
                    .append(task(&format!("new-{round}"), number))
                    .wait()
                    .unwrap();
            }
        });
        spent.cpu.as_secs_f64() * 1e6 / f64::from(TASKS * FACTS_PER_TASK)
    };
    let (mut exponents, mut few, mut many) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (with_short, with_long) = (micros(&short, round), micros(&long, round));
        exponents.push((with_long / with_short).ln() / f64::from(LONG / SHORT).ln());
        few.push(with_short);
        many.push(with_long);
    }
    short.close().unwrap();
    long.close().unwrap();
    table.add(
        "growth exponent of a fact's CPU, 1,000 to 100,000 facts",
        median(exponents),
        Some(Aim::AtMost(0.15)),
        format!("{:.1} µs against {:.1} µs", median(many), median(few)),
    );
}

fn group_commit(folder: &Path, table: &mut Table) {
    let ledger = open(&folder.join("ledger-group"));
    for (threads, each, aim) in PRODUCERS {
        let (mut ratios, mut ours, mut base) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let alone = synced_appends(&folder.join("synced"), 300, RECORD_BYTES);
            let together = facts_per_second(&ledger, threads, each);
            ratios.push(together / alone);
            ours.push(together);
            base.push(alone);
        }
        table.add(
            &format!("durable facts per second ÷ one sync per record, {threads} waiting"),
            median(ratios),
            Some(Aim::AtLeast(aim)),
            format!("{:.0}/s against {:.0}/s", median(ours), median(base)),
        );
    }
    ledger.close().unwrap();
}

fn facts_per_second(ledger: &LedgerHandle, threads: u32, each: u32) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for number in 0..each {
                    let run = RunId::new(&format!("G{number}")).unwrap();
                    ledger
                        .append(vec![NewFact::of_run(at(), None, &run, intended())])
                        .wait()
                        .unwrap();
                }
            });
        }
    });
    f64::from(threads * each) / start.elapsed().as_secs_f64()
}

fn at() -> Timestamp {
    Timestamp::from_millis(1_000)
}

fn intended() -> FactBody {
    FactBody::RunIntended {
        worker: 1,
        stage: "write".to_owned(),
        role: "writer".to_owned(),
        attempt: 1,
        slots: 1,
        token: "0123456789abcdef0123456789abcdef".to_owned(),
    }
}

/// The facts of one task from its claim to its completion.
fn task(prefix: &str, number: u32) -> Vec<NewFact> {
    let task = TaskId::new(&format!("{prefix}-{number}")).unwrap();
    let run = RunId::new(&format!("R-{prefix}-{number}")).unwrap();
    let claimed = FactBody::TaskClaimed {
        title: "Add a widget".to_owned(),
        iteration: 1,
        base: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        claims: vec![format!("src/{prefix}/{number}.rs")],
        workers: 1,
        stages: vec!["write".to_owned()],
        lease_id: LeaseId::new(&format!("L-{prefix}-{number}")).unwrap(),
        epoch: u64::from(number) + 1,
        retry: false,
    };
    let exited = FactBody::RunExited {
        outcome: Outcome::Succeeded,
        exit_code: Some(0),
        signal: None,
        verdict: Verdict::Pass,
        detail: String::new(),
        started_at: at(),
        ended_at: at(),
        duration_ms: 1,
        user_ms: 1,
        system_ms: 1,
        max_rss_kib: 1_000,
        stdout_bytes: 100,
        stderr_bytes: 0,
        truncated: false,
        stragglers_killed: 0,
    };
    let completed = FactBody::TaskCompleted {
        branches: vec![format!("flockd/{prefix}-{number}.1")],
        changed_files: vec![format!("src/{prefix}/{number}.rs")],
    };
    let started = FactBody::RunStarted {
        pid: 1,
        start_ticks: 1,
        slots: vec![0],
    };
    vec![
        NewFact::of_task(at(), &task, claimed),
        NewFact::of_run(at(), Some(&task), &run, intended()),
        NewFact::of_run(at(), Some(&task), &run, started),
        NewFact::of_run(at(), Some(&task), &run, exited),
        NewFact::of_task(at(), &task, completed),
    ]
}
