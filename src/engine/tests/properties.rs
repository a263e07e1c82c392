//! No shape of X, Y, Z, M, weights and batches hangs or passes the ceiling (P1, P6, W1).

use super::setup::{config, role, stage, task, tasks};
use super::world::{Script, World};
use crate::config::{GateMode, Require};
use crate::types::{Decision, Outcome};
use proptest::prelude::*;

#[test]
fn p1_one_slot_and_seven_roles_do_not_hang() {
    let mut c = config(1, 1, 7, 1);
    let names: Vec<String> = (0..7).map(|i| format!("r{i}")).collect();
    for name in &names {
        c.roles.insert(name.clone(), role(true, 1));
    }
    c.stages = vec![stage(
        "all",
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    )];
    let mut world = World::new(c, tasks(2), |_| Script::pass(5));
    assert_eq!(world.run().decision, Decision::Completed);
    assert_eq!(world.peak, 1);
}

#[test]
fn p1_batches_across_tasks_do_not_hang() {
    let mut c = config(4, 1, 3, 8);
    for name in ["a", "b", "c"] {
        c.roles.insert(name.to_owned(), role(true, 1));
    }
    c.stages = vec![stage("batch", &["a", "b", "c"])];
    let mut world = World::new(c, tasks(9), |_| Script::pass(7));
    assert_eq!(world.run().decision, Decision::Completed);
    assert_eq!(world.peak, 8, "the ceiling is reached when there is work");
}

#[test]
fn p1_a_weight_above_the_ceiling_runs_alone() {
    let mut c = config(2, 1, 2, 2);
    c.roles.insert("writer".to_owned(), role(false, 9));
    let mut world = World::new(c, tasks(3), |_| Script::pass(3));
    assert_eq!(world.run().decision, Decision::Completed);
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        8 => Just(Outcome::Succeeded),
        1 => Just(Outcome::Failed),
        1 => Just(Outcome::Killed),
        1 => Just(Outcome::Lost),
        1 => Just(Outcome::TimedOut),
        1 => Just(Outcome::SpawnFailed),
        1 => Just(Outcome::Idle),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn p1_no_shape_hangs_or_passes_the_ceiling(
        (x, y, z, m) in (1_u32..5, 1_u32..4, 1_u32..6, 1_u32..9),
        weights in prop::collection::vec(1_u32..5, 1..5),
        safe in prop::collection::vec(any::<bool>(), 5),
        shape in prop::collection::vec(1_usize..4, 1..4),
        n in 1_usize..9,
        overlap in any::<bool>(),
        whole_batch in any::<bool>(),
        any_passes in any::<bool>(),
        ends in prop::collection::vec((outcome(), 1_u64..50), 1..20),
        per_batch in 1_u32..5,
    ) {
        let mut c = config(x, y, z, m);
        c.gate.per_batch_max = per_batch;
        if whole_batch {
            c.gate.mode = GateMode::WholeBatch;
        }
        c.guards.consecutive_blockers = 1000;
        c.roles.clear();
        c.stages.clear();
        for (s, width) in shape.iter().enumerate() {
            let names: Vec<String> = (0..*width).map(|r| format!("s{s}r{r}")).collect();
            for (r, name) in names.iter().enumerate() {
                let weight = weights[(s + r) % weights.len()];
                c.roles.insert(name.clone(), role(safe[(s + r) % safe.len()], weight));
            }
            let mut st = stage(&format!("s{s}"), &names.iter().map(String::as_str).collect::<Vec<_>>());
            if any_passes {
                st.require = Require::Any;
            }
            c.stages.push(st);
        }
        let all: Vec<_> = (1..=n)
            .map(|i| {
                let claim = if overlap { format!("src/{}", i % 3) } else { format!("src/{i}") };
                let after = if i % 4 == 0 { vec![format!("T-{:04}", i - 1)] } else { Vec::new() };
                task(&format!("T-{i:04}"), &[&claim], &after.iter().map(String::as_str).collect::<Vec<_>>())
            })
            .collect();
        let mut i = 0;
        let mut world = World::new(c, all, move |_| {
            i += 1;
            let (outcome, millis) = ends[i % ends.len()];
            if outcome == Outcome::Succeeded { Script::pass(millis) } else { Script::ends(outcome) }
        });
        let finish = world.run();
        prop_assert!(finish.decision != Decision::Running);
        prop_assert_eq!(world.alive(), 0);
        prop_assert!(world.peak <= m);
    }
}
