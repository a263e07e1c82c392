//! The numbered behaviours of the loop, on the simulated world.

use super::setup::{config, id, role, stage, task, tasks};
use super::world::{Script, World, count};
use crate::config::{Require, TaskState};
use crate::engine::{Event, Standing};
use crate::types::{ClaimSet, Decision, Outcome, WaitFor};
use std::time::Duration;

#[test]
fn behaviour_047_a_drained_queue_ends_cleanly() {
    let mut world = World::new(config(1, 1, 2, 4), Vec::new(), |_| Script::pass(1));
    let finish = world.run();
    assert_eq!(
        (finish.decision, finish.exit_code),
        (Decision::Completed, 0)
    );
    assert_eq!(world.core.next_task_id(), None);
}

#[test]
fn behaviour_048_no_task_is_claimed_twice() {
    let mut world = World::new(config(3, 1, 2, 4), tasks(12), |_| Script::pass(3));
    world.run();
    assert_eq!(count(&world, "task_claimed"), 12);
    assert_eq!(count(&world, "task_completed"), 12);
    assert_eq!(world.peak_flights, 3);
}

#[test]
fn behaviour_049_one_failing_task_does_not_end_the_run() {
    let mut world = World::new(config(1, 1, 2, 4), tasks(3), |plan| {
        if plan.task.id == id("T-0001") {
            Script::blocked("no login")
        } else {
            Script::pass(1)
        }
    });
    let finish = world.run();
    assert_eq!((finish.decision, finish.exit_code), (Decision::Partial, 1));
    assert_eq!(count(&world, "task_completed"), 2);
}

#[test]
fn behaviour_059_infinite_drains_and_ends() {
    let mut c = config(2, 1, 2, 4);
    c.loop_.infinite = true;
    c.loop_.max_completed = 1;
    let mut world = World::new(c, tasks(2), |_| Script::pass(1));
    assert_eq!(world.run().decision, Decision::Completed);
    assert_eq!(count(&world, "task_completed"), 2);
}

#[test]
fn behaviour_060_consecutive_blockers_stop_the_run() {
    let mut c = config(1, 1, 2, 4);
    c.loop_.infinite = true;
    c.guards.consecutive_blockers = 2;
    let mut world = World::new(c, tasks(3), |_| Script::fail("no"));
    let finish = world.run();
    assert_eq!((finish.decision, finish.exit_code), (Decision::Blocked, 1));
    assert_eq!(
        count(&world, "task_claimed"),
        2,
        "the third task is untouched"
    );
    assert_eq!(count(&world, "guard_tripped consecutive_blockers"), 1);
}

#[test]
fn behaviour_061_a_completion_resets_the_streak() {
    let mut c = config(1, 1, 2, 4);
    c.loop_.infinite = true;
    c.guards.consecutive_blockers = 3;
    let mut world = World::new(c, tasks(4), |plan| {
        if plan.task.id == id("T-0002") {
            Script::pass(1)
        } else {
            Script::blocked("no")
        }
    });
    let finish = world.run();
    assert_eq!(finish.decision, Decision::Partial);
    assert_eq!(count(&world, "task_claimed"), 4);
}

#[test]
fn behaviour_062_the_wall_clock_stops_children_and_leaves_their_tasks() {
    let mut c = config(2, 1, 2, 4);
    c.guards.wall_clock = Duration::from_secs(1);
    let mut world = World::new(c, tasks(3), |_| Script::pass(60_000));
    let finish = world.run();
    assert_eq!(
        (finish.decision, finish.exit_code),
        (Decision::LimitReached, 3)
    );
    assert_eq!(
        world.now,
        Duration::from_secs(1),
        "W23: children are stopped, not waited for"
    );
    assert_eq!(
        count(&world, "task_deferred"),
        0,
        "a stopped loop blames no task"
    );
}

#[test]
fn behaviour_063_infinite_with_an_empty_queue_ends_cleanly() {
    let mut c = config(2, 1, 2, 4);
    c.loop_.infinite = true;
    let mut world = World::new(c, Vec::new(), |_| Script::pass(1));
    assert_eq!(world.run().exit_code, 0);
}

#[test]
fn behaviour_069_the_attempt_cap_is_respected() {
    let mut c = config(1, 1, 2, 4);
    c.loop_.max_attempts = 2;
    c.guards.consecutive_blockers = 10;
    let mut world = World::new(c, tasks(5), |_| Script::fail("no"));
    let finish = world.run();
    assert_eq!(
        (finish.decision, finish.exit_code),
        (Decision::LimitReached, 3)
    );
    assert_eq!(count(&world, "task_claimed"), 2);
}

#[test]
fn w32_in_flight_tasks_count_against_the_target() {
    let mut c = config(4, 1, 2, 8);
    c.loop_.max_completed = 2;
    let mut world = World::new(c, tasks(6), |_| Script::pass(5));
    let finish = world.run();
    assert_eq!(
        (finish.decision, finish.exit_code),
        (Decision::LimitReached, 3)
    );
    assert_eq!(count(&world, "task_completed"), 2);
    assert_eq!(count(&world, "task_claimed"), 2);
}

#[test]
fn w19_the_target_is_per_run() {
    let mut c = config(1, 1, 2, 4);
    c.loop_.max_completed = 2;
    let mut first = World::new(c.clone(), tasks(4), |_| Script::pass(1));
    first.run();
    let mut second = World::over(first.book(), c, tasks(4), |_| Script::pass(1));
    assert_eq!(second.run().decision, Decision::Completed);
    assert_eq!(count(&second, "task_completed"), 2);
}

#[test]
fn behaviour_071_completed_tasks_are_not_selected_again() {
    let mut first = World::new(config(2, 1, 2, 4), tasks(2), |_| Script::pass(1));
    first.run();
    let mut second = World::over(first.book(), config(2, 1, 2, 4), tasks(3), |_| {
        Script::pass(1)
    });
    second.run();
    assert_eq!(count(&second, "task_claimed"), 1);
}

#[test]
fn behaviour_072_a_deferred_task_is_tried_again_when_nothing_fresh_is_left() {
    let mut c = config(1, 1, 2, 4);
    c.guards.consecutive_blockers = 5;
    let mut failures = 1;
    let mut world = World::new(c, tasks(3), move |plan| {
        if plan.task.id == id("T-0001") && failures > 0 {
            failures -= 1;
            return Script::fail("first try");
        }
        Script::pass(1)
    });
    assert_eq!(world.run().decision, Decision::Completed);
    let claims: Vec<String> = world
        .story()
        .into_iter()
        .filter(|l| l.starts_with("task_claimed"))
        .collect();
    assert_eq!(
        claims,
        [
            "task_claimed workers=1 retry=false T-0001",
            "task_claimed workers=1 retry=false T-0002",
            "task_claimed workers=1 retry=false T-0003",
            "task_claimed workers=1 retry=true T-0001",
        ]
    );
    assert!(!world.book().is_deferred(&id("T-0001")));
}

#[test]
fn guard_task_blockers_parks_a_task_for_a_person() {
    let mut c = config(1, 1, 2, 4);
    c.guards.consecutive_blockers = 100;
    let mut first = World::new(c.clone(), tasks(1), |_| Script::fail("no"));
    first.run();
    assert_eq!(count(&first, "task_deferred"), 2, "fresh, and once more");
    let mut second = World::over(first.book(), c.clone(), tasks(1), |_| Script::fail("no"));
    second.facts.splice(0..0, first.facts.clone());
    let finish = second.run();
    assert_eq!((finish.decision, finish.exit_code), (Decision::Blocked, 1));
    let why = second.core.why(&id("T-0001"), second.clock());
    assert_eq!(why.waits_for, Some(WaitFor::Human));
    assert!(why.detail.contains("failed 3 times"), "{}", why.detail);
    let mut third = World::over(second.book(), c, tasks(1), |_| Script::pass(1));
    third.run();
    assert_eq!(count(&third, "task_claimed"), 0, "parked until `retry`");
}

#[test]
fn w18_a_foreign_lease_only_delays_its_task() {
    let mut world = World::new(config(2, 1, 2, 4), tasks(3), |_| Script::pass(5));
    world.foreign.push(ClaimSet::parse(["src/1.rs"]).unwrap());
    world.run_until("the others", |w| count(w, "task_completed") == 2);
    world.run_until("the refusal", |w| {
        w.core.why(&id("T-0001"), w.clock()).waits_for == Some(WaitFor::Lease)
    });
    world.foreign.clear();
    world.give(Event::LeasesChanged);
    assert_eq!(world.run().decision, Decision::Completed);
}

#[test]
fn p6_conflicting_tasks_are_skipped_not_queued_behind() {
    let all = vec![
        task("T-0001", &["src/"], &[]),
        task("T-0002", &["src/a.rs"], &[]),
        task("T-0003", &["docs/"], &[]),
    ];
    let mut world = World::new(config(2, 1, 2, 4), all, |_| Script::pass(5));
    world.run_until("two in flight", |w| w.alive() == 2);
    assert_eq!(
        world.core.why(&id("T-0002"), world.clock()).waits_for,
        Some(WaitFor::Lease)
    );
    assert_eq!(
        world.core.why(&id("T-0003"), world.clock()).standing,
        Standing::Running
    );
    assert_eq!(world.run().decision, Decision::Completed);
}

#[test]
fn p6_why_names_dependency_slot_backoff_and_person() {
    let mut c = config(2, 1, 2, 1);
    c.guards.consecutive_blockers = 9;
    let mut held = task("T-0009", &["z"], &[]);
    held.state = TaskState::Hold;
    let all = vec![
        task("T-0001", &["a"], &[]),
        task("T-0002", &["b"], &["T-0001"]),
        task("T-0003", &["c"], &[]),
        held,
    ];
    let mut lost = 1;
    let mut world = World::new(c, all, move |plan| {
        if plan.task.id == id("T-0003") && lost > 0 {
            lost -= 1;
            return Script::ends(Outcome::Killed);
        }
        Script::pass(20_000)
    });
    let why = |w: &World, t: &str| w.core.why(&id(t), w.clock()).waits_for;
    world.run_until("a run", |w| {
        w.alive() == 1 && why(w, "T-0003") == Some(WaitFor::Slot)
    });
    assert_eq!(why(&world, "T-0002"), Some(WaitFor::Dependency));
    assert_eq!(why(&world, "T-0009"), Some(WaitFor::Human));
    world.run_until("back-off", |w| why(w, "T-0003") == Some(WaitFor::Backoff));
    assert_eq!(world.run().decision, Decision::Completed);
    assert!(count(&world, "task_waiting backoff") == 1);
}

#[test]
fn priority_comes_first_then_the_lowest_id() {
    let mut all = tasks(3);
    all[2].priority = 5;
    let mut world = World::new(config(1, 1, 2, 4), all, |_| Script::pass(1));
    world.run();
    let order: Vec<String> = world
        .story()
        .into_iter()
        .filter(|l| l.starts_with("task_completed"))
        .collect();
    assert_eq!(
        order,
        [
            "task_completed T-0003",
            "task_completed T-0001",
            "task_completed T-0002"
        ]
    );
}

#[test]
fn behaviour_089_several_workers_wait_for_a_person() {
    let mut world = World::new(config(1, 2, 2, 4), tasks(1), |_| Script::pass(5));
    let finish = world.run();
    assert_eq!((finish.decision, finish.exit_code), (Decision::Partial, 0));
    assert_eq!(count(&world, "task_needs_selection 2"), 1);
    assert_eq!(count(&world, "task_completed"), 0, "no winner is promoted");
    assert_eq!(
        world.core.why(&id("T-0001"), world.clock()).waits_for,
        Some(WaitFor::Human)
    );
}

#[test]
fn behaviour_087_the_kill_switch_means_one_task_and_one_worker() {
    let mut c = config(3, 3, 2, 8);
    c.parallelism_kill = true;
    let mut world = World::new(c, tasks(3), |_| Script::pass(5));
    assert_eq!(world.run().decision, Decision::Completed);
    assert_eq!(world.peak_flights, 1);
}

#[test]
fn a_decided_batch_stops_the_rest_and_any_needs_one() {
    let mut c = config(1, 1, 3, 4);
    c.roles.insert("slow".to_owned(), role(true, 1));
    let mut review = stage("review", &["reviewer", "slow"]);
    review.require = Require::Any;
    c.stages = vec![review];
    let mut world = World::new(c.clone(), tasks(1), |plan| {
        if plan.role == "slow" {
            Script::pass(1_000_000)
        } else {
            Script::pass(5)
        }
    });
    assert_eq!(world.run().decision, Decision::Completed);
    assert!(world.now < Duration::from_secs(1));
    c.stages[0].require = Require::All;
    let mut world = World::new(c, tasks(1), |plan| {
        if plan.role == "slow" {
            Script::pass(1_000_000)
        } else {
            Script::fail("bad")
        }
    });
    world.run();
    assert!(
        world.now < Duration::from_secs(1),
        "behaviour 42: the first failure stops the batch"
    );
}

#[test]
fn infrastructure_failures_are_retried_with_backoff_and_then_count() {
    let mut c = config(1, 1, 2, 4);
    c.guards.consecutive_blockers = 1;
    let mut world = World::new(c, tasks(1), |_| Script::ends(Outcome::Lost));
    let finish = world.run();
    assert_eq!(finish.decision, Decision::Blocked);
    assert_eq!(count(&world, "run_intended"), 2);
    assert!(world.now >= Duration::from_secs(10));
}

#[test]
fn a_task_wall_clock_stops_only_that_task() {
    let mut c = config(2, 1, 2, 4);
    c.guards.task_wall_clock = Duration::from_secs(2);
    let mut world = World::new(c, tasks(2), |plan| {
        if plan.task.id == id("T-0001") {
            Script::pass(3_600_000)
        } else {
            Script::pass(1)
        }
    });
    let finish = world.run();
    assert_eq!(finish.decision, Decision::Partial);
    assert!(world.now < Duration::from_secs(10));
    assert!(count(&world, "guard_tripped task_wall_clock") >= 1);
}

#[test]
fn cancel_and_retry() {
    let mut world = World::new(config(2, 1, 2, 4), tasks(2), |_| Script::pass(1_000));
    world.run_until("two", |w| w.alive() == 2);
    world.give(Event::Cancel(id("T-0001")));
    world.run_until("the cancel", |w| count(w, "task_cancelled") == 1);
    world.give(Event::Retry(id("T-0001")));
    assert_eq!(world.run().decision, Decision::Completed);
    assert_eq!(count(&world, "task_completed"), 2);
}
