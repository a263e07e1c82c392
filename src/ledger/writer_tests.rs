use super::super::fact::FactBody;
use super::super::inbox::Inbox;
use super::super::log::LedgerLimits;
use super::super::reader::{read_facts, verify};
use super::super::state::LedgerState;
use super::super::testing::*;
use super::*;
use crate::fsx::disk::{DiskOp, Fault, FaultDisk, RealDisk};
use std::path::Path;

fn open(dir: &Path) -> (Ledger, LedgerState, Vec<RecoveryNote>) {
    Ledger::open(dir, Arc::new(RealDisk)).unwrap()
}

fn handle(dir: &Path) -> LedgerHandle {
    open(dir).0.start(ViewSettings::default())
}

fn view(dir: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(dir.join(VIEW_FILE)).unwrap()).unwrap()
}

fn complete(handle: &LedgerHandle, name: &str) -> Result<u64, LedgerError> {
    handle.append(vec![new_fact(name, completed())]).wait()
}

#[test]
fn facts_come_back_after_a_restart_with_the_same_state() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = handle(dir.path());
    for fact in history() {
        let new = NewFact {
            at: fact.at,
            task: fact.task.clone(),
            run: fact.run.clone(),
            body: fact.body.clone(),
        };
        assert_eq!(ledger.append(vec![new]).wait().unwrap(), fact.seq);
    }
    ledger.close().unwrap();
    ledger.close().unwrap();
    assert!(matches!(complete(&ledger, "T-9"), Err(LedgerError::Closed)));
    let mut expected = LedgerState::default();
    for fact in history() {
        expected.apply(&fact);
    }
    let (_, state, notes) = open(dir.path());
    assert_eq!((state, notes), (expected, vec![]));
    let read: Vec<Fact> = read_facts(dir.path(), 0).map(Result::unwrap).collect();
    assert_eq!(read, history());
    assert_eq!(view(dir.path())["ledger"]["seq"], 15);
    assert_eq!(view(dir.path())["daemon"], serde_json::Value::Null);
}

#[test]
fn behaviour_013_64_threads_complete_and_nothing_is_lost_or_doubled() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = handle(dir.path());
    std::thread::scope(|scope| {
        for n in 0..64 {
            let ledger = &ledger;
            scope.spawn(move || {
                complete(ledger, &format!("T-{n}")).unwrap();
                complete(ledger, "T-same").unwrap();
            });
        }
    });
    ledger.close().unwrap();
    let (_, state, _) = open(dir.path());
    assert_eq!(state.counts().completed, 65);
    assert_eq!(state.last_seq(), 128);
    let shown = view(dir.path())["completed_task_ids"].clone();
    let mut shown: Vec<String> = serde_json::from_value(shown).unwrap();
    shown.sort();
    shown.dedup();
    assert_eq!(shown.len(), 65);
}

#[test]
fn behaviour_014_every_view_that_is_read_while_24_write_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = handle(dir.path());
    ledger.flush_view().wait().unwrap();
    std::thread::scope(|scope| {
        for n in 0..24 {
            let ledger = &ledger;
            scope.spawn(move || {
                for k in 0..4 {
                    complete(ledger, &format!("T-{n}-{k}")).unwrap();
                }
            });
            let dir = dir.path();
            scope.spawn(move || {
                let mut last = 0;
                for _ in 0..4 {
                    ledger.flush_view().wait().unwrap();
                    let seq = view(dir)["ledger"]["seq"].as_u64().unwrap();
                    assert!(seq >= last, "a view went back");
                    last = seq;
                }
            });
        }
    });
    ledger.close().unwrap();
    assert_eq!(view(dir.path())["completed_count"], 96);
}

#[test]
fn a_batch_is_one_write_and_one_sync() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultDisk::new(Arc::new(RealDisk));
    let (ledger, ..) = Ledger::open(dir.path(), Arc::new(disk.clone())).unwrap();
    let ledger = ledger.start(ViewSettings::default());
    let before = disk.count(DiskOp::SyncData);
    let facts: Vec<NewFact> = (0..100)
        .map(|n| new_fact(&format!("T-{n}"), completed()))
        .collect();
    assert_eq!(ledger.append(facts).wait().unwrap(), 100);
    assert_eq!(disk.count(DiskOp::SyncData) - before, 1);
    assert_eq!(disk.count(DiskOp::Append), 1);
    ledger.close().unwrap();
}

#[test]
fn p3_a_subscriber_sees_a_fact_after_it_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = handle(dir.path());
    let mut facts = ledger.subscribe();
    ledger
        .append(vec![new_fact("T-1", completed())])
        .wait()
        .unwrap();
    let fact = facts.blocking_recv().unwrap();
    assert_eq!((fact.seq, &fact.body), (1, &completed()));
    ledger.close().unwrap();
}

#[test]
fn fault_10_the_first_error_of_the_disk_is_the_last_word() {
    for op in [DiskOp::Append, DiskOp::SyncData] {
        let dir = tempfile::tempdir().unwrap();
        let disk = FaultDisk::new(Arc::new(RealDisk));
        let (ledger, ..) = Ledger::open(dir.path(), Arc::new(disk.clone())).unwrap();
        let ledger = ledger.start(ViewSettings::default());
        let mut published = ledger.subscribe();
        complete(&ledger, "T-1").unwrap();
        // Once only: the disk is healthy again at once, as a kernel is that dropped the pages.
        disk.plan(Some(Fault {
            op: Some(op),
            nth: 1,
            errno: 28,
            for_good: false,
        }));
        let first = complete(&ledger, "T-2").unwrap_err();
        assert!(first.is_no_space(), "{first}");
        let second = complete(&ledger, "T-3").unwrap_err();
        assert_eq!(first.to_string(), second.to_string());
        assert_eq!(
            disk.count(DiskOp::SyncData),
            if op == DiskOp::Append { 2 } else { 3 }
        );
        assert_eq!(ledger.close().unwrap_err().to_string(), first.to_string());
        published.blocking_recv().unwrap();
        assert!(published.try_recv().is_err(), "no phantom");
        assert_eq!(
            view(dir.path())["completed_task_ids"],
            serde_json::json!(["T-1"])
        );
        let (_, state, _) = open(dir.path());
        assert!(state.is_completed(&task("T-1")));
        assert!(!state.is_completed(&task("T-3")));
    }
}

#[test]
fn fault_01_a_view_that_cannot_be_written_stays_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultDisk::new(Arc::new(RealDisk));
    let (ledger, ..) = Ledger::open(dir.path(), Arc::new(disk.clone())).unwrap();
    let ledger = ledger.start(ViewSettings::default());
    complete(&ledger, "T-1").unwrap();
    ledger.flush_view().wait().unwrap();
    let before = std::fs::read(dir.path().join(VIEW_FILE)).unwrap();
    disk.plan(Some(Fault {
        op: Some(DiskOp::Rename),
        nth: 1,
        errno: 28,
        for_good: true,
    }));
    complete(&ledger, "T-2").unwrap();
    ledger.flush_view().wait().unwrap();
    assert_eq!(std::fs::read(dir.path().join(VIEW_FILE)).unwrap(), before);
    disk.plan(None);
    ledger.close().unwrap();
    assert_eq!(view(dir.path())["completed_count"], 2);
}

#[test]
fn segments_are_rotated_sealed_and_chained() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let limits = LedgerLimits {
        segment_bytes: 2_000,
        ..LedgerLimits::default()
    };
    for round in 0..3 {
        let (ledger, state, _) = Ledger::open_with(dir.path(), Arc::new(RealDisk), limits).unwrap();
        assert_eq!(state.last_seq(), round * 20);
        let ledger = ledger.start(ViewSettings::default());
        for n in 0..20 {
            complete(&ledger, &format!("T-{round}-{n}")).unwrap();
        }
        ledger.close().unwrap();
    }
    let verified = verify(dir.path()).unwrap();
    assert_eq!(
        (verified.facts, verified.last_seq, verified.torn_tail),
        (60, 60, false)
    );
    assert!(verified.segments > 4);
    assert_eq!(view(dir.path())["ledger"]["segment"], verified.segments);
    let mode = |number| {
        let path = super::super::segment::segment_path(&dir.path().join("ledger"), number);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode(1), mode(verified.segments)), (0o400, 0o600));
    for since in [0, 7, 31, 59, 60, 99] {
        let read: Vec<u64> = read_facts(dir.path(), since)
            .map(|fact| fact.unwrap().seq)
            .collect();
        assert_eq!(read, (since + 1..=60).collect::<Vec<_>>());
    }
}

#[test]
fn an_inbox_is_taken_in_when_its_process_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = handle(dir.path());
    let mut inbox = Inbox::create(dir.path()).unwrap();
    inbox.append(&[new_fact("T-1", completed())]).unwrap();
    ledger.ingest_inbox().wait().unwrap();
    assert_eq!(verify(dir.path()).unwrap().facts, 0);
    inbox
        .append(&[new_fact("T-2", completed()), new_fact("T-3", completed())])
        .unwrap();
    let path = inbox.path().to_owned();
    drop(inbox);
    assert_eq!(ledger.ingest_inbox().wait().unwrap(), 3);
    assert!(!path.exists());
    ledger.close().unwrap();
    // Without a daemon the next open takes it in.
    let mut inbox = Inbox::create(dir.path()).unwrap();
    inbox.append(&[new_fact("T-4", completed())]).unwrap();
    drop(inbox);
    let (_, state, notes) = open(dir.path());
    assert_eq!(state.counts().completed, 4);
    assert!(matches!(
        notes[..],
        [RecoveryNote::Ingested { facts: 1, .. }]
    ));
    assert_eq!(verify(dir.path()).unwrap().facts, 4);
}

#[test]
fn fault_04_a_damaged_inbox_is_kept_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let mut inbox = Inbox::create(dir.path()).unwrap();
    for n in 1..4 {
        inbox
            .append(&[new_fact(&format!("T-{n}"), completed())])
            .unwrap();
    }
    let path = inbox.path().to_owned();
    drop(inbox);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(3).position(|w| w == b"T-2").unwrap();
    bytes[at] = b'X';
    crate::fsx::replace_cached(&path, &bytes).unwrap();
    let (_, state, notes) = open(dir.path());
    assert!(state.is_completed(&task("T-1")));
    assert_eq!(state.counts().completed, 1);
    assert_eq!(notes.len(), 2);
    let kept = path.with_extension("damaged");
    assert_eq!(std::fs::read(kept).unwrap(), bytes);
    let shown = state.view(&ViewContext::default())["warnings"].to_string();
    assert!(shown.contains("damaged inbox"), "{shown}");
    assert_eq!(open(dir.path()).2, vec![]);
}

#[test]
fn the_next_task_is_shown_when_it_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = handle(dir.path());
    ledger.set_next_task(Some(task("T-7")));
    ledger.flush_view().wait().unwrap();
    assert_eq!(view(dir.path())["next_task_id"], "T-7");
    ledger.set_next_task(None);
    ledger.close().unwrap();
    assert_eq!(view(dir.path())["next_task_id"], serde_json::Value::Null);
}

/// Bytes and time of the facts from `from` on, in a ledger that has so many already.
fn cost_of_500_facts(ledger: &LedgerHandle, disk: &FaultDisk, from: usize) -> (u64, Duration) {
    let (bytes, began) = (disk.bytes(), Instant::now());
    for n in from..from + 500 {
        complete(ledger, &format!("T-{n:07}")).unwrap();
    }
    (disk.bytes() - bytes, began.elapsed())
}

#[test]
fn p10_the_cost_of_a_fact_does_not_grow_with_history() {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultDisk::new(Arc::new(RealDisk));
    let (ledger, ..) = Ledger::open(dir.path(), Arc::new(disk.clone())).unwrap();
    let ledger = ledger.start(ViewSettings::default());
    let fill = |range: std::ops::Range<usize>| {
        let facts: Vec<NewFact> = range
            .map(|n| new_fact(&format!("T-{n:07}"), completed()))
            .collect();
        ledger.append(facts).wait().unwrap();
    };
    fill(0..1_500);
    let (bytes_early, time_early) = cost_of_500_facts(&ledger, &disk, 1_500);
    for chunk in 0..49 {
        fill(2_000 + chunk * 2_000..4_000 + chunk * 2_000);
    }
    let (bytes_late, time_late) = cost_of_500_facts(&ledger, &disk, 100_000);
    ledger.close().unwrap();
    // The number of views depends on the time taken; each is of bounded size.
    let views = |time: Duration| 30_000 * (2 + time.as_millis() as u64 / 50);
    assert!(
        bytes_late <= bytes_early + 500 * 16 + views(time_late),
        "{bytes_early} {bytes_late}"
    );
    // Generous: the machine is shared.
    assert!(
        time_late <= time_early * 8 + Duration::from_secs(1),
        "{time_early:?} {time_late:?}"
    );
    println!("500 facts: {bytes_early} B {time_early:?}, {bytes_late} B {time_late:?} at 100k");
}

#[test]
fn replay_is_fast() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = handle(dir.path());
    // An optimised build replays 100,000 facts.
    let tasks = if cfg!(debug_assertions) {
        500
    } else {
        10_000_u64
    };
    for chunk in 0..tasks {
        let name = format!("T-{chunk}");
        let run = format!("R-{chunk}");
        let of_run = |body| NewFact::of_run(at(chunk), Some(&task(&name)), &run_id(&run), body);
        let of_task = |body| NewFact::of_task(at(chunk), &task(&name), body);
        let passed = |stage: &str| FactBody::StagePassed {
            worker: 1,
            stage: stage.into(),
        };
        let facts = vec![
            of_task(claimed(1)),
            of_run(intended(1, "write")),
            of_run(started()),
            of_run(exited()),
            of_task(passed("write")),
            of_run(intended(1, "write")),
            of_run(started()),
            of_run(exited()),
            of_task(passed("review")),
            of_task(completed()),
        ];
        drop(ledger.append(facts));
    }
    ledger.close().unwrap();
    let began = Instant::now();
    let (_, state, _) = open(dir.path());
    let took = began.elapsed();
    println!("replay of {} facts: {took:?}", state.last_seq());
    assert_eq!(state.last_seq(), tasks * 10);
    assert_eq!(state.counts().completed as u64, tasks);
    // The goal is 0.5 s; the bound leaves room for a busy machine.
    let bound = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 2 });
    assert!(took < bound, "{took:?}");
}
