//! Slot files between processes and threads: never above M, no hold-and-wait, free at once after a kill.

use super::slots::{SlotDir, SlotText};
use super::waiter::SlotWaiter;
use crate::fsx::watch::{Watch, WatchMask};
use crate::types::RunId;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// No wait of these tests may take longer.
const BOUND: Duration = Duration::from_secs(60);

/// How often a waiter tries here; a runner waits for the event instead.
const LOOK_EVERY: Duration = Duration::from_millis(1);

fn text(run: &str) -> SlotText {
    SlotText {
        run_id: RunId::new(run).unwrap(),
        token: format!("token-of-{run}"),
        pid: std::process::id(),
        start_ticks: 1,
        boot_id: "boot".into(),
    }
}

fn take(waiter: &mut SlotWaiter, run: &str) -> super::SlotGuard {
    let started = Instant::now();
    loop {
        if let Some(guard) = waiter.try_take(&text(run), &mut |_| true).unwrap() {
            return guard;
        }
        assert!(started.elapsed() < BOUND, "{run} waits for ever");
        std::thread::sleep(LOOK_EVERY);
    }
}

#[test]
fn p1_threads_never_hold_more_than_m_slots_and_weights_do_not_deadlock() {
    let dir = tempfile::tempdir().unwrap();
    let slots = SlotDir::open(dir.path()).unwrap();
    let (held, peak) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8_u32 {
            let (slots, held, peak) = (&slots, &held, &peak);
            scope.spawn(move || {
                for round in 0..20 {
                    let weight = 1 + (thread + round) % 4;
                    let guard = take(&mut slots.waiter(3, weight), &format!("R{thread}-{round}"));
                    let count = u32::try_from(guard.slots().len()).unwrap();
                    assert_eq!(count, weight.min(3));
                    peak.fetch_max(
                        held.fetch_add(count, Ordering::SeqCst) + count,
                        Ordering::SeqCst,
                    );
                    std::thread::yield_now();
                    held.fetch_sub(count, Ordering::SeqCst);
                    guard.clear();
                }
            });
        }
    });
    assert!(peak.load(Ordering::SeqCst) <= 3);
    assert!(slots.used(3).iter().all(|(_, holder)| holder.is_none()));
}

#[test]
fn a_slot_names_its_run_and_a_dead_ones_slot_is_swept_before_it_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let slots = SlotDir::open(dir.path()).unwrap();
    let guard = take(&mut slots.waiter(1, 1), "R1");
    assert_eq!(slots.used(2), [(0, Some(text("R1"))), (1, None)]);
    let mut second = slots.waiter(1, 1);
    assert!(
        second
            .try_take(&text("R2"), &mut |_| true)
            .unwrap()
            .is_none()
    );
    // Dropped without `clear`, as the kernel does for a killed holder.
    drop(guard);
    assert_eq!(slots.used(1), [(0, None)]);
    let mut asked = Vec::new();
    let refused = second.try_take(&text("R2"), &mut |left| {
        asked.push(left.run_id.to_string());
        false
    });
    assert!(
        refused.unwrap().is_none(),
        "a slot is not taken while something of its last run is left"
    );
    let guard = take(&mut second, "R2");
    assert_eq!(asked, ["R1"]);
    guard.clear();
    let mut swept = false;
    drop(slots.waiter(1, 1).try_take(&text("R3"), &mut |_| {
        swept = true;
        true
    }));
    assert!(!swept, "a cleared slot needs no sweep");
}

#[test]
fn the_ceiling_is_told_to_other_processes() {
    let dir = tempfile::tempdir().unwrap();
    let slots = SlotDir::open(dir.path()).unwrap();
    assert_eq!(slots.ceiling(), None);
    slots.set_ceiling(5).unwrap();
    assert_eq!(slots.ceiling(), Some(5));
}

/// A failed try must not wake the others: they would wake each other for ever.
#[test]
fn p6_waiting_for_a_slot_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let slots = SlotDir::open(dir.path()).unwrap();
    let guard = take(&mut slots.waiter(1, 1), "R1");
    let mut waiters: Vec<_> = (0..3).map(|_| slots.waiter(1, 1)).collect();
    let mut try_all = || {
        for waiter in &mut waiters {
            let taken = waiter.try_take(&text("R2"), &mut |_| true).unwrap();
            assert!(taken.is_none());
        }
    };
    try_all();
    let mut watch = Watch::new().unwrap();
    watch
        .add(&dir.path().join("slots"), WatchMask::CLOSES)
        .unwrap();
    try_all();
    try_all();
    assert_eq!(watch.read().unwrap(), []);
    guard.clear();
    assert!(!watch.read().unwrap().is_empty(), "a freed slot is told");
}

#[test]
fn p2_only_what_dead_holders_left_is_swept() {
    let dir = tempfile::tempdir().unwrap();
    let slots = SlotDir::open(dir.path()).unwrap();
    let dead = take(&mut slots.waiter(3, 1), "R-dead");
    let alive = take(&mut slots.waiter(3, 1), "R-alive");
    take(&mut slots.waiter(3, 1), "R-over").clear();
    drop(dead);
    let mut seen = Vec::new();
    let mut sweep = |clean| {
        slots.sweep_dead(&mut |text| {
            seen.push(text.run_id.to_string());
            clean
        })
    };
    // What cannot be ended yet is met again.
    assert_eq!(sweep(false).unwrap(), 0);
    assert_eq!(sweep(true).unwrap(), 1);
    assert_eq!(sweep(true).unwrap(), 0);
    assert_eq!(seen, ["R-dead", "R-dead"]);
    assert_eq!(
        slots.used(3).iter().filter(|(_, by)| by.is_some()).count(),
        1
    );
    alive.clear();
}
