//! Deaths: of the daemon, of a runner, between an exit and its settlement. Slots follow the tree.

use super::rig::{Rig, members};
use crate::common::eventually;
use flockd::budget::SlotDir;
use flockd::proc::{Sent, identity_of, signal, stat_of};
use flockd::runner::{RunnerEvent, StopHow, read_exit};
use flockd::types::{Outcome, RunId};

fn holders(rig: &Rig) -> Vec<RunId> {
    let slots = SlotDir::open(&rig.home.state()).unwrap();
    slots
        .used(8)
        .into_iter()
        .filter_map(|(_, holder)| Some(holder?.run_id))
        .collect()
}

#[test]
fn p4_a_run_outlives_its_daemon_and_is_taken_over_with_its_output() {
    let mut rig = Rig::new();
    let go = rig.home.file("go");
    let script = format!(
        "echo before; while [ ! -e {} ]; do sleep 0.02; done; echo after",
        go.display()
    );
    let spec = rig.script(&script);
    rig.launch(&spec);
    let child = rig.started();
    rig.wait_for_stdout(&spec, "before");
    let home = rig.die();
    let mut next = Rig::at(&home);
    let adopted = next.adopt();
    assert_eq!(adopted.len(), 1);
    assert_eq!(
        (&adopted[0].run_id, adopted[0].identity),
        (&spec.run_id, Some(child))
    );
    assert_eq!(adopted[0].slots, [0]);
    assert!(child.is_alive());
    std::fs::write(&go, "").unwrap();
    let report = next.exited();
    assert_eq!(
        (report.run_id.clone(), report.outcome),
        (spec.run_id.clone(), Outcome::Succeeded)
    );
    assert_eq!(next.stdout(&spec), "before\nafter\n");
    next.pool.settled(&spec.run_id);
    // The runner serves the next daemon as it did the first.
    let second = next.script("true");
    assert_eq!(next.run(&second).outcome, Outcome::Succeeded);
}

#[test]
fn p4_an_adopted_run_keeps_its_deadline_and_can_be_stopped() {
    let mut rig = Rig::new();
    let spec = rig.script("echo ready; sleep 600");
    let mut bounded = rig.script("sleep 600");
    bounded.limits.deadline_ms = 2_000;
    rig.launch(&spec);
    rig.launch(&bounded);
    // A request that a dying daemon had not sent yet is lost with it; its intent is in the ledger.
    rig.started();
    rig.started();
    rig.wait_for_stdout(&spec, "ready");
    let mut next = Rig::at(&rig.die());
    assert_eq!(next.adopt().len(), 2);
    assert!(next.pool.stop(&spec.run_id, StopHow::Term));
    let mut ends = [next.exited(), next.exited()].map(|report| (report.run_id, report.outcome));
    ends.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        ends,
        [
            (spec.run_id, Outcome::Cancelled),
            (bounded.run_id, Outcome::TimedOut)
        ]
    );
}

#[test]
fn p3_without_a_daemon_the_end_is_durable_before_the_slot_is_free() {
    let rig = Rig::new();
    let go = rig.home.file("go");
    let spec = rig.script(&format!(
        "while [ ! -e {} ]; do sleep 0.02; done; echo done",
        go.display()
    ));
    rig.launch(&spec);
    eventually("the slot is held", || {
        (holders(&rig) == [spec.run_id.clone()]).then_some(())
    });
    let home = rig.die();
    std::fs::write(&go, "").unwrap();
    let next = Rig::at(&home);
    eventually("the slot is free", || {
        holders(&next).is_empty().then_some(())
    });
    let report = read_exit(&home.state(), &spec.run_id)
        .unwrap()
        .expect("the end was written first");
    assert_eq!(report.outcome, Outcome::Succeeded);
    eventually("the runner left", || next.adopt().is_empty().then_some(()));
}

#[test]
fn p3_the_slot_is_held_until_the_end_is_settled() {
    let mut rig = Rig::new();
    let spec = rig.script("true");
    rig.launch(&spec);
    assert_eq!(rig.exited().outcome, Outcome::Succeeded);
    assert_eq!(
        holders(&rig),
        std::slice::from_ref(&spec.run_id),
        "not settled yet"
    );
    rig.pool.settled(&spec.run_id);
    eventually("the slot is free", || {
        holders(&rig).is_empty().then_some(())
    });
}

#[test]
fn p3_a_daemon_killed_between_exit_and_settlement_loses_nothing() {
    let mut rig = Rig::new();
    let spec = rig.script("true");
    rig.launch(&spec);
    let told = rig.exited();
    let home = rig.die();
    let next = Rig::at(&home);
    // Either the runner still waits and tells it again, or it has made it durable and left.
    for adopted in next.adopt() {
        assert_eq!(adopted.exited.as_ref(), Some(&told));
        next.pool.settled(&adopted.run_id);
    }
    eventually("the slot is free", || {
        holders(&next).is_empty().then_some(())
    });
    assert_eq!(read_exit(&home.state(), &spec.run_id).unwrap(), Some(told));
}

#[test]
fn p1_a_killed_runners_tree_is_swept_before_its_slot_is_used() {
    let mut rig = Rig::new();
    let mut spec = rig.script("trap '' TERM HUP; setsid sleep 600 & echo ready; sleep 600; true");
    spec.ceiling = 1;
    rig.launch(&spec);
    let child = rig.started();
    rig.wait_for_stdout(&spec, "ready");
    eventually("three processes", || (members(&spec) == 3).then_some(()));
    let runner = identity_of(stat_of(child.pid).unwrap().parent).unwrap();
    assert!(signal(runner, Sent::Kill));
    assert_eq!(
        rig.event(),
        RunnerEvent::RunnerDied {
            run_id: spec.run_id.clone()
        }
    );
    assert_eq!(members(&spec), 3, "orphans that nobody has noticed yet");
    let mut second = rig.script("true");
    second.ceiling = 1;
    rig.launch(&second);
    rig.started();
    assert_eq!(
        members(&spec),
        0,
        "the next child began after the orphans were gone"
    );
    assert_eq!(rig.exited().outcome, Outcome::Succeeded);
    rig.pool.settled(&second.run_id);
}

#[test]
fn p1_a_waiting_run_takes_a_killed_runners_slot_and_can_be_cancelled_while_it_waits() {
    let mut rig = Rig::new();
    let mut specs = [
        rig.script("echo ready; sleep 600"),
        rig.script("true"),
        rig.script("true"),
    ];
    for spec in &mut specs {
        spec.ceiling = 1;
    }
    let [first, second, third] = specs;
    rig.launch(&first);
    let child = rig.started();
    rig.launch(&second);
    assert_eq!(
        rig.event(),
        RunnerEvent::WaitingForSlot {
            run_id: second.run_id.clone()
        }
    );
    rig.launch(&third);
    assert_eq!(
        rig.event(),
        RunnerEvent::WaitingForSlot {
            run_id: third.run_id.clone()
        }
    );
    rig.pool.stop(&second.run_id, StopHow::Term);
    let report = rig.exited();
    assert_eq!(
        (report.run_id, report.outcome),
        (second.run_id.clone(), Outcome::Cancelled)
    );
    rig.pool.settled(&second.run_id);
    let runner = identity_of(stat_of(child.pid).unwrap().parent).unwrap();
    assert!(signal(runner, Sent::Kill));
    assert_eq!(
        rig.event(),
        RunnerEvent::RunnerDied {
            run_id: first.run_id.clone()
        }
    );
    assert_eq!(rig.exited().run_id, third.run_id);
    assert!(!child.is_alive());
    rig.pool.settled(&third.run_id);
}

/// More runs than slots, weights, cancels: the children themselves count how many are alive.
#[test]
fn p1_never_more_than_m_children_over_all_runners() {
    let mut rig = Rig::new();
    let alive = rig.home.file("alive");
    std::fs::create_dir(&alive).unwrap();
    let script = format!(
        "touch {0}/$$; ls {0} | wc -l; sleep 0.01; rm {0}/$$",
        alive.display()
    );
    let mut specs = Vec::new();
    for number in 0..24_u32 {
        let mut spec = rig.script(&script);
        spec.ceiling = 3;
        spec.slots = 1 + number % 3;
        rig.launch(&spec);
        specs.push(spec);
    }
    for _ in &specs {
        let report = rig.exited();
        assert_eq!(report.outcome, Outcome::Succeeded);
        rig.pool.settled(&report.run_id);
    }
    for spec in &specs {
        let count: u32 = rig.stdout(spec).trim().parse().unwrap();
        assert!(count <= 3, "{count} children at once");
    }
    eventually("all slots are free", || {
        holders(&rig).is_empty().then_some(())
    });
}
