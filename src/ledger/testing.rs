//! Facts for the ledger's own tests.

use super::fact::{Fact, FactBody, LoopSettings, NewFact};
use crate::types::{Decision, LeaseId, Outcome, RunId, TaskId, Timestamp, Verdict, WaitFor};
use proptest::prelude::*;

pub(super) fn task(name: &str) -> TaskId {
    TaskId::new(name).unwrap()
}

pub(super) fn run_id(name: &str) -> RunId {
    RunId::new(name).unwrap()
}

/// 2026-01-01T00:00:00Z and a second per fact.
pub(super) fn at(seq: u64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000 + 1_000 * i64::try_from(seq).unwrap())
}

pub(super) fn fact(seq: u64, name: &str, run: Option<&str>, body: FactBody) -> Fact {
    Fact {
        seq,
        at: at(seq),
        task: (!name.is_empty()).then(|| task(name)),
        run: run.map(run_id),
        body,
    }
}

pub(super) fn new_fact(name: &str, body: FactBody) -> NewFact {
    NewFact::of_task(at(0), &task(name), body)
}

pub(super) fn claimed(iteration: u32) -> FactBody {
    FactBody::TaskClaimed {
        title: "Add a widget".into(),
        iteration,
        base: "c0ffee".into(),
        claims: vec!["src/widget.rs".into()],
        workers: 1,
        stages: vec!["write".into(), "review".into()],
        lease_id: LeaseId::new("L-1").unwrap(),
        epoch: 7,
        retry: false,
    }
}

pub(super) fn completed() -> FactBody {
    FactBody::TaskCompleted {
        branches: vec!["flockd/T".into()],
        changed_files: vec!["src/widget.rs".into()],
    }
}

pub(super) fn deferred(blocker: bool) -> FactBody {
    FactBody::TaskDeferred {
        reason: "review failed".into(),
        blocker,
    }
}

pub(super) fn blocked(reason: &str) -> FactBody {
    FactBody::TaskBlocked {
        reason: reason.into(),
    }
}

pub(super) fn loop_started() -> FactBody {
    FactBody::LoopStarted {
        version: "0.1.0".into(),
        pid: 4242,
        settings: LoopSettings {
            global_concurrency: 8,
            tasks: 2,
            workers: 1,
            roles: 3,
            infinite: false,
            max_completed: 5,
            max_attempts: 15,
        },
    }
}

pub(super) fn intended(worker: u32, stage: &str) -> FactBody {
    FactBody::RunIntended {
        worker,
        stage: stage.into(),
        role: "writer".into(),
        attempt: 1,
        slots: 1,
        token: "token".into(),
    }
}

pub(super) fn started() -> FactBody {
    FactBody::RunStarted {
        pid: 77,
        start_ticks: 12_345,
        slots: vec![0],
    }
}

pub(super) fn exited() -> FactBody {
    FactBody::RunExited {
        outcome: Outcome::Succeeded,
        exit_code: Some(0),
        signal: None,
        verdict: Verdict::Pass,
        detail: String::new(),
        started_at: at(1),
        ended_at: at(2),
        duration_ms: 1_000,
        user_ms: 10,
        system_ms: 5,
        max_rss_kib: 4_096,
        stdout_bytes: 120,
        stderr_bytes: 0,
        truncated: false,
        stragglers_killed: 0,
    }
}

fn captured() -> FactBody {
    FactBody::WorkerCaptured {
        worker: 1,
        passed: true,
        branch: "flockd/T-0001.1".into(),
        commit: "beef".into(),
        patch: Some("runs/RUN-1/patch".into()),
        changed_files: vec!["src/widget.rs".into(), "tests/größe.rs".into()],
    }
}

fn passed(stage: &str) -> FactBody {
    FactBody::StagePassed {
        worker: 1,
        stage: stage.into(),
    }
}

/// One completed task, one in flight with an open run, a blocked one, a run without a task.
pub(super) fn history() -> Vec<Fact> {
    let other = |text: &str| FactBody::Warning { text: text.into() };
    let list = vec![
        ("", None, loop_started()),
        ("T-0001", None, claimed(1)),
        ("T-0001", Some("RUN-1"), intended(1, "write")),
        ("T-0001", Some("RUN-1"), started()),
        ("T-0001", Some("RUN-1"), exited()),
        ("T-0001", None, passed("write")),
        ("T-0001", None, captured()),
        ("T-0001", None, completed()),
        ("T-0003", None, blocked("needs a key")),
        ("T-0002", None, claimed(2)),
        ("T-0002", Some("RUN-2"), intended(1, "write")),
        ("T-0002", Some("RUN-2"), started()),
        ("", Some("RUN-X"), intended(1, "run")),
        ("", None, other("max_completed resolved to 5")),
        ("T-0004", None, deferred(false)),
    ];
    (1..)
        .zip(list)
        .map(|(seq, (task, run, body))| fact(seq, task, run, body))
        .collect()
}

fn any_body() -> impl Strategy<Value = FactBody> {
    let stage = || prop_oneof![Just("write".to_owned()), Just("review".to_owned())];
    let simple = prop_oneof![
        Just(loop_started()),
        Just(completed()),
        Just(FactBody::TaskRetried {}),
        Just(captured()),
        Just(started()),
        Just(exited()),
        Just(FactBody::LoopStopped {
            decision: Decision::LimitReached,
            exit_code: 3,
            reason: "done".into()
        }),
        Just(FactBody::TaskWaiting {
            wait_for: WaitFor::Human,
            detail: "x".into()
        }),
        Just(FactBody::TaskNeedsSelection {
            branches: vec!["b".into()]
        }),
        Just(FactBody::TaskCancelled { reason: "x".into() }),
        Just(FactBody::TaskAdded { title: "x".into() }),
    ];
    prop_oneof![
        4 => simple,
        1 => any::<u32>().prop_map(claimed),
        1 => any::<bool>().prop_map(deferred),
        1 => any::<String>().prop_map(|reason| FactBody::TaskBlocked { reason }),
        2 => (any::<u32>(), stage()).prop_map(|(worker, stage)| intended(worker, &stage)),
        1 => (0..3_u32, stage()).prop_map(|(worker, stage)| FactBody::StagePassed { worker, stage }),
        1 => (0..3_u32, stage(), any::<bool>()).prop_map(|(worker, stage, blocked)| {
            FactBody::StageFailed { worker, stage, reason: "r".into(), blocked }
        }),
        1 => any::<u64>().prop_map(|epoch| FactBody::LeaseReclaimed {
            lease_id: LeaseId::new("L-9").unwrap(),
            epoch,
        }),
        1 => any::<String>().prop_map(|text| FactBody::Warning { text }),
        1 => any::<String>().prop_map(|text| FactBody::Unknown {
            kind: format!("newer_{}", text.len()),
            data: serde_json::json!({ "text": text }),
        }),
    ]
}

/// Any fact about one of a few tasks and runs, in any order.
pub(super) fn any_fact() -> impl Strategy<Value = Fact> {
    let name = proptest::option::of(prop_oneof![Just("T-1"), Just("T-2"), Just("T-3")]);
    let run = proptest::option::of(prop_oneof![Just("R-1"), Just("R-2")]);
    (name, run, any_body()).prop_map(|(name, run, body)| fact(1, name.unwrap_or(""), run, body))
}
