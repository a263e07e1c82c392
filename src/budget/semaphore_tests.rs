//! Properties of the semaphore: never above M, never lost, strictly first come first served.

use super::semaphore::{AcquireError, BoundedSemaphore};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn behaviour_034_sixteen_contenders_fill_three_permits_exactly() {
    let semaphore = BoundedSemaphore::new(3);
    let (alive, peak) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..16 {
        let (semaphore, alive, peak) = (semaphore.clone(), Arc::clone(&alive), Arc::clone(&peak));
        tasks.push(tokio::spawn(async move {
            let permit = semaphore.acquire(1, None).await.unwrap();
            peak.fetch_max(alive.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // The first three go on only when all three are in, so the occupancy must reach 3.
            while peak.load(Ordering::SeqCst) < 3 {
                tokio::task::yield_now().await;
            }
            alive.fetch_sub(1, Ordering::SeqCst);
            drop(permit);
        }));
    }
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(30), task)
            .await
            .unwrap()
            .unwrap();
    }
    assert_eq!(peak.load(Ordering::SeqCst), 3);
    assert_eq!(semaphore.available(), 3);
}

#[test]
fn behaviour_036_a_permit_returns_after_a_panic() {
    let semaphore = BoundedSemaphore::new(2);
    let inner = semaphore.clone();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _permit = inner.try_acquire(2).unwrap();
        std::panic::resume_unwind(Box::new("the critical region failed"));
    }));
    assert!(caught.is_err());
    assert_eq!(semaphore.available(), 2);
}

/// By construction: the only way back is the permit itself, and a permit can be dropped only once.
#[test]
fn behaviour_037_permits_never_exceed_the_total() {
    let semaphore = BoundedSemaphore::new(2);
    let permit = semaphore.try_acquire(1).unwrap();
    drop(permit);
    assert_eq!((semaphore.available(), semaphore.total()), (2, 2));
}

#[test]
fn p1_a_weight_above_the_ceiling_is_clamped_and_never_hangs() {
    runtime().block_on(async {
        let semaphore = BoundedSemaphore::new(2);
        let permit = semaphore.acquire(7, None).await.unwrap();
        assert_eq!((permit.weight(), semaphore.available()), (2, 0));
    });
}

#[test]
fn p1_a_deadline_leaves_the_queue_and_frees_those_behind() {
    runtime().block_on(async {
        let semaphore = BoundedSemaphore::new(2);
        let held = semaphore.acquire(1, None).await.unwrap();
        let bound = Duration::from_millis(50);
        let heavy = semaphore.acquire(2, Some(bound));
        let light = semaphore.acquire(1, Some(Duration::from_secs(5)));
        let (heavy, light) = tokio::join!(heavy, light);
        assert_eq!(heavy.unwrap_err(), AcquireError::Deadline { waited: bound });
        assert_eq!(light.unwrap().weight(), 1);
        drop(held);
        assert_eq!((semaphore.available(), semaphore.waiting()), (2, 0));
    });
}

#[test]
fn p1_first_come_first_served_and_a_heavy_head_is_not_overtaken() {
    runtime().block_on(async {
        let semaphore = BoundedSemaphore::new(3);
        let held = semaphore.acquire(1, None).await.unwrap();
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for (name, weight) in [("heavy", 3), ("a", 1), ("b", 1)] {
            let (semaphore, order) = (semaphore.clone(), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let _permit = semaphore.acquire(weight, None).await.unwrap();
                order.lock().unwrap().push(name);
                tokio::task::yield_now().await;
            }));
            tokio::task::yield_now().await;
        }
        assert!(semaphore.try_acquire(1).is_none(), "nobody jumps the queue");
        drop(held);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["heavy", "a", "b"]);
    });
}

#[test]
fn adoption_may_go_into_debt_and_resize_is_live() {
    runtime().block_on(async {
        let semaphore = BoundedSemaphore::new(1);
        let adopted = [semaphore.adopt(2), semaphore.adopt(1)];
        assert_eq!((semaphore.available(), semaphore.total()), (0, 1));
        assert!(semaphore.try_acquire(1).is_none());
        semaphore.resize(4);
        let fourth = semaphore.acquire(1, None).await.unwrap();
        semaphore.resize(1);
        drop(adopted);
        assert_eq!(
            semaphore.available(),
            0,
            "the fourth still holds the one there is"
        );
        drop(fourth);
        assert_eq!(semaphore.available(), 1);
    });
}

#[derive(Debug, Clone)]
struct Plan {
    weight: u32,
    hold_ms: u64,
    cancel_after_ms: Option<u64>,
    resize_to: Option<u32>,
}

fn plans() -> impl Strategy<Value = (u32, Vec<Plan>)> {
    let plan = (
        1_u32..6,
        0_u64..20,
        prop::option::of(0_u64..20),
        prop::option::weighted(0.1, 1_u32..9),
    )
        .prop_map(|(weight, hold_ms, cancel_after_ms, resize_to)| Plan {
            weight,
            hold_ms,
            cancel_after_ms,
            resize_to,
        });
    (1_u32..9, prop::collection::vec(plan, 1..60))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// W1: any M, any weights, cancels at any moment: never above M, never hangs, all back at the end.
    #[test]
    fn p1_never_above_m_never_hangs_all_permits_back((m, plans) in plans()) {
        runtime().block_on(async {
            let semaphore = BoundedSemaphore::new(m);
            let resized = plans.iter().any(|plan| plan.resize_to.is_some());
            let (held, peak) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
            let mut tasks = Vec::new();
            for plan in plans {
                let (semaphore, held, peak) = (semaphore.clone(), Arc::clone(&held), Arc::clone(&peak));
                tasks.push(tokio::spawn(async move {
                    let work = async {
                        let permit = semaphore.acquire(plan.weight, None).await.unwrap();
                        let now = held.fetch_add(permit.weight(), Ordering::SeqCst) + permit.weight();
                        peak.fetch_max(now, Ordering::SeqCst);
                        let guard = Subtract(&held, permit.weight());
                        tokio::time::sleep(Duration::from_millis(plan.hold_ms)).await;
                        drop(guard);
                        drop(permit);
                    };
                    match plan.cancel_after_ms {
                        Some(ms) => drop(tokio::time::timeout(Duration::from_millis(ms), work).await),
                        None => work.await,
                    }
                    if let Some(m) = plan.resize_to {
                        semaphore.resize(m);
                    }
                }));
            }
            for task in tasks {
                tokio::time::timeout(Duration::from_secs(3600), task).await.unwrap().unwrap();
            }
            assert_eq!(semaphore.available(), semaphore.total());
            assert_eq!(semaphore.waiting(), 0);
            let bound = if resized { 8 } else { m };
            assert!(peak.load(Ordering::SeqCst) <= bound);
        });
    }
}

struct Subtract<'a>(&'a AtomicU32, u32);

impl Drop for Subtract<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::SeqCst);
    }
}
