//! P9: the serial loop is the same loop. A plain sequential loop, written down here in a few lines, is
//! the reference; X = 1 and the kill switch must tell the same story, X > 1 the same set of facts.

use super::setup::{config, tasks};
use super::world::{Script, World};
use crate::config::Config;

/// What a plain loop would record: one task after another, one stage after another.
fn plain_story(names: &[&str]) -> Vec<String> {
    let mut story = vec!["loop_started".to_owned()];
    for name in names {
        story.push(format!("task_claimed workers=1 retry=false {name}"));
        for (stage, roles) in [
            ("write", vec!["writer"]),
            ("review", vec!["reviewer", "auditor"]),
        ] {
            for role in roles {
                story.push(format!("run_intended 1 {stage}/{role} attempt=1 {name}"));
                story.push(format!("run_started {name}"));
                story.push(format!("run_exited succeeded {name}"));
            }
            story.push(format!("stage_passed 1 {stage} {name}"));
        }
        story.push(format!("worker_captured 1 passed=true {name}"));
        story.push(format!("task_completed {name}"));
    }
    story.push("loop_stopped completed 0".to_owned());
    story
}

fn story(config: Config) -> Vec<String> {
    let mut world = World::new(config, tasks(3), |_| Script::pass(10));
    world.run();
    world.story()
}

fn serial(mut c: Config) -> Config {
    c.gate.enabled = false;
    c
}

#[test]
fn p9_x_1_tells_the_story_of_the_plain_sequential_loop() {
    let expected = plain_story(&["T-0001", "T-0002", "T-0003"]);
    assert_eq!(story(serial(config(1, 1, 1, 1))), expected);
    assert_eq!(story(serial(config(1, 1, 4, 8))), expected);
}

#[test]
fn p9_the_kill_switch_gives_the_serial_story_to_the_byte() {
    let mut killed = serial(config(4, 3, 4, 8));
    killed.parallelism_kill = true;
    let facts = |c: Config| {
        let mut world = World::new(c, tasks(3), |_| Script::pass(10));
        world.run();
        let lines: Vec<String> = world
            .facts
            .iter()
            .skip(1)
            .map(|f| format!("{f:?}"))
            .collect();
        (lines, world.book())
    };
    let (serial_facts, _) = facts(serial(config(1, 1, 4, 8)));
    let (killed_facts, _) = facts(killed);
    assert_eq!(serial_facts, killed_facts);
}

#[test]
fn p9_more_at_once_records_the_same_set_of_facts() {
    let mut expected = story(serial(config(1, 1, 1, 1)));
    let mut parallel = story(config(3, 1, 4, 8));
    expected.sort();
    parallel.sort();
    assert_eq!(expected, parallel);
}
