//! Merged leaves to the plain data the loop works with. Checks what one value alone cannot tell.

use super::keys::{self, AGENT, ROLE, STAGE};
use super::merge::{Leaf, Merged, Stage, built_in, built_in_command};
use super::model::{
    AgentConfig, AgentKind, BudgetConfig, Config, GateConfig, GateMode, GuardsConfig, LimitsConfig,
    LoopConfig, Require, RoleConcurrency, RoleConfig, RoleInterrupt, RoleSideEffect, ShipConfig,
    ShipMode, StageConfig, StoreConfig, StoreKind,
};
use super::place::Place;
use super::validate;
use super::value::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Completions of a bounded run when `max_completed` says "infinite" and something asks anyway.
const MAX_COMPLETED_UNUSED: u32 = 5;

/// Builds the configuration; problems and warnings go into `merged`.
pub(super) fn resolve(merged: &mut Merged, root: &Path, kill: bool) -> Config {
    let state_dir = root.join(text(merged, "state_dir"));
    let limits = limits(merged, "limits", None);
    let config = Config {
        task_dir: root.join(text(merged, "task_dir")),
        loop_: loop_config(merged, root, &state_dir, kill),
        guards: GuardsConfig {
            consecutive_blockers: number(merged, "guards.consecutive_blockers"),
            task_blockers: number(merged, "guards.task_blockers"),
            wall_clock: duration(merged, "guards.wall_clock"),
            task_wall_clock: duration(merged, "guards.task_wall_clock"),
        },
        budget: BudgetConfig {
            cost_usd: money(merged, "budget.cost_usd"),
            task_cost_usd: money(merged, "budget.task_cost_usd"),
        },
        gate: GateConfig {
            enabled: boolean(merged, "gate.enabled"),
            mode: match text(merged, "gate.mode").as_str() {
                "whole-batch" => GateMode::WholeBatch,
                _ => GateMode::Claims,
            },
            per_batch_max: number(merged, "gate.per_batch_max"),
        },
        ship: ShipConfig {
            mode: match text(merged, "ship.mode").as_str() {
                "queue" => ShipMode::Queue,
                _ => ShipMode::Manual,
            },
            target: text(merged, "ship.target"),
            verify: list(merged, "ship.verify"),
        },
        store: StoreConfig {
            kind: match text(merged, "store.kind").as_str() {
                "postgres" => StoreKind::Postgres,
                _ => StoreKind::File,
            },
            url: text(merged, "store.url"),
            session_ttl: duration(merged, "store.session_ttl"),
            labels: list(merged, "store.labels"),
        },
        agents: named(merged, "agents", agent),
        roles: named(merged, "roles", |merged, table| {
            role(merged, table, root, &limits)
        }),
        stages: merged.stages.iter().map(stage).collect(),
        parallelism_kill: kill,
        limits,
        state_dir,
    };
    validate::check(merged, &config);
    config
}

fn loop_config(merged: &mut Merged, root: &Path, state_dir: &Path, kill: bool) -> LoopConfig {
    let worktree_dir = text(merged, "loop.worktree_dir");
    let target = value(merged, "loop.max_completed");
    let mut tasks = number(merged, "loop.tasks");
    let mut workers = number(merged, "loop.workers");
    if kill && (tasks, workers) != (1, 1) {
        let place = Place::Environment("FLOCKD_PARALLELISM_KILL".to_owned());
        let message =
            format!("the kill switch is on: 1 task and 1 worker instead of {tasks} and {workers}");
        merged.warning(place, "loop.tasks".to_owned(), message);
        (tasks, workers) = (1, 1);
    }
    LoopConfig {
        tasks,
        workers,
        roles: number(merged, "loop.roles"),
        global_concurrency: number(merged, "loop.global_concurrency"),
        max_completed: match &target {
            Value::Integer(n) => u32::try_from(*n).unwrap_or(u32::MAX),
            _ => MAX_COMPLETED_UNUSED,
        },
        max_attempts: number(merged, "loop.max_attempts"),
        infinite: boolean(merged, "loop.infinite") || target == Value::Infinite,
        base: text(merged, "loop.base"),
        worktree_dir: if worktree_dir.is_empty() {
            state_dir.join("worktrees")
        } else {
            root.join(worktree_dir)
        },
    }
}

/// `[limits]`, or a role's overrides of it.
fn limits(merged: &Merged, table: &str, base: Option<&LimitsConfig>) -> LimitsConfig {
    let key = |name: &str| format!("{table}.{name}");
    let span = |name: &str, base: Option<Duration>| match merged.leaves.get(&key(name)) {
        None => base.unwrap_or_default(),
        Some(_) => duration(merged, &key(name)),
    };
    let bytes = |name: &str, base: Option<u64>| match merged.leaves.get(&key(name)) {
        Some(Leaf {
            value: Value::Size(bytes),
            ..
        }) => *bytes,
        _ => base.unwrap_or_default(),
    };
    LimitsConfig {
        deadline: span("deadline", base.map(|b| b.deadline)),
        idle: span("idle", base.map(|b| b.idle)),
        grace: span("grace", base.map(|b| b.grace)),
        output_max: bytes("output_max", base.map(|b| b.output_max)),
        output_stop: bytes("output_stop", base.map(|b| b.output_stop)),
        retries: match merged.leaves.get(&key("retries")) {
            None => base.map_or(0, |b| b.retries),
            Some(_) => number(merged, &key("retries")),
        },
    }
}

fn named<T>(
    merged: &mut Merged,
    table: &str,
    mut build: impl FnMut(&mut Merged, &str) -> T,
) -> BTreeMap<String, T> {
    let prefix = format!("{table}.");
    let names: Vec<String> = merged
        .tables
        .keys()
        .filter_map(|dotted| dotted.strip_prefix(&prefix).map(str::to_owned))
        .collect();
    names
        .into_iter()
        .map(|name| {
            let built = build(merged, &format!("{prefix}{name}"));
            (name, built)
        })
        .collect()
}

fn agent(merged: &mut Merged, table: &str) -> AgentConfig {
    let kind = required(merged, table, "kind");
    let mut command = list(merged, &format!("{table}.command"));
    if command.is_empty() && !kind.is_empty() {
        match built_in_command(&kind) {
            Some(program) => command.push(program.to_owned()),
            None => missing(
                merged,
                table,
                "command",
                "command = [\"sh\", \"scripts/agent.sh\"]",
            ),
        }
    }
    AgentConfig {
        kind: match kind.as_str() {
            "claude" => AgentKind::Claude,
            "codex" => AgentKind::Codex,
            "gemini" => AgentKind::Gemini,
            "opencode" => AgentKind::Opencode,
            "cursor" => AgentKind::Cursor,
            "goose" => AgentKind::Goose,
            "aider" => AgentKind::Aider,
            "assist" => AgentKind::Assist,
            _ => AgentKind::Command,
        },
        command,
        args: list(merged, &format!("{table}.args")),
        env: list(merged, &format!("{table}.env")),
        account: text(merged, &format!("{table}.account")),
    }
}

fn role(merged: &mut Merged, table: &str, root: &Path, base: &LimitsConfig) -> RoleConfig {
    let agent = required(merged, table, "agent");
    let key = |name: &str| format!("{table}.{name}");
    let prompt = text(merged, &key("prompt"));
    RoleConfig {
        agent,
        prompt: (!prompt.is_empty()).then(|| root.join(prompt)),
        concurrency: match text(merged, &key("concurrency")).as_str() {
            "concurrent_safe" => RoleConcurrency::ConcurrentSafe,
            _ => RoleConcurrency::Sequential,
        },
        side_effect: match text(merged, &key("side_effect")).as_str() {
            "read_only" => RoleSideEffect::ReadOnly,
            _ => RoleSideEffect::Mutating,
        },
        interrupt: match text(merged, &key("interrupt")).as_str() {
            "non_interruptible" => RoleInterrupt::NonInterruptible,
            "cooperative" => RoleInterrupt::Cooperative,
            "thread_interrupt" => RoleInterrupt::ThreadInterrupt,
            _ => RoleInterrupt::ExternallyTerminated,
        },
        slots: number(merged, &key("slots")),
        limits: limits(merged, table, Some(base)),
    }
}

fn stage(stage: &Stage) -> StageConfig {
    let get = |name: &str| match stage.leaves.get(name) {
        Some(leaf) => Some(leaf.value.clone()),
        None => keys::find(STAGE, name).and_then(built_in),
    };
    let texts = |name: &str| match get(name) {
        Some(Value::List(items)) => items,
        _ => Vec::new(),
    };
    StageConfig {
        name: match get("name") {
            Some(Value::Text(name)) => name,
            _ => String::new(),
        },
        roles: texts("roles"),
        run: texts("run"),
        require: match get("require") {
            Some(Value::Integer(n)) => Require::Number(u32::try_from(n).unwrap_or(u32::MAX)),
            Some(Value::Text(word)) if word == "any" => Require::Any,
            _ => Require::All,
        },
    }
}

fn required(merged: &mut Merged, table: &str, name: &str) -> String {
    let dotted = format!("{table}.{name}");
    let found = text(merged, &dotted);
    let reported = merged.problems.iter().any(|problem| problem.key == dotted);
    if found.is_empty() && !reported {
        missing(merged, table, name, &format!("{name} = \"...\""));
    }
    found
}

fn missing(merged: &mut Merged, table: &str, name: &str, line: &str) {
    let place = merged.tables.get(table).cloned().unwrap_or(Place::Default);
    let message = format!("missing: add a line {line} below [{table}]");
    let dotted = format!("{table}.{name}");
    if !merged.problems.iter().any(|problem| problem.key == dotted) {
        merged.problem(place, dotted, message);
    }
}

/// The value of a key; of a named table's key that no layer sets, the built-in one.
fn value(merged: &Merged, dotted: &str) -> Value {
    if let Some(leaf) = merged.leaves.get(dotted) {
        return leaf.value.clone();
    }
    let (table, name) = dotted.rsplit_once('.').unwrap_or(("", dotted));
    let keys = if table.starts_with("agents.") {
        AGENT
    } else {
        ROLE
    };
    keys::find(keys, name)
        .and_then(built_in)
        .unwrap_or(Value::Text(String::new()))
}

fn text(merged: &Merged, dotted: &str) -> String {
    match value(merged, dotted) {
        Value::Text(text) => text,
        _ => String::new(),
    }
}

fn list(merged: &Merged, dotted: &str) -> Vec<String> {
    match value(merged, dotted) {
        Value::List(items) => items,
        _ => Vec::new(),
    }
}

fn number(merged: &Merged, dotted: &str) -> u32 {
    match value(merged, dotted) {
        Value::Integer(n) => u32::try_from(n).unwrap_or(0),
        _ => 0,
    }
}

fn boolean(merged: &Merged, dotted: &str) -> bool {
    value(merged, dotted) == Value::Bool(true)
}

fn duration(merged: &Merged, dotted: &str) -> Duration {
    match value(merged, dotted) {
        Value::Duration(duration) => duration,
        _ => Duration::ZERO,
    }
}

fn money(merged: &Merged, dotted: &str) -> f64 {
    match value(merged, dotted) {
        Value::Money(amount) => amount,
        _ => 0.0,
    }
}
