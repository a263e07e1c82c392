//! Numbered behaviours that need a story of their own on the simulated world.

use super::setup::{config, id, role, stage, tasks};
use super::world::{Script, World, count};
use crate::engine::{EdgeError, Effect, Event};
use crate::types::{Decision, Outcome};
use std::time::Duration;

#[test]
fn behaviour_035_all_tasks_workers_and_roles_queue_at_one_limiter() {
    let mut world = World::new(config(3, 2, 2, 2), tasks(3), |_| Script::pass(9));
    world.run();
    assert_eq!(world.peak, 2, "twelve calls at a time would fit X, Y and Z");
}

#[test]
fn behaviour_039_a_run_that_cannot_be_waited_for_gives_its_permit_back() {
    let mut world = World::new(config(1, 1, 2, 1), tasks(2), |plan| {
        if plan.task.id == id("T-0001") {
            Script::ends(Outcome::Lost)
        } else {
            Script::pass(1)
        }
    });
    world.run();
    assert_eq!(count(&world, "task_completed T-0002"), 1);
    assert_eq!(world.permits_out(), 0);
}

#[test]
fn behaviour_040_a_failed_spawn_stops_the_batch_and_gives_permits_back() {
    let mut c = config(1, 1, 3, 3);
    c.limits.retries = 0;
    for name in ["a", "b"] {
        let mut r = role(true, 1);
        r.limits.retries = 0;
        c.roles.insert(name.to_owned(), r);
    }
    c.stages = vec![stage("batch", &["a", "b"])];
    let mut world = World::new(c, tasks(1), |plan| {
        if plan.role == "b" {
            Script::ends(Outcome::SpawnFailed)
        } else {
            Script::pass(3_600_000)
        }
    });
    world.run();
    assert!(
        world.now < Duration::from_secs(60),
        "the first child was stopped"
    );
    assert_eq!(count(&world, "run_exited cancelled"), 2, "once per try");
    assert_eq!(world.permits_out(), 0);
}

#[test]
fn behaviour_042_stragglers_of_a_decided_batch_give_back_one_permit_each() {
    let mut c = config(1, 1, 3, 3);
    for name in ["a", "b", "c"] {
        c.roles.insert(name.to_owned(), role(true, 1));
    }
    c.stages = vec![stage("batch", &["a", "b", "c"])];
    let mut world = World::new(c, tasks(1), |plan| {
        if plan.role == "a" {
            Script::fail("first")
        } else {
            Script::pass(3_600_000)
        }
    });
    world.run();
    assert_eq!(
        count(&world, "run_exited cancelled"),
        4,
        "two stragglers, two tries"
    );
    assert_eq!(world.settled_twice(), 0);
    assert_eq!(world.permits_out(), 0);
}

#[test]
fn behaviour_044_one_task_at_a_time_by_number_or_by_default_is_the_same_run() {
    let story = |x: u32| {
        let mut c = config(x, 1, 2, 4);
        c.parallelism_kill = x > 1;
        let mut world = World::new(c, tasks(3), |_| Script::pass(5));
        world.run();
        (world.story(), world.book())
    };
    let ((serial, book), (killed, killed_book)) = (story(1), story(4));
    assert_eq!(serial, killed);
    assert_eq!(book.counts(), killed_book.counts());
}

#[test]
fn behaviour_064_infinite_with_nothing_but_failures_is_blocked() {
    let mut c = config(1, 1, 2, 4);
    c.loop_.infinite = true;
    c.guards.consecutive_blockers = 100;
    let mut world = World::new(c, tasks(2), |_| Script::fail("no"));
    let finish = world.run();
    assert_eq!((finish.decision, finish.exit_code), (Decision::Blocked, 1));
    assert_eq!(world.book().consecutive_blockers(), 4, "each try counts");
}

#[test]
fn behaviour_070_a_drained_queue_below_the_target_names_what_is_left() {
    let mut c = config(1, 1, 2, 4);
    c.guards.consecutive_blockers = 100;
    let mut world = World::new(c, tasks(2), |plan| {
        if plan.task.id == id("T-0001") {
            Script::blocked("no key")
        } else {
            Script::pass(1)
        }
    });
    let finish = world.run();
    assert_eq!((finish.decision, finish.exit_code), (Decision::Partial, 1));
    assert!(
        finish.reason.starts_with("1 tasks completed, 1 did not"),
        "{}",
        finish.reason
    );
}

#[test]
fn behaviour_075_without_a_worktree_no_child_is_started() {
    let mut world = World::new(config(1, 1, 2, 4), tasks(1), |_| Script::pass(1));
    world.refuse_worktrees = Some(EdgeError {
        detail: "worktree: no".to_owned(),
        systemic: false,
    });
    world.run();
    assert_eq!(count(&world, "run_intended"), 0);
    assert_eq!(count(&world, "task_deferred"), 2);
}

#[test]
fn behaviour_076_planning_alone_completes_nothing() {
    let all = tasks(3);
    let (planned, left) = crate::engine::plan_order(&all, &|_| false);
    assert_eq!(planned.len(), 3);
    assert!(left.is_empty());
    let (again, _) = crate::engine::plan_order(&all, &|task| *task == id("T-0002"));
    assert_eq!(again, [id("T-0001"), id("T-0003")]);
}

#[test]
fn behaviour_084_a_missing_program_blocks_its_task_and_starts_nothing() {
    let mut c = config(1, 1, 2, 4);
    c.guards.consecutive_blockers = 1;
    let mut world = World::new(c, tasks(1), |_| Script::ends(Outcome::SpawnFailed));
    let finish = world.run();
    assert_eq!(finish.decision, Decision::Blocked);
    assert_eq!(count(&world, "stage_passed"), 0);
}

#[test]
fn behaviour_091_no_effect_ever_merges() {
    let mut world = World::new(config(2, 2, 2, 4), tasks(2), |_| Script::pass(1));
    world.run();
    assert!(
        world
            .facts
            .iter()
            .all(|f| !super::world::tell(f).contains("shipped"))
    );
    // The list of effects is closed: none of them names the user's branch.
    let effects = world.core.handle(world.clock(), Event::LeasesChanged);
    assert_eq!(effects, [] as [Effect; 0]);
}
#[test]
fn p10_finished_tasks_are_not_looked_at_again() {
    let mut world = World::new(config(2, 1, 2, 4), tasks(6), |_| Script::pass(1));
    assert_eq!(world.core.candidates(), 0);
    world.run();
    assert_eq!(world.core.candidates(), 0, "their files are still there");
    let mut next = World::over(world.book(), config(2, 1, 2, 4), tasks(7), |_| {
        Script::pass(1)
    });
    next.run_until("the new one", |w| w.alive() > 0);
    assert_eq!(next.core.candidates(), 1);
    next.give(Event::Retry(id("T-0003")));
    assert_eq!(next.run().decision, Decision::Completed);
    assert_eq!(count(&next, "task_completed"), 2);
}
