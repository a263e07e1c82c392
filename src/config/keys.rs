//! Every key of `flockd.toml`: kind, default, environment names. The one table that reading,
//! overriding, showing and the JSON Schema all use, so that they cannot disagree.

use super::value::Kind;

/// One key of a section.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The built-in value, as TOML; none: the key is required or its absence means something.
    pub(super) default: Option<&'static str>,
    /// A shorter environment name beside `FLOCKD_<SECTION>_<KEY>`; it is asked first.
    pub(super) short: Option<Short>,
    pub(super) about: &'static str,
}

/// A short environment name and how its text reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Short {
    /// Like the key itself.
    Plain(&'static str),
    /// A whole number of seconds for a duration.
    Seconds(&'static str),
}

/// A section with fixed keys; the empty name is the top of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) keys: &'static [Key],
}

pub(super) const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default: Some(default),
        short: None,
        about,
    }
}

pub(super) const fn open(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key {
        name,
        kind,
        default: None,
        short: None,
        about,
    }
}

impl Key {
    const fn short(self, name: &'static str) -> Self {
        Self {
            short: Some(Short::Plain(name)),
            ..self
        }
    }

    const fn seconds(self, name: &'static str) -> Self {
        Self {
            short: Some(Short::Seconds(name)),
            ..self
        }
    }
}

use Kind::{Bool, Cap, Count, Duration, List, Money, Positive, Require, Size, Target, Text, Word};

/// Sections with fixed keys.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        name: "",
        keys: TOP,
    },
    Section {
        name: "loop",
        keys: LOOP,
    },
    Section {
        name: "guards",
        keys: GUARDS,
    },
    Section {
        name: "limits",
        keys: LIMITS,
    },
    Section {
        name: "budget",
        keys: BUDGET,
    },
    Section {
        name: "gate",
        keys: GATE,
    },
    Section {
        name: "ship",
        keys: SHIP,
    },
    Section {
        name: "store",
        keys: STORE,
    },
];

const TOP: &[Key] = &[
    key(
        "state_dir",
        Text,
        r#"".flockd""#,
        "where flockd keeps its state",
    ),
    key("task_dir", Text, r#""tasks""#, "where the task files are"),
];

const LOOP: &[Key] = &[
    key("tasks", Cap, "2", "X: tasks in flight").short("FLOCKD_TASKS"),
    key(
        "workers",
        Cap,
        "1",
        "Y: workers per task, each in its own worktree",
    )
    .short("FLOCKD_WORKERS"),
    key("roles", Cap, "4", "Z: roles of one stage at once").short("FLOCKD_ROLES"),
    key(
        "global_concurrency",
        Cap,
        "8",
        "M: children alive at once, everything counted",
    )
    .short("FLOCKD_GLOBAL_CONCURRENCY"),
    key(
        "max_completed",
        Target,
        "5",
        "a bounded run stops after so many completions",
    ),
    key("max_attempts", Cap, "15", "claims per bounded run"),
    key("infinite", Bool, "false", "no target and no attempt bound"),
    key(
        "base",
        Text,
        r#""HEAD""#,
        "commit-ish the worktrees start from",
    ),
    key(
        "worktree_dir",
        Text,
        r#""""#,
        "empty: <state_dir>/worktrees",
    ),
];

const GUARDS: &[Key] = &[
    key(
        "consecutive_blockers",
        Count,
        "3",
        "blockers since the last completion that stop the loop",
    )
    .short("FLOCKD_MAX_CONSECUTIVE_BLOCKERS"),
    key(
        "task_blockers",
        Count,
        "3",
        "the same task blocked so often is parked for a person",
    ),
    key("wall_clock", Duration, r#""0s""#, "whole loop; 0 = off")
        .seconds("FLOCKD_MAX_WALL_CLOCK_SECONDS"),
    key(
        "task_wall_clock",
        Duration,
        r#""0s""#,
        "one task, its children are stopped; 0 = off",
    )
    .seconds("FLOCKD_TASK_WALL_CLOCK_SECONDS"),
];

const LIMITS: &[Key] = &[
    key(
        "deadline",
        Duration,
        r#""60m""#,
        "of one run, from spawn; 0 = off",
    ),
    key(
        "idle",
        Duration,
        r#""10m""#,
        "no output and no CPU time; 0 = off",
    ),
    key("grace", Duration, r#""5s""#, "TERM to KILL"),
    key(
        "output_max",
        Size,
        r#""64MiB""#,
        "kept per stream; the rest is counted, not kept",
    ),
    key(
        "output_stop",
        Size,
        r#""0B""#,
        "bytes per stream that stop the run; 0 = off",
    ),
    key("retries", Count, "1", "of an infrastructure failure"),
];

const BUDGET: &[Key] = &[
    key("cost_usd", Money, "0.0", "per loop; 0 = off"),
    key("task_cost_usd", Money, "0.0", "per task; 0 = off"),
];

const GATE: &[Key] = &[
    key("enabled", Bool, "true", "off: every batch is sequential"),
    key(
        "mode",
        Word(&["whole-batch", "claims"]),
        r#""claims""#,
        "how a role batch is admitted",
    ),
    key("per_batch_max", Positive, "4", "calls of one batch at once"),
];

const SHIP: &[Key] = &[
    key(
        "mode",
        Word(&["manual", "queue"]),
        r#""manual""#,
        "who merges",
    ),
    key("target", Text, r#""main""#, "the branch merged into"),
    key(
        "verify",
        List,
        "[]",
        "commands run on the exact merged candidate",
    ),
];

const STORE: &[Key] = &[
    key(
        "kind",
        Word(&["file", "postgres"]),
        r#""file""#,
        "where coordination lives",
    ),
    key(
        "url",
        Text,
        r#""""#,
        "of the store; keep secrets out of committed files",
    ),
    key("session_ttl", Duration, r#""20s""#, "postgres only"),
    key("labels", List, "[]", "of this host"),
];

/// Keys of `[agents.NAME]`.
pub(super) const AGENT: &[Key] = &[
    open(
        "kind",
        Word(&[
            "claude", "codex", "gemini", "opencode", "cursor", "goose", "aider", "command",
            "assist",
        ]),
        "which adapter",
    ),
    open(
        "command",
        List,
        "argv prefix; required for kind \"command\"",
    ),
    key("args", List, "[]", "further arguments"),
    key(
        "env",
        List,
        "[]",
        "names passed through from the daemon's environment",
    ),
    key("account", Text, r#""default""#, "quota key"),
];

/// Keys of `[roles.NAME]`; those of `[limits]` override it for this role.
pub(super) const ROLE: &[Key] = &[
    open("agent", Text, "a key of [agents]"),
    open(
        "prompt",
        Text,
        "a template file; without it the task's body is the prompt",
    ),
    key(
        "concurrency",
        Word(&["sequential", "concurrent_safe"]),
        r#""sequential""#,
        "may it overlap with siblings",
    ),
    key(
        "side_effect",
        Word(&["mutating", "read_only"]),
        r#""mutating""#,
        "may it change its worktree",
    ),
    key(
        "interrupt",
        Word(&[
            "non_interruptible",
            "cooperative",
            "thread_interrupt",
            "externally_terminated",
        ]),
        r#""externally_terminated""#,
        "how it is interrupted",
    ),
    key("slots", Positive, "1", "permits a run costs"),
    open("deadline", Duration, "instead of limits.deadline"),
    open("idle", Duration, "instead of limits.idle"),
    open("grace", Duration, "instead of limits.grace"),
    open("output_max", Size, "instead of limits.output_max"),
    open("output_stop", Size, "instead of limits.output_stop"),
    open("retries", Count, "instead of limits.retries"),
];

/// Keys of `[[stages]]`.
pub(super) const STAGE: &[Key] = &[
    open("name", Text, "unique"),
    key("roles", List, "[]", "one batch, through the gate"),
    key(
        "run",
        List,
        "[]",
        "shell commands, in the worktree, each takes a slot",
    ),
    key("require", Require, r#""all""#, "how many roles must pass"),
];

/// The tables whose keys are names.
pub(super) const NAMED: &[(&str, &[Key])] = &[("agents", AGENT), ("roles", ROLE)];

/// A key of a table by name.
pub(super) fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}

/// The section of that name.
pub(super) fn section(name: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.name == name)
}

/// `loop.tasks`, or `state_dir` at the top.
pub(super) fn dotted(section: &str, key: &str) -> String {
    if section.is_empty() {
        key.to_owned()
    } else {
        format!("{section}.{key}")
    }
}

/// `FLOCKD_LOOP_TASKS`; characters that a variable's name may not have become `_`.
pub(super) fn variable(dotted: &str) -> String {
    let upper = dotted.chars().map(|c| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    });
    format!("FLOCKD_{}", upper.collect::<String>())
}
