//! Configurations and tasks for the simulated world.

use crate::config::{
    BudgetConfig, Config, GateConfig, GateMode, GuardsConfig, LimitsConfig, LoopConfig, Require,
    RoleConcurrency, RoleConfig, RoleInterrupt, RoleSideEffect, ShipConfig, ShipMode, StageConfig,
    StoreConfig, StoreKind, TaskSpec, TaskState,
};
use crate::types::{ClaimSet, TaskId};
use std::collections::BTreeMap;
use std::time::Duration;

fn limits() -> LimitsConfig {
    LimitsConfig {
        deadline: Duration::from_secs(3600),
        idle: Duration::from_secs(600),
        grace: Duration::from_secs(5),
        output_max: 1 << 26,
        output_stop: 0,
        retries: 1,
    }
}

pub(super) fn role(safe: bool, slots: u32) -> RoleConfig {
    RoleConfig {
        agent: "a".to_owned(),
        prompt: None,
        concurrency: if safe {
            RoleConcurrency::ConcurrentSafe
        } else {
            RoleConcurrency::Sequential
        },
        side_effect: RoleSideEffect::Mutating,
        interrupt: RoleInterrupt::ExternallyTerminated,
        slots,
        limits: limits(),
    }
}

pub(super) fn stage(name: &str, roles: &[&str]) -> StageConfig {
    StageConfig {
        name: name.to_owned(),
        roles: roles.iter().map(|r| (*r).to_owned()).collect(),
        run: Vec::new(),
        require: Require::All,
    }
}

/// X, Y, Z, M and two stages: `write` by one role, `review` by two that may overlap.
pub(super) fn config(x: u32, y: u32, z: u32, m: u32) -> Config {
    Config {
        state_dir: "/state".into(),
        task_dir: "/tasks".into(),
        loop_: LoopConfig {
            tasks: x,
            workers: y,
            roles: z,
            global_concurrency: m,
            max_completed: 100,
            max_attempts: 300,
            infinite: false,
            base: "HEAD".to_owned(),
            worktree_dir: "/worktrees".into(),
        },
        guards: GuardsConfig {
            consecutive_blockers: 3,
            task_blockers: 3,
            wall_clock: Duration::ZERO,
            task_wall_clock: Duration::ZERO,
        },
        limits: limits(),
        budget: BudgetConfig {
            cost_usd: 0.0,
            task_cost_usd: 0.0,
        },
        gate: GateConfig {
            enabled: true,
            mode: GateMode::Claims,
            per_batch_max: 8,
        },
        ship: ShipConfig {
            mode: ShipMode::Manual,
            target: "main".to_owned(),
            verify: Vec::new(),
        },
        store: StoreConfig {
            kind: StoreKind::File,
            url: String::new(),
            session_ttl: Duration::from_secs(20),
            labels: Vec::new(),
        },
        agents: BTreeMap::new(),
        roles: [("writer", false), ("reviewer", true), ("auditor", true)]
            .map(|(name, safe)| (name.to_owned(), role(safe, 1)))
            .into(),
        stages: vec![
            stage("write", &["writer"]),
            stage("review", &["reviewer", "auditor"]),
        ],
        parallelism_kill: false,
    }
}

pub(super) fn id(text: &str) -> TaskId {
    TaskId::new(text).unwrap()
}

pub(super) fn task(name: &str, claims: &[&str], after: &[&str]) -> TaskSpec {
    TaskSpec {
        id: id(name),
        title: format!("title of {name}"),
        body: "body".to_owned(),
        priority: 0,
        claims: ClaimSet::parse(claims.iter().copied()).unwrap(),
        after: after.iter().map(|a| id(a)).collect(),
        stages: None,
        agent: None,
        state: TaskState::Ready,
    }
}

pub(super) fn tasks(n: usize) -> Vec<TaskSpec> {
    (1..=n)
        .map(|i| task(&format!("T-{i:04}"), &[&format!("src/{i}.rs")], &[]))
        .collect()
}
