//! What a claim and its release cost beside many standing leases.

use crate::table::{Aim, Table, median};
use flockd::lease::{ClaimRequest, Holder, LeaseManager};
use flockd::types::{ClaimSet, TaskId, Timestamp};
use std::path::Path;
use std::time::Instant;

/// Leases that stand while others come and go.
const STANDING: usize = 1_000;

/// Claims with their release in one round, and rounds.
const COUNT: u32 = 200;
const ROUNDS: usize = 5;

/// Measures and adds the row.
pub(crate) fn measure(folder: &Path, table: &mut Table) {
    let open = |name: &str| {
        let state = folder.join(name);
        flockd::fsx::create_dir_all(&state).unwrap();
        LeaseManager::open(&state).unwrap()
    };
    let (empty, full) = (open("leases-none"), open("leases-many"));
    let standing: Vec<ClaimRequest> = (0..STANDING)
        .map(|n| request(&format!("standing-{n}")))
        .collect();
    let held: Vec<_> = full
        .claim_batch(&standing)
        .unwrap()
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let (mut ratios, mut alone, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (without, with) = (micros_per_claim(&empty), micros_per_claim(&full));
        ratios.push(with / without);
        alone.push(without);
        beside.push(with);
    }
    assert_eq!(held.len(), STANDING);
    table.add(
        "claim and release beside 1,000 leases ÷ beside none",
        median(ratios),
        Some(Aim::AtMost(1.3)),
        format!("{:.0} µs against {:.0} µs", median(beside), median(alone)),
    );
}

fn request(task: &str) -> ClaimRequest {
    ClaimRequest {
        task: TaskId::new(task).unwrap(),
        paths: ClaimSet::parse([format!("src/{task}/"), format!("tests/{task}.rs")]).unwrap(),
        holder: Holder::this_process(
            "bench",
            // Of another boot the standing leases would be dead, and gone with the first claim.
            flockd::proc::boot_id(),
            std::process::id(),
            Timestamp::from_millis(0),
        ),
        run_ids: Vec::new(),
        ttl: None,
    }
}

fn micros_per_claim(leases: &LeaseManager) -> f64 {
    let start = Instant::now();
    for number in 0..COUNT {
        let claimed = leases
            .claim_disjoint(&request(&format!("passing-{number}")))
            .unwrap();
        let (id, epoch) = (claimed.lease.lease_id.clone(), claimed.lease.epoch);
        drop(claimed);
        leases.release(&id, epoch).unwrap();
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(COUNT)
}
