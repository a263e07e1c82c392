use super::super::inbox::Inbox;
use super::super::testing::*;
use super::*;
use crate::fsx::disk::{CrashDisk, Cut, DataKept, NamesKept, Survival};
use std::collections::BTreeMap;

/// Small, so that the history rotates several times.
const LIMITS: LedgerLimits = LedgerLimits {
    segment_bytes: 500,
    batch_facts: 3,
    batch_bytes: 1 << 20,
};

fn root() -> &'static Path {
    Path::new("/state")
}

fn open(disk: &CrashDisk) -> Result<(Ledger, LedgerState, Vec<RecoveryNote>), LedgerError> {
    Ledger::open_with(root(), Arc::new(disk.clone()), LIMITS)
}

fn facts(names: &[&str]) -> Vec<NewFact> {
    names
        .iter()
        .map(|name| new_fact(name, completed()))
        .collect()
}

/// What was acknowledged, by whom it was asked.
#[derive(Default)]
struct Acknowledged(Vec<String>);

impl Acknowledged {
    fn by_inbox(&mut self, inbox: &mut Inbox, names: &[&str]) {
        if inbox.append(&facts(names)).is_ok() {
            self.0.extend(names.iter().map(|name| (*name).to_owned()));
        }
    }

    fn by_ledger(&mut self, ledger: &LedgerHandle, names: &[&str]) {
        if ledger.append(facts(names)).wait().is_ok() {
            self.0.extend(names.iter().map(|name| (*name).to_owned()));
        }
    }
}

/// Two processes beside the daemon, single facts, batches, rotations, views, an ingestion while the
/// daemon lives and one at its start.
fn history(disk: &CrashDisk) -> Vec<String> {
    let mut acknowledged = Acknowledged::default();
    if let Ok(mut inbox) = Inbox::create_on(disk, root()) {
        acknowledged.by_inbox(&mut inbox, &["I-1", "I-2"]);
        acknowledged.by_inbox(&mut inbox, &["I-3", "I-4", "I-5"]);
    }
    let Ok((ledger, state, _)) = open(disk) else {
        return acknowledged.0;
    };
    for name in &acknowledged.0 {
        assert!(state.is_completed(&task(name)), "{name} was not taken in");
    }
    let ledger = ledger.start(ViewSettings::default());
    acknowledged.by_ledger(&ledger, &["T-1"]);
    acknowledged.by_ledger(&ledger, &["T-2", "T-3", "T-4"]);
    drop(ledger.flush_view().wait());
    if let Ok(mut inbox) = Inbox::create_on(disk, root()) {
        acknowledged.by_inbox(&mut inbox, &["J-1"]);
        acknowledged.by_ledger(&ledger, &["T-5"]);
        acknowledged.by_inbox(&mut inbox, &["J-2", "J-3"]);
    }
    drop(ledger.ingest_inbox().wait());
    acknowledged.by_ledger(&ledger, &["T-6"]);
    acknowledged.by_ledger(&ledger, &["T-7"]);
    drop(ledger.flush_view().wait());
    drop(ledger.close());
    acknowledged.0
}

const NAMES: [&str; 15] = [
    "I-1", "I-2", "I-3", "I-4", "I-5", "T-1", "T-2", "T-3", "T-4", "T-5", "T-6", "T-7", "J-1",
    "J-2", "J-3",
];

/// Every fact on the disk, by its task; the scan proves that numbers and checksums have no gap.
fn facts_on(disk: &CrashDisk) -> (BTreeMap<String, usize>, u64) {
    let dir = ledger_dir(root());
    let mut chain = Chain::START;
    let mut found = BTreeMap::new();
    for number in segment_numbers(&dir, &disk.list(&dir).unwrap()).unwrap() {
        let bytes = disk.read(&segment_path(&dir, number)).unwrap().unwrap();
        let end = scan(&bytes, &mut chain, Tail::Whole, &mut |line| {
            let task = line.fact.task.unwrap().to_string();
            *found.entry(task).or_default() += 1;
        });
        assert_eq!(end, End::Clean);
    }
    (found, chain.seq)
}

fn check(disk: &CrashDisk, acknowledged: &[String], context: &str) {
    let (ledger, state, notes) = open(disk).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(
        !notes.iter().any(RecoveryNote::is_loss),
        "{context}: {notes:?}"
    );
    let (found, last_seq) = facts_on(disk);
    assert_eq!(state.last_seq(), last_seq, "{context}");
    for name in acknowledged {
        assert!(found.contains_key(name), "{context}: lost {name}");
        assert!(state.is_completed(&task(name)), "{context}: forgot {name}");
    }
    for (name, count) in &found {
        assert!(NAMES.contains(&name.as_str()), "{context}: invented {name}");
        assert_eq!(*count, 1, "{context}: doubled {name}");
    }
    // What the opener was told is durable, and the ledger goes on.
    let lost = disk.restart(Survival {
        names: NamesKept::Synced,
        data: DataKept::Synced,
    });
    assert_eq!(
        open(&lost).unwrap().1,
        state,
        "{context}: told before it was durable"
    );
    let ledger = ledger.start(ViewSettings::default());
    ledger.append(facts(&["T-9"])).wait().unwrap();
    ledger.close().unwrap();
    let again = open(disk).unwrap().1;
    assert_eq!(again.last_seq(), last_seq + 1, "{context}");
    assert!(again.is_completed(&task("T-9")));
}

fn survivals() -> Vec<Survival> {
    let data = [
        DataKept::Synced,
        DataKept::Torn(1),
        DataKept::Torn(40),
        DataKept::Torn(250),
        DataKept::Zeroed,
        DataKept::All,
    ];
    [NamesKept::Synced, NamesKept::All]
        .into_iter()
        .flat_map(|names| data.map(|data| Survival { names, data }))
        .collect()
}

/// The history with the power going at every one of its operations in turn.
fn at_every_operation(tears: &[usize], mut check_one: impl FnMut(&CrashDisk, &[String], &str)) {
    for &torn in tears {
        // The number of operations depends on how many views time allows; past the last there is
        // no cut any more.
        for at in 1.. {
            let disk = CrashDisk::new(root());
            disk.cut(Cut { at, torn });
            let acknowledged = history(&disk);
            let ops = disk.ops();
            let context = format!("cut at {at} ({:?}), {torn} bytes", ops.last());
            check_one(&disk, &acknowledged, &context);
            if !disk.is_off() && ops.len() < at {
                assert_eq!(acknowledged.len(), NAMES.len());
                assert!(at > 40, "the history is shorter than thought: {ops:?}");
                break;
            }
        }
    }
}

#[test]
fn p3_power_loss_at_every_operation_loses_and_doubles_nothing() {
    at_every_operation(&[0, 190], |disk, acknowledged, context| {
        for survival in survivals() {
            let left = disk.restart(survival);
            check(&left, acknowledged, &format!("{context}, {survival:?}"));
        }
    });
}

#[test]
fn p3_a_kill_at_every_operation_and_then_power_loss_loses_and_doubles_nothing() {
    at_every_operation(&[0, 30, 190, usize::MAX], |disk, acknowledged, context| {
        disk.kill_process();
        check(disk, acknowledged, &format!("{context}, killed"));
    });
}

#[test]
fn p3_a_second_crash_during_recovery_changes_nothing() {
    let survival = Survival {
        names: NamesKept::All,
        data: DataKept::Torn(250),
    };
    let mut cuts = 0;
    at_every_operation(&[190], |disk, acknowledged, context| {
        for at in 1.. {
            let left = disk.restart(survival);
            left.cut(Cut { at, torn: 60 });
            let opened = open(&left).is_ok();
            cuts += 1;
            let again = left.restart(survival);
            check(&again, acknowledged, &format!("{context}, again at {at}"));
            if opened {
                break;
            }
        }
    });
    assert!(cuts > 100);
}
