//! Who may claim, and what a claim replaces.

use super::*;

#[test]
fn behaviour_017_concurrent_disjoint_claims_all_land() {
    let state = State::new();
    let start = Barrier::new(16);
    let held: Vec<Claimed> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|n| {
                let (state, start) = (&state, &start);
                scope.spawn(move || {
                    let manager = state.open();
                    start.wait();
                    let paths = [format!("folder-{n}/")];
                    let request = ClaimRequest {
                        paths: ClaimSet::parse(&paths).unwrap(),
                        ..request(&format!("T-{n}"), &[])
                    };
                    manager.claim_disjoint(&request).unwrap()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut epochs: Vec<u64> = held.iter().map(|claimed| claimed.lease.epoch).collect();
    epochs.sort_unstable();
    assert_eq!(epochs, (1..=16).collect::<Vec<u64>>());
    assert_eq!(state.open().list().len(), 16);
    let stray: Vec<_> = std::fs::read_dir(state.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| {
            !["leases", "leases.json", "leases.json.lock"].contains(&name.to_str().unwrap())
        })
        .collect();
    assert_eq!(stray, Vec::<std::ffi::OsString>::new(), "no temp files");
}

#[test]
fn behaviour_021_claims_and_releases_at_once_never_overlap() {
    let state = State::new();
    let holders = AtomicUsize::new(0);
    let won = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (state, holders, won) = (&state, &holders, &won);
            scope.spawn(move || {
                let manager = state.open();
                for _ in 0..50 {
                    assert_eq!(
                        read_leases(state.path()).problem,
                        None,
                        "the file always parses"
                    );
                    let request = ClaimRequest {
                        holder: holder(n),
                        ..request(&format!("T-{n}"), &["shared/file"])
                    };
                    let Ok(claimed) = manager.claim_disjoint(&request) else {
                        continue;
                    };
                    assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    won.fetch_add(1, Ordering::SeqCst);
                    holders.fetch_sub(1, Ordering::SeqCst);
                    let id = claimed.lease.lease_id.clone();
                    assert!(matches!(
                        manager.release(&id, claimed.lease.epoch),
                        Ok(Released::Now(_))
                    ));
                }
            });
        }
    });
    assert!(won.into_inner() >= 4);
    assert_eq!(state.open().list(), []);
    assert_eq!(state.live_files(), Vec::<PathBuf>::new());
}

#[test]
fn behaviour_023_the_loser_changes_no_byte() {
    let state = State::new();
    let manager = state.open();
    let dead = manager.claim_disjoint(&request("T-0", &["docs/"])).unwrap();
    drop(dead.held);
    let _held = manager.claim_disjoint(&request("T-1", &["src/"])).unwrap();
    let before = (state.bytes(), state.live_files().len());
    state.clock.pass(Duration::from_secs(5));
    let error = manager
        .claim_disjoint(&request("T-2", &["docs/", "src/lib.rs"]))
        .unwrap_err();
    let text = error.to_string();
    assert!(
        error.is_conflict() && text.contains("src/lib.rs overlaps src/, which task T-1 holds"),
        "{text}"
    );
    assert_eq!((state.bytes(), state.live_files().len()), before);
}

#[test]
fn behaviour_024_a_claim_beside_others_lands() {
    let state = State::new();
    let manager = state.open();
    let _held = manager.claim_disjoint(&request("T-1", &["src/"])).unwrap();
    let claimed = manager
        .claim_disjoint(&request("T-2", &["tests/"]))
        .unwrap();
    assert_eq!((claimed.replaced, claimed.reclaimed.len()), (None, 0));
    assert_eq!(tasks(&manager), ["T-1", "T-2"]);
}

#[test]
fn behaviour_025_of_two_racing_claims_exactly_one_lands() {
    for _ in 0..20 {
        let state = State::new();
        let start = Barrier::new(2);
        let answers: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = ["T-1", "T-2"]
                .into_iter()
                .map(|task| {
                    let (state, start) = (&state, &start);
                    scope.spawn(move || {
                        let manager = state.open();
                        start.wait();
                        manager.claim_disjoint(&request(task, &["a/*.rs"]))
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert!(
            answers
                .iter()
                .flat_map(|answer| answer.as_ref().err())
                .all(LeaseError::is_conflict)
        );
        assert_eq!(state.open().list().len(), 1);
    }
}

#[test]
fn behaviour_028_a_change_touches_only_its_own_lease() {
    let state = State::new();
    let manager = state.open();
    let first = manager.claim_disjoint(&request("T-1", &["a"])).unwrap();
    let second = manager.claim_disjoint(&request("T-2", &["b"])).unwrap();
    let new_owner = holder(77);
    let hold = manager
        .adopt(&second.lease.lease_id, second.lease.epoch, &new_owner)
        .unwrap();
    assert_eq!(hold.lease_id(), &second.lease.lease_id);
    let views = manager.list();
    assert_eq!(views[0].record, first.lease);
    assert_eq!(views[1].record.holder, new_owner);
    manager
        .release(&second.lease.lease_id, second.lease.epoch)
        .unwrap();
    assert_eq!(tasks(&manager), ["T-1"]);
}

#[test]
fn behaviour_031_read_leases_are_never_in_the_way() {
    let state = State::new();
    let manager = state.open();
    let mut record = sample();
    record.mode = LeaseMode::Read;
    record.expires_boot_ms = Some(u64::MAX);
    put_records(&state, &[record]);
    assert!(manager.claim_disjoint(&request("T-2", &["a"])).is_ok());
}

#[test]
fn behaviour_094_claiming_again_replaces_and_keeps_the_start() {
    let state = State::new();
    let manager = state.open();
    let first = manager
        .claim_disjoint(&with_ttl("T-1", &["a"], 60))
        .unwrap();
    drop(first.held);
    state.clock.pass(Duration::from_secs(10));
    let again = ClaimRequest {
        holder: holder(2),
        ..with_ttl("T-1", &["b"], 60)
    };
    let second = manager.claim_disjoint(&again).unwrap();
    assert_eq!(second.replaced, Some(first.lease.lease_id));
    assert_eq!(
        second.lease.acquired_at.seconds(),
        first.lease.acquired_at.seconds()
    );
    assert!(second.lease.epoch > first.lease.epoch);
    assert!(second.lease.expires_boot_ms > first.lease.expires_boot_ms);
    assert!(
        manager.claim_disjoint(&request("T-2", &["a"])).is_ok(),
        "the old path is free"
    );
    assert_eq!(state.live_files().len(), 2);
}

#[test]
fn p5_another_living_process_keeps_its_claim_on_the_same_task() {
    let state = State::new();
    let manager = state.open();
    let first = manager.claim_disjoint(&request("T-1", &["a"])).unwrap();
    let again = ClaimRequest {
        holder: holder(2),
        ..request("T-1", &["b"])
    };
    assert!(manager.claim_disjoint(&again).unwrap_err().is_conflict());
    // The holder itself may, and so may anybody once it is dead.
    let own = manager.claim_disjoint(&request("T-1", &["c"])).unwrap();
    assert_eq!(own.replaced, Some(first.lease.lease_id));
    drop(own.held);
    let claimed = manager.claim_disjoint(&again).unwrap();
    assert_eq!((claimed.replaced, claimed.reclaimed.len()), (None, 1));
}

#[test]
fn a_batch_is_decided_in_order_with_one_write() {
    let state = State::new();
    let manager = state.open();
    let answers = manager
        .claim_batch(&[
            request("T-1", &["a/"]),
            request("T-2", &["a/b"]),
            request("T-3", &["c"]),
        ])
        .unwrap();
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert!(
        matches!(&answers[1], Err(LeaseError::Conflict { task, .. }) if task.as_str() == "T-1")
    );
    assert!(matches!(
        manager.claim_disjoint(&request("T-4", &[])),
        Err(LeaseError::Empty)
    ));
}
