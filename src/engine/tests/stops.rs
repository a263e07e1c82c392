//! Stopping by degrees, holding, and going on where the last loop was (P4, W13, W23).

use super::setup::{config, id, tasks};
use super::world::{Script, World, count};
use crate::engine::{Event, Markers, StopLevel, StopSource};
use crate::types::{Decision, WaitFor};

#[test]
fn behaviour_050_a_drain_lets_children_end_and_promotes_nothing() {
    let mut world = World::new(config(2, 1, 2, 4), tasks(4), |_| Script::pass(100));
    world.run_until("two", |w| w.alive() == 2);
    world.give(Event::Stop(StopLevel::Drain, StopSource::Signal));
    let finish = world.run();
    assert_eq!(
        (finish.decision, finish.exit_code),
        (Decision::Stopped, 130)
    );
    assert_eq!(count(&world, "run_exited succeeded"), 2);
    assert_eq!(count(&world, "task_completed"), 0);
    assert_eq!(count(&world, "run_intended"), 2, "nothing new was started");
}

#[test]
fn a_second_stop_ends_the_children_and_blames_nobody() {
    let mut world = World::new(config(2, 1, 2, 4), tasks(4), |_| Script::pass(3_600_000));
    world.run_until("two", |w| w.alive() == 2);
    world.give(Event::Stop(StopLevel::Drain, StopSource::Command));
    world.give(Event::Stop(StopLevel::Now, StopSource::Command));
    let finish = world.run();
    assert_eq!((finish.decision, finish.exit_code), (Decision::Stopped, 0));
    assert_eq!(count(&world, "run_exited cancelled"), 2);
    assert_eq!(count(&world, "task_deferred"), 0);
}

#[test]
fn p4_the_next_loop_goes_on_where_the_last_one_was() {
    let mut first = World::new(config(2, 1, 2, 4), tasks(2), |_| Script::pass(100));
    first.run_until("a passed stage", |w| count(w, "stage_passed 1 write") == 2);
    first.give(Event::Stop(StopLevel::Now, StopSource::Command));
    first.run();
    let mut second = World::over(first.book(), config(2, 1, 2, 4), tasks(2), |_| {
        Script::pass(100)
    });
    assert_eq!(second.run().decision, Decision::Completed);
    assert_eq!(
        count(&second, "task_claimed"),
        0,
        "the claims of the first loop stand"
    );
    assert_eq!(
        count(&second, "run_intended 1 write"),
        0,
        "passed stages are not done again"
    );
    assert_eq!(count(&second, "task_completed"), 2);
}

#[test]
fn p3_every_prefix_of_a_history_resumes_and_completes_each_task_once() {
    let mut world = World::new(config(2, 2, 2, 3), tasks(3), |_| Script::pass(50));
    world.run();
    let facts = world.facts.clone();
    for cut in 0..facts.len() {
        let mut book = crate::ledger::LedgerState::default();
        for (i, fact) in facts.iter().take(cut).enumerate() {
            book.apply(&crate::ledger::Fact {
                seq: i as u64 + 1,
                at: fact.at,
                task: fact.task.clone(),
                run: fact.run.clone(),
                body: fact.body.clone(),
            });
        }
        let open: Vec<_> = book.open_runs().map(|(run, _)| run.clone()).collect();
        let mut resumed = World::over(book, config(2, 2, 2, 3), tasks(3), |_| Script::pass(50));
        resumed.lose(&open);
        let finish = resumed.run();
        assert_eq!(
            finish.decision,
            Decision::Partial,
            "cut at {cut}: {finish:?}"
        );
        let before = facts
            .iter()
            .take(cut)
            .filter(|f| super::world::tell(f).starts_with("task_needs_selection"))
            .count();
        assert_eq!(
            before + count(&resumed, "task_needs_selection"),
            3,
            "cut at {cut}: {}",
            resumed.story().join("\n")
        );
    }
}

#[test]
fn estop_kills_and_holds_until_thaw() {
    let mut world = World::new(config(2, 1, 2, 4), tasks(2), |_| Script::pass(100));
    world.run_until("two", |w| w.alive() == 2);
    world.give(Event::Markers(Markers {
        estop: true,
        ..Markers::default()
    }));
    world.run_until("all dead", |w| {
        w.alive() == 0 && count(w, "run_exited cancelled") == 2
    });
    assert_eq!(
        world.core.why(&id("T-0001"), world.clock()).waits_for,
        Some(WaitFor::Human)
    );
    world.give(Event::Markers(Markers::default()));
    assert_eq!(world.run().decision, Decision::Completed);
    assert_eq!(count(&world, "task_claimed"), 2);
}

#[test]
fn pause_holds_dispatch_and_lets_children_end() {
    let mut world = World::new(config(2, 1, 2, 4), tasks(3), |_| Script::pass(100));
    world.run_until("two", |w| w.alive() == 2);
    world.give(Event::Markers(Markers {
        paused: true,
        ..Markers::default()
    }));
    world.run_until("quiet", |w| w.alive() == 0 && count(w, "run_exited") == 2);
    assert_eq!(count(&world, "run_intended"), 2);
    world.give(Event::Markers(Markers::default()));
    assert_eq!(world.run().decision, Decision::Completed);
}

#[test]
fn w23_the_kill_switch_works_live() {
    let mut world = World::new(config(3, 1, 2, 8), tasks(8), |_| Script::pass(100));
    world.run_until("three", |w| w.alive() == 3);
    world.give(Event::Markers(Markers {
        parallelism_kill: true,
        ..Markers::default()
    }));
    world.run_until("less", |w| count(w, "task_completed") == 3);
    world.peak_flights = 0;
    assert_eq!(world.run().decision, Decision::Completed);
    assert_eq!(world.peak_flights, 1);
}

#[test]
fn a_systemic_fault_stops_in_order_and_loses_nothing() {
    let mut world = World::new(config(2, 1, 2, 4), tasks(4), |_| Script::pass(100));
    world.run_until("two", |w| w.alive() == 2);
    world.give(Event::Systemic("no space left".to_owned()));
    let finish = world.run();
    assert_eq!((finish.decision, finish.exit_code), (Decision::Blocked, 1));
    let mut second = World::over(world.book(), config(2, 1, 2, 4), tasks(4), |_| {
        Script::pass(1)
    });
    assert_eq!(second.run().decision, Decision::Completed);
}
