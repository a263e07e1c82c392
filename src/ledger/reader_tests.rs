use super::super::recovery::{Ledger, RecoveryNote};
use super::super::state::LedgerState;
use super::super::testing::*;
use super::super::writer::ViewSettings;
use super::*;
use crate::fsx::replace_cached;
use std::sync::Arc;

/// A ledger of five facts in one segment, closed, without a view.
fn five() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let (ledger, ..) = open(dir.path()).unwrap();
    let ledger = ledger.start(ViewSettings::default());
    for n in 1..=5 {
        let fact = new_fact(&format!("T-{n}"), completed());
        ledger.append(vec![fact]).wait().unwrap();
    }
    ledger.close().unwrap();
    let path = segment_path(&ledger_dir(dir.path()), 1);
    let bytes = std::fs::read(&path).unwrap();
    fsx::remove(&dir.path().join("auto_loop_state.json")).unwrap();
    (dir, path, bytes)
}

type Opened = Result<(Ledger, LedgerState, Vec<RecoveryNote>), LedgerError>;

fn open(dir: &Path) -> Opened {
    Ledger::open(dir, Arc::new(RealDisk))
}

fn read(dir: &Path) -> Vec<Result<u64, String>> {
    read_facts(dir, 0)
        .map(|fact| fact.map(|fact| fact.seq).map_err(|error| error.to_string()))
        .collect()
}

#[test]
fn p3_a_torn_tail_is_cut_at_every_byte() {
    let (dir, path, bytes) = five();
    let last = bytes[..bytes.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    for cut in last..bytes.len() {
        replace_cached(&path, &bytes[..cut]).unwrap();
        assert_eq!(read(dir.path()), [Ok(1), Ok(2), Ok(3), Ok(4)]);
        let verified = verify(dir.path()).unwrap();
        assert_eq!((verified.facts, verified.torn_tail), (4, cut > last));
        let (_, state, notes) = open(dir.path()).unwrap();
        assert_eq!(state.last_seq(), 4);
        assert_eq!(notes.len(), usize::from(cut > last));
        assert_eq!(std::fs::read(&path).unwrap(), bytes[..last]);
    }
}

#[test]
fn fault_03_nuls_at_the_end_are_an_unfinished_write() {
    let (dir, path, bytes) = five();
    for tail in [&[0_u8; 100][..], b"\0\0\n", b"\0{\"seq\":6,\n"] {
        replace_cached(&path, &[&bytes[..], tail].concat()).unwrap();
        assert_eq!(read(dir.path()).len(), 5);
        let (_, state, notes) = open(dir.path()).unwrap();
        assert_eq!(state.last_seq(), 5);
        assert!(matches!(notes[..], [RecoveryNote::TornTail { .. }]));
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn fault_04_damage_is_refused_with_its_place_and_nothing_is_changed() {
    let (dir, path, bytes) = five();
    let starts: Vec<usize> = std::iter::once(0)
        .chain(
            (0..bytes.len())
                .filter(|at| bytes[*at] == b'\n')
                .map(|at| at + 1),
        )
        .collect();
    let mut damages: Vec<(usize, Vec<u8>)> = Vec::new();
    for line in 0..5 {
        let (start, end) = (starts[line], starts[line + 1]);
        let mut flipped = bytes.clone();
        flipped[start + 20] ^= 1;
        damages.push((line, flipped));
        if line < 4 {
            damages.push((line, [&bytes[..start], &bytes[end..]].concat()));
            let mut zeroed = bytes.clone();
            zeroed[start + 5..end].fill(0);
            damages.push((line, zeroed));
        }
        damages.push((line + 1, [&bytes[..end], &bytes[start..end]].concat()));
    }
    for (line, damaged) in damages {
        replace_cached(&path, &damaged).unwrap();
        let error = open(dir.path()).unwrap_err();
        let LedgerError::Damaged {
            line: at, offset, ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(
            (*at, *offset),
            (line as u64 + 1, starts[line] as u64),
            "{error}"
        );
        assert!(error.to_string().contains("backup"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), damaged);
    }
}

#[test]
fn damage_that_is_no_unfinished_write_is_an_error_for_readers_too() {
    let (dir, path, mut bytes) = five();
    bytes[30] ^= 1;
    replace_cached(&path, &bytes).unwrap();
    let read = read(dir.path());
    assert_eq!(read.len(), 1);
    assert!(
        read[0]
            .as_ref()
            .unwrap_err()
            .contains("00000001.jsonl:1: byte 0:")
    );
    assert!(verify(dir.path()).is_err());
}

#[test]
fn fault_03_a_lost_end_is_said_and_a_lost_ledger_is_refused() {
    let (dir, path, bytes) = five();
    let view = dir.path().join("auto_loop_state.json");
    replace_cached(&view, b"{\"ledger\":{\"segment\":1,\"seq\":5}}\n").unwrap();
    replace_cached(&path, &bytes[..bytes.len() / 2]).unwrap();
    let (_, state, notes) = open(dir.path()).unwrap();
    assert!(notes.iter().any(RecoveryNote::is_loss), "{notes:?}");
    let shown = state.view(&Default::default())["warnings"].to_string();
    assert!(shown.contains("facts were lost"), "{shown}");
    replace_cached(&path, b"").unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(matches!(error, LedgerError::MissingFacts { seq: 5, .. }));
    fsx::remove(&view).unwrap();
    assert_eq!(open(dir.path()).unwrap().1.last_seq(), 0);
}

#[test]
fn a_missing_segment_is_refused() {
    let (dir, path, _) = five();
    let third = segment_path(&ledger_dir(dir.path()), 3);
    replace_cached(&third, b"").unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(
        error.to_string().contains("00000002.jsonl is missing"),
        "{error}"
    );
    assert!(verify(dir.path()).is_err());
    fsx::remove(&path).unwrap();
    assert!(open(dir.path()).is_err());
}

#[test]
fn a_torn_segment_that_is_not_the_last_is_damage() {
    let (dir, path, bytes) = five();
    replace_cached(&segment_path(&ledger_dir(dir.path()), 2), b"").unwrap();
    assert_eq!(open(dir.path()).unwrap().1.last_seq(), 5);
    replace_cached(&path, &bytes[..bytes.len() - 3]).unwrap();
    assert!(matches!(open(dir.path()), Err(LedgerError::Damaged { .. })));
    assert!(read(dir.path()).last().unwrap().is_err());
}

#[test]
fn a_reader_beside_a_living_writer_sees_every_fact_once() {
    let dir = tempfile::tempdir().unwrap();
    let limits = super::super::log::LedgerLimits {
        segment_bytes: 3_000,
        ..Default::default()
    };
    let (ledger, ..) = Ledger::open_with(dir.path(), Arc::new(RealDisk), limits).unwrap();
    let ledger = ledger.start(ViewSettings::default());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..300 {
                let fact = new_fact(&format!("T-{n}"), completed());
                ledger.append(vec![fact]).wait().unwrap();
            }
        });
        let mut last = 0;
        while !writer.is_finished() {
            for fact in read_facts(dir.path(), last) {
                let seq = fact.unwrap().seq;
                assert_eq!(seq, last + 1);
                last = seq;
            }
        }
    });
    ledger.close().unwrap();
    assert_eq!(verify(dir.path()).unwrap().facts, 300);
}
