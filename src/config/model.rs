//! The resolved configuration and a parsed task file, as plain data. No I/O, no merging.

use crate::types::{ClaimSet, TaskId};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Everything `flockd.toml` and its overrides say, resolved (config §1).
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Absolute path of the state directory.
    pub state_dir: PathBuf,
    /// Absolute path of the task folder.
    pub task_dir: PathBuf,
    /// `[loop]`.
    pub loop_: LoopConfig,
    /// `[guards]`.
    pub guards: GuardsConfig,
    /// `[limits]`.
    pub limits: LimitsConfig,
    /// `[budget]`.
    pub budget: BudgetConfig,
    /// `[gate]`.
    pub gate: GateConfig,
    /// `[ship]`.
    pub ship: ShipConfig,
    /// `[store]`.
    pub store: StoreConfig,
    /// `[agents.NAME]`.
    pub agents: BTreeMap<String, AgentConfig>,
    /// `[roles.NAME]`.
    pub roles: BTreeMap<String, RoleConfig>,
    /// `[[stages]]`, in order.
    pub stages: Vec<StageConfig>,
    /// `FLOCKD_PARALLELISM_KILL` was truthy at start.
    pub parallelism_kill: bool,
}

/// `[loop]`.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopConfig {
    /// X, at least 1.
    pub tasks: u32,
    /// Y, at least 1.
    pub workers: u32,
    /// Z, at least 1.
    pub roles: u32,
    /// M, at least 1.
    pub global_concurrency: u32,
    /// Completions of one run that end it.
    pub max_completed: u32,
    /// Claims of one run that end it.
    pub max_attempts: u32,
    /// No target and no attempt bound.
    pub infinite: bool,
    /// Commit-ish that worktrees start from.
    pub base: String,
    /// Absolute path of the folder that worktrees are made in.
    pub worktree_dir: PathBuf,
}

/// `[guards]`. Zero durations are off.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardsConfig {
    /// Blockers since the last completion that stop the loop.
    pub consecutive_blockers: u32,
    /// Failures of one task that park it for a person.
    pub task_blockers: u32,
    /// The whole loop.
    pub wall_clock: Duration,
    /// One task; its children are stopped.
    pub task_wall_clock: Duration,
}

/// `[limits]` of a run; a role may override each.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitsConfig {
    /// From spawn; zero is off.
    pub deadline: Duration,
    /// No output and no CPU time; zero is off.
    pub idle: Duration,
    /// TERM to KILL.
    pub grace: Duration,
    /// Bytes kept per stream.
    pub output_max: u64,
    /// Bytes per stream that stop the run; zero is off. (Beyond config §1: makes `output_limit` reachable.)
    pub output_stop: u64,
    /// Of an infrastructure failure.
    pub retries: u32,
}

/// `[budget]`: parsed and shown; enforced with the adapters that report cost.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetConfig {
    /// Per loop; 0 = off.
    pub cost_usd: f64,
    /// Per task; 0 = off.
    pub task_cost_usd: f64,
}

/// How a batch is admitted (`[gate] mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateMode {
    /// All calls are safe: in parallel; else in order.
    WholeBatch,
    /// A call starts when no earlier unfinished call of the batch conflicts.
    Claims,
}

/// `[gate]`.
#[derive(Debug, Clone, PartialEq)]
pub struct GateConfig {
    /// Off: every batch is sequential.
    pub enabled: bool,
    /// How a batch is admitted.
    pub mode: GateMode,
    /// Calls of one batch at once.
    pub per_batch_max: u32,
}

/// `[ship] mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShipMode {
    /// A person merges.
    Manual,
    /// The merge queue does.
    Queue,
}

/// `[ship]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ShipConfig {
    /// Who merges.
    pub mode: ShipMode,
    /// The branch merged into.
    pub target: String,
    /// Commands run on the merged candidate.
    pub verify: Vec<String>,
}

/// `[store] kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// Files under the state directory.
    File,
    /// PostgreSQL.
    Postgres,
}

/// `[store]`.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreConfig {
    /// Where coordination lives.
    pub kind: StoreKind,
    /// Its address; never printed.
    pub url: String,
    /// PostgreSQL only.
    pub session_ttl: Duration,
    /// Of this host.
    pub labels: Vec<String>,
}

/// `[agents.NAME] kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AgentKind {
    /// Any program: prompt on stdin, verdict by exit code and last line.
    Command,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// Cursor's agent.
    Cursor,
    /// goose.
    Goose,
    /// aider.
    Aider,
    /// The built-in agent.
    Assist,
}

/// `[agents.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    /// Which adapter.
    pub kind: AgentKind,
    /// argv prefix; not empty.
    pub command: Vec<String>,
    /// Further arguments.
    pub args: Vec<String>,
    /// Names passed through from the daemon's environment.
    pub env: Vec<String>,
    /// Quota key.
    pub account: String,
}

/// `concurrency` of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleConcurrency {
    /// Never overlaps with a sibling.
    Sequential,
    /// May overlap with siblings that are safe too.
    ConcurrentSafe,
}

/// `side_effect` of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleSideEffect {
    /// Changes nothing.
    ReadOnly,
    /// May change its worktree.
    Mutating,
}

/// `interrupt` of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleInterrupt {
    /// Runs to its end.
    NonInterruptible,
    /// Polls a signal.
    Cooperative,
    /// Interrupted by its thread.
    ThreadInterrupt,
    /// Ended from outside through its process tree.
    ExternallyTerminated,
}

/// `[roles.NAME]`.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleConfig {
    /// A key of `agents`.
    pub agent: String,
    /// Absolute path of the prompt template; none: the task's body.
    pub prompt: Option<PathBuf>,
    /// May it overlap with siblings.
    pub concurrency: RoleConcurrency,
    /// May it change its worktree.
    pub side_effect: RoleSideEffect,
    /// How it is interrupted.
    pub interrupt: RoleInterrupt,
    /// Permits a run costs, at least 1.
    pub slots: u32,
    /// `[limits]` with this role's overrides applied.
    pub limits: LimitsConfig,
}

/// `require` of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Require {
    /// Every role passes.
    All,
    /// One role passes.
    Any,
    /// So many roles pass.
    Number(u32),
}

/// `[[stages]]`: roles in one batch, or commands in order.
#[derive(Debug, Clone, PartialEq)]
pub struct StageConfig {
    /// Its name, unique.
    pub name: String,
    /// Keys of `roles`; empty for a command stage.
    pub roles: Vec<String>,
    /// Shell commands, run one after another in the worktree; empty for a role stage.
    pub run: Vec<String>,
    /// How many roles must pass.
    pub require: Require,
}

/// `state` of a task file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// May be claimed.
    Ready,
    /// Kept back by a person.
    Hold,
}

/// A parsed task file (config §2).
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSpec {
    /// The file's stem.
    pub id: TaskId,
    /// One line for people.
    pub title: String,
    /// The prompt body.
    pub body: String,
    /// Higher first.
    pub priority: i64,
    /// What it may touch; the whole repository when the file names none.
    pub claims: ClaimSet,
    /// Tasks that must be completed first.
    pub after: Vec<TaskId>,
    /// A subset of the configured stages; none: all.
    pub stages: Option<Vec<String>>,
    /// Instead of the roles' own agents.
    pub agent: Option<String>,
    /// Ready or kept back.
    pub state: TaskState,
}
