//! When a lease lives and when it is dead.

use super::*;

#[test]
fn behaviour_020_a_dead_lease_in_the_way_goes_a_living_one_stays() {
    let state = State::new();
    let manager = state.open();
    let dead = manager
        .claim_disjoint(&request("T-1", &["src/a.rs"]))
        .unwrap();
    let alive = manager
        .claim_disjoint(&request("T-2", &["src/b.rs"]))
        .unwrap();
    drop(dead.held);
    let claimed = manager
        .claim_disjoint(&request("T-3", &["src/a.rs"]))
        .unwrap();
    assert_eq!(claimed.reclaimed, [dead.lease]);
    assert!(matches!(
        manager.claim_disjoint(&request("T-4", &["src/"])),
        Err(LeaseError::Conflict { task, .. }) if task == alive.lease.task_id || task == claimed.lease.task_id
    ));
    assert_eq!(tasks(&manager), ["T-2", "T-3"]);
    assert_eq!(state.live_files().len(), 2);
}

#[test]
fn behaviour_095_a_ttl_frees_the_paths_and_release_is_idempotent() {
    let state = State::new();
    let manager = state.open();
    let claimed = manager
        .claim_disjoint(&with_ttl("T-1", &["a"], 60))
        .unwrap();
    drop(claimed.held);
    state.clock.pass(Duration::from_secs(59));
    assert!(
        manager
            .claim_disjoint(&request("T-2", &["a"]))
            .unwrap_err()
            .is_conflict()
    );
    state.clock.pass(Duration::from_secs(1));
    assert!(!manager.list()[0].alive);
    let other = manager.claim_disjoint(&request("T-2", &["b"])).unwrap();
    assert_eq!(
        other.reclaimed.len(),
        1,
        "the next writer prunes, whatever it claims"
    );
    let (id, epoch) = (&other.lease.lease_id, other.lease.epoch);
    assert!(matches!(
        manager.release(id, epoch + 1),
        Err(LeaseError::Stale { .. })
    ));
    assert!(matches!(manager.release(id, epoch), Ok(Released::Now(_))));
    assert!(matches!(manager.release(id, epoch), Ok(Released::Before)));
}

#[test]
fn behaviour_096_a_renewal_extends_but_never_creates_nor_wakes() {
    let state = State::new();
    let manager = state.open();
    let claimed = manager
        .claim_disjoint(&with_ttl("T-1", &["a"], 60))
        .unwrap();
    let (id, epoch) = (claimed.lease.lease_id.clone(), claimed.lease.epoch);
    drop(claimed.held);
    state.clock.pass(Duration::from_secs(50));
    manager.renew(&id, epoch, Duration::from_secs(60)).unwrap();
    state.clock.pass(Duration::from_secs(50));
    assert!(
        manager
            .claim_disjoint(&request("T-2", &["a"]))
            .unwrap_err()
            .is_conflict()
    );
    state.clock.pass(Duration::from_secs(10));
    let before = state.bytes();
    assert!(matches!(
        manager.renew(&id, epoch, Duration::from_secs(60)),
        Err(LeaseError::Gone { .. })
    ));
    let unknown = LeaseId::new("L-unknown").unwrap();
    assert!(matches!(
        manager.renew(&unknown, 1, Duration::from_secs(60)),
        Err(LeaseError::Gone { .. })
    ));
    assert_eq!(state.bytes(), before);
}

#[test]
fn fault_17_a_living_holder_outlasts_its_ttl() {
    let state = State::new();
    let manager = state.open();
    let claimed = manager.claim_disjoint(&with_ttl("T-1", &["a"], 1)).unwrap();
    state.clock.pass(Duration::from_secs(5));
    assert!(
        manager
            .claim_disjoint(&request("T-2", &["a"]))
            .unwrap_err()
            .is_conflict()
    );
    drop(claimed.held);
    let taken = manager.claim_disjoint(&request("T-2", &["a"])).unwrap();
    assert!(taken.lease.epoch > claimed.lease.epoch);
    assert!(matches!(
        manager.release(&claimed.lease.lease_id, claimed.lease.epoch),
        Ok(Released::Before)
    ));
    assert_eq!(tasks(&manager), ["T-2"], "the stale token touched nothing");
}

#[test]
fn leases_of_another_boot_are_dead_although_their_ttl_has_not_passed() {
    let state = State::new();
    let manager = state.open();
    let mut record = sample();
    record.holder.boot_id = "boot-0".to_owned();
    record.expires_boot_ms = Some(u64::MAX);
    put_records(&state, &[record]);
    assert!(!manager.list()[0].alive);
    let claimed = manager.claim_disjoint(&request("T-2", &["b"])).unwrap();
    assert_eq!(claimed.reclaimed.len(), 1);
}

#[test]
fn p2_a_runner_keeps_the_lease_of_a_dead_owner() {
    let state = State::new();
    let manager = state.open();
    let claimed = manager.claim_disjoint(&request("T-1", &["a"])).unwrap();
    let id = claimed.lease.lease_id.clone();
    let runner = hold_shared(state.path(), &id).unwrap();
    drop(claimed.held);
    assert_eq!(manager.reclaim_dead().unwrap(), []);
    let marked = manager.mark_recovering(&|owner| owner.pid != 1).unwrap();
    assert_eq!(marked.len(), 1);
    assert_eq!(manager.list()[0].record.status, LeaseStatus::Recovering);
    assert!(
        manager
            .claim_disjoint(&request("T-2", &["a"]))
            .unwrap_err()
            .is_conflict()
    );
    assert!(matches!(
        manager.release_unheld(&id),
        Err(LeaseError::Held { .. })
    ));
    let adopted = manager.adopt(&id, claimed.lease.epoch, &holder(9)).unwrap();
    assert_eq!(manager.list()[0].record.status, LeaseStatus::Active);
    drop((runner, adopted));
    assert_eq!(manager.reclaim_dead().unwrap().len(), 1);
    assert!(matches!(
        hold_shared(state.path(), &id),
        Err(LeaseError::Gone { .. })
    ));
    assert!(matches!(
        manager.adopt(&id, claimed.lease.epoch, &holder(9)),
        Err(LeaseError::Gone { .. })
    ));
    assert_eq!(state.live_files(), Vec::<PathBuf>::new());
}

#[test]
fn live_files_without_an_entry_are_swept() {
    let state = State::new();
    let manager = state.open();
    let _held = manager.claim_disjoint(&request("T-1", &["a"])).unwrap();
    drop(Lock::shared(&state.path().join("leases/orphan.live")).unwrap());
    manager.reclaim_dead().unwrap();
    assert_eq!(state.live_files().len(), 1);
}

#[test]
fn dead_leases_nobody_wants_go_with_time() {
    let state = State::new();
    let manager = state.open();
    for n in 0..50 {
        let paths = [format!("p{n}")];
        let request = ClaimRequest {
            paths: ClaimSet::parse(&paths).unwrap(),
            ..request(&format!("T-{n}"), &[])
        };
        drop(manager.claim_disjoint(&request).unwrap());
    }
    assert!(manager.list().len() < 30, "{}", manager.list().len());
}
