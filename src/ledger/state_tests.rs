use super::super::codec::{Sum, decode, encode};
use super::super::fact::{Fact, FactBody};
use super::super::testing::*;
use super::super::view::{DaemonInfo, ViewContext, render};
use super::*;
use proptest::prelude::*;

fn state_of(bodies: Vec<FactBody>) -> LedgerState {
    let mut state = LedgerState::default();
    for (seq, body) in (1..).zip(bodies) {
        state.apply(&fact(seq, "T-1", None, body));
    }
    state
}

fn apply(state: &mut LedgerState, task: &str, body: FactBody) {
    let seq = state.last_seq() + 1;
    state.apply(&fact(seq, task, None, body));
}

fn view(state: &LedgerState) -> serde_json::Value {
    state.view(&ViewContext::default())
}

#[test]
fn behaviour_005_the_view_is_sorted_indented_and_ends_with_a_newline() {
    let mut state = LedgerState::default();
    for fact in history() {
        state.apply(&fact);
    }
    let bytes = render(&state.view(&ViewContext {
        generated_at: Timestamp::from_millis(1_767_225_699_999),
        daemon: Some(DaemonInfo {
            pid: 4242,
            started_at: Timestamp::from_millis(1_767_225_600_000),
            version: "0.1.0".into(),
        }),
        next_task: Some(task("T-0009")),
        segment: 3,
    }));
    let golden = include_str!("../../tests/golden/view_basic.json");
    assert_eq!(String::from_utf8(bytes).unwrap(), golden);
}

#[test]
fn behaviour_006_the_view_has_exactly_the_documented_keys() {
    let value = view(&LedgerState::default());
    let keys: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "blocked_task_ids",
            "blockers",
            "completed_count",
            "completed_task_ids",
            "consecutive_blockers",
            "cycles",
            "daemon",
            "decision",
            "deferred_count",
            "deferred_task_ids",
            "generated_at",
            "global_concurrency",
            "infinite_mode",
            "ledger",
            "max_attempts",
            "max_completed",
            "next_task_id",
            "roles",
            "schema_version",
            "tasks",
            "warnings",
            "workers",
        ]
    );
}

#[test]
fn behaviour_007_repeated_ends_collapse_and_the_first_order_stays() {
    let mut state = LedgerState::default();
    for name in ["T-3", "T-1", "T-2", "T-3", "T-1"] {
        apply(&mut state, name, deferred(false));
        apply(&mut state, &format!("D-{name}"), completed());
    }
    let value = view(&state);
    assert_eq!(
        value["deferred_task_ids"],
        serde_json::json!(["T-3", "T-1", "T-2"])
    );
    assert_eq!(
        value["completed_task_ids"],
        serde_json::json!(["D-T-3", "D-T-1", "D-T-2"])
    );
    assert_eq!(value["completed_count"], 3);
    assert_eq!(state.counts().completed_this_loop, 3);
}

#[test]
fn behaviour_008_blockers_collapse_in_the_view_only() {
    let mut state = LedgerState::default();
    for _ in 0..3 {
        apply(&mut state, "T-1", blocked("no key"));
    }
    assert_eq!(view(&state)["blockers"], serde_json::json!(["T-1: no key"]));
    assert_eq!(state.blockers_of(&task("T-1")), 3);
    assert_eq!(state.consecutive_blockers(), 3);
    assert_eq!(state.is_blocked(&task("T-1")).unwrap().count, 3);
}

#[test]
fn behaviour_009_a_view_is_a_copy() {
    let mut state = LedgerState::default();
    apply(&mut state, "T-1", completed());
    let before = view(&state);
    apply(&mut state, "T-2", completed());
    assert_eq!(before["completed_task_ids"], serde_json::json!(["T-1"]));
}

#[test]
fn behaviour_010_completing_ends_a_deferral_and_the_streak() {
    let mut state = LedgerState::default();
    apply(&mut state, "T-1", deferred(true));
    apply(&mut state, "T-2", blocked("x"));
    assert_eq!(state.consecutive_blockers(), 2);
    apply(&mut state, "T-1", completed());
    assert!(!state.is_deferred(&task("T-1")));
    assert!(state.is_completed(&task("T-1")));
    assert_eq!(state.consecutive_blockers(), 0);
    assert_eq!(state.blockers_of(&task("T-1")), 0);
    assert_eq!(state.blockers_of(&task("T-2")), 1);
}

#[test]
fn a_conflict_is_no_blocker() {
    let mut state = LedgerState::default();
    apply(&mut state, "T-1", blocked("x"));
    apply(&mut state, "T-2", deferred(false));
    assert_eq!(state.consecutive_blockers(), 1);
    assert_eq!(state.blockers_of(&task("T-2")), 0);
    assert_eq!(view(&state)["blockers"], serde_json::json!(["T-1: x"]));
}

#[test]
fn behaviour_012_what_happens_to_a_cycle_later_is_in_later_views() {
    let mut state = state_of(vec![claimed(1)]);
    assert_eq!(view(&state)["cycles"][0]["stage"], serde_json::Value::Null);
    apply(
        &mut state,
        "T-1",
        FactBody::StagePassed {
            worker: 1,
            stage: "write".into(),
        },
    );
    assert_eq!(view(&state)["cycles"][0]["stage"], "write");
    assert_eq!(view(&state)["cycles"][0]["decision"], "running");
    apply(&mut state, "T-1", completed());
    assert_eq!(view(&state)["cycles"][0]["decision"], "completed");
    assert_eq!(view(&state)["cycles"][0]["stage"], "write");
    assert_eq!(state.counts().in_flight, 0);
}

#[test]
fn a_retry_clears_all_that_kept_a_task_back() {
    for body in [
        completed(),
        deferred(true),
        blocked("x"),
        FactBody::TaskCancelled { reason: "x".into() },
        FactBody::TaskNeedsSelection {
            branches: vec!["a".into()],
        },
    ] {
        let state = state_of(vec![claimed(1), body.clone(), FactBody::TaskRetried {}]);
        let id = task("T-1");
        assert!(
            !state.is_completed(&id) && !state.is_deferred(&id),
            "{body:?}"
        );
        assert!(
            !state.is_cancelled(&id) && state.is_blocked(&id).is_none(),
            "{body:?}"
        );
        assert!(state.needs_selection(&id).is_none());
        assert_eq!(state.blockers_of(&id), 0);
        assert_eq!(view(&state)["completed_task_ids"], serde_json::json!([]));
    }
}

#[test]
fn a_new_loop_begins_with_a_clean_sheet_and_the_same_history() {
    let mut state = state_of(vec![claimed(1), blocked("x")]);
    apply(&mut state, "T-2", claimed(2));
    apply(&mut state, "T-2", FactBody::Warning { text: "w".into() });
    apply(&mut state, "T-2", loop_started());
    let value = view(&state);
    assert_eq!(value["decision"], "running");
    assert_eq!(value["blockers"], serde_json::json!([]));
    assert_eq!(value["warnings"], serde_json::json!([]));
    assert_eq!(value["cycles"].as_array().unwrap().len(), 2);
    assert_eq!(state.consecutive_blockers(), 0);
    assert_eq!(state.counts().claimed_this_loop, 0);
    assert!(state.is_blocked(&task("T-1")).is_some());
    assert_eq!(state.in_flight().count(), 1);
}

#[test]
fn what_a_resume_needs_is_there() {
    let mut state = LedgerState::default();
    for fact in history() {
        state.apply(&fact);
    }
    let flight = state.in_flight_task(&task("T-0002")).unwrap();
    assert_eq!((flight.base.as_str(), flight.epoch), ("c0ffee", 7));
    let run = flight.runs.get(&run_id("RUN-2")).unwrap();
    assert_eq!(run.started.as_ref().unwrap().pid, 77);
    assert!(run.exited.is_none());
    let open: Vec<_> = state.open_runs().map(|(id, _)| id.as_str()).collect();
    assert_eq!(open, ["RUN-2", "RUN-X"]);
    assert_eq!(state.epoch_max(), 7);
}

#[test]
fn the_view_and_the_memory_per_finished_task_are_bounded() {
    let mut state = LedgerState::default();
    for n in 0..3_000 {
        let name = format!("T-{n}");
        apply(&mut state, &name, claimed(n));
        apply(
            &mut state,
            &name,
            if n % 2 == 0 {
                completed()
            } else {
                deferred(true)
            },
        );
    }
    let value = view(&state);
    assert_eq!(value["completed_task_ids"].as_array().unwrap().len(), 1_000);
    assert_eq!(value["completed_task_ids"][999], "T-2998");
    assert_eq!(value["completed_count"], 1_500);
    assert_eq!(value["cycles"].as_array().unwrap().len(), 50);
    assert_eq!(value["blockers"].as_array().unwrap().len(), 50);
    assert!(render(&value).len() < 100_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn replay_of_any_prefix_never_panics_and_equals_the_live_state(
        facts in proptest::collection::vec(any_fact(), 0..60)
    ) {
        let mut live = LedgerState::default();
        let mut replayed = LedgerState::default();
        let mut sum = Sum::FIRST;
        for (seq, mut fact) in (1..).zip(facts) {
            fact.seq = seq;
            live.apply(&fact);
            let mut line = Vec::new();
            let next = encode(&fact, None, sum, &mut line).unwrap();
            line.pop();
            let back: Fact = decode(&line, Some(sum)).unwrap().fact;
            sum = next;
            prop_assert_eq!(&back, &fact);
            replayed.apply(&back);
            prop_assert_eq!(&live, &replayed);
        }
        prop_assert_eq!(view(&live), view(&replayed));
    }
}
