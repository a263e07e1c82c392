//! Precedence, environment rules, error texts, task files.

use super::env::kill_switch;
use super::*;
use std::path::PathBuf;
use std::time::Duration;

/// A project with these files and this environment.
pub(super) struct Project {
    pub(super) dir: tempfile::TempDir,
    environment: Environment,
    flags: Vec<FlagValue>,
}

impl Project {
    pub(super) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            environment: Environment::new(),
            flags: Vec::new(),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test's scratch files need no durability"
    )]
    pub(super) fn file(self, name: &str, text: &str) -> Self {
        let file = self.dir.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        self
    }

    fn var(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn flag(mut self, flag: &str, key: &str, value: &str) -> Self {
        let [flag, key, value] = [flag, key, value].map(str::to_owned);
        self.flags.push(FlagValue { flag, key, value });
        self
    }

    pub(super) fn load(&self) -> Result<Loaded, ConfigError> {
        load(&LoadRequest {
            root: self.dir.path().to_owned(),
            user_file: Some(self.dir.path().join("user.toml")),
            environment: self.environment.clone(),
            flags: self.flags.clone(),
        })
    }

    pub(super) fn config(&self) -> Config {
        self.load().unwrap().config
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.load()
            .unwrap()
            .warnings
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    pub(super) fn errors(&self) -> String {
        self.load()
            .unwrap_err()
            .to_string()
            .replace(&self.dir.path().display().to_string(), "<root>")
    }

    fn source(&self, key: &str) -> String {
        let values = self.load().unwrap().values();
        values
            .iter()
            .find(|shown| shown.key == key)
            .unwrap()
            .source
            .to_string()
    }
}

pub(super) const EXAMPLE: &str = r#"
[agents.claude]
kind = "claude"
command = ["claude"]
env = ["ANTHROPIC_API_KEY"]

[agents.check]
kind = "command"
command = ["sh", "scripts/check.sh"]

[roles.writer]
agent = "claude"
prompt = "prompts/write.md"
deadline = "30m"

[roles.reviewer]
agent = "check"
concurrency = "concurrent_safe"
side_effect = "read_only"

[[stages]]
name = "write"
roles = ["writer"]

[[stages]]
name = "review"
roles = ["reviewer", "writer"]
require = 1

[[stages]]
name = "verify"
run = ["make check"]
"#;

#[test]
fn defaults_are_those_of_the_contract() {
    let project = Project::new();
    let config = project.config();
    let root = project.dir.path();
    assert_eq!(config.state_dir, root.join(".flockd"));
    assert_eq!(config.task_dir, root.join("tasks"));
    assert_eq!(config.loop_.worktree_dir, root.join(".flockd/worktrees"));
    let l = &config.loop_;
    assert_eq!(
        (l.tasks, l.workers, l.roles, l.global_concurrency),
        (2, 1, 4, 8)
    );
    assert_eq!(
        (l.max_completed, l.max_attempts, l.infinite),
        (5, 15, false)
    );
    assert_eq!(config.limits.deadline, Duration::from_secs(3600));
    assert_eq!(config.limits.output_max, 64 << 20);
    assert_eq!(config.gate.mode, GateMode::Claims);
    assert!(config.cannot_start().unwrap().contains("flockd init"));
}

#[test]
fn a_whole_file_resolves() {
    let config = Project::new().file("flockd.toml", EXAMPLE).config();
    let writer = &config.roles["writer"];
    assert_eq!(writer.limits.deadline, Duration::from_secs(1800));
    assert_eq!(writer.limits.idle, config.limits.idle);
    assert!(
        writer
            .prompt
            .as_ref()
            .unwrap()
            .ends_with("prompts/write.md")
    );
    assert_eq!(
        config.roles["reviewer"].concurrency,
        RoleConcurrency::ConcurrentSafe
    );
    let names: Vec<&str> = config.stages.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["write", "review", "verify"]);
    assert_eq!(config.stages[1].require, Require::Number(1));
    assert_eq!(config.cannot_start(), None);
}

#[test]
fn each_layer_beats_the_one_below() {
    let mut project = Project::new();
    let mut seen = vec![project.config().loop_.tasks];
    project = project.file("user.toml", "[loop]\ntasks = 3\n");
    seen.push(project.config().loop_.tasks);
    project = project.file("flockd.toml", "[loop]\ntasks = 4\n");
    seen.push(project.config().loop_.tasks);
    project = project.file("flockd.local.toml", "\n[loop]\ntasks = 5\n");
    assert_eq!(project.source("loop.tasks"), "flockd.local.toml:3");
    seen.push(project.config().loop_.tasks);
    project = project.var("FLOCKD_LOOP_TASKS", "6");
    assert_eq!(project.source("loop.tasks"), "FLOCKD_LOOP_TASKS");
    seen.push(project.config().loop_.tasks);
    project = project.var("FLOCKD_TASKS", "7");
    seen.push(project.config().loop_.tasks);
    project = project.flag("-x", "loop.tasks", "8");
    assert_eq!(project.source("loop.tasks"), "-x");
    seen.push(project.config().loop_.tasks);
    assert_eq!(seen, [2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(project.source("loop.roles"), "default");
}

/// Behaviour 32: M from the environment; 33: it reaches the resolved value.
#[test]
fn behaviour_032_ceiling_from_the_environment() {
    for (text, expected, warns) in [
        ("", 8, false),
        ("   ", 8, false),
        ("abc", 8, true),
        ("4.5", 8, true),
        ("4", 4, false),
        (" 4 ", 4, false),
        ("0", 1, true),
        ("-3", 1, true),
    ] {
        for name in [
            "FLOCKD_GLOBAL_CONCURRENCY",
            "FLOCKD_LOOP_GLOBAL_CONCURRENCY",
        ] {
            let project = Project::new().var(name, text);
            assert_eq!(
                project.config().loop_.global_concurrency,
                expected,
                "{name}={text:?}"
            );
            assert_eq!(!project.warnings().is_empty(), warns, "{name}={text:?}");
        }
    }
}

#[test]
fn behaviour_033_a_bad_variable_falls_to_the_file_not_to_the_default() {
    let project = Project::new()
        .file("flockd.toml", "[loop]\nglobal_concurrency = 3\n")
        .var("FLOCKD_GLOBAL_CONCURRENCY", "many");
    assert_eq!(project.config().loop_.global_concurrency, 3);
    let project = project.var("FLOCKD_GLOBAL_CONCURRENCY", "5");
    assert_eq!(project.config().loop_.global_concurrency, 5);
}

#[test]
fn behaviour_043_tasks_from_the_environment_and_the_kill_switch() {
    for (text, expected) in [("", 2), (" ", 2), ("x", 2), ("0", 1), ("-1", 1), ("6", 6)] {
        assert_eq!(
            Project::new()
                .var("FLOCKD_TASKS", text)
                .config()
                .loop_
                .tasks,
            expected,
            "{text:?}"
        );
    }
    for on in ["1", "true", "YES", "On"] {
        let project = Project::new()
            .flag("-x", "loop.tasks", "6")
            .flag("-y", "loop.workers", "3")
            .var("FLOCKD_PARALLELISM_KILL", on);
        let config = project.config();
        assert_eq!((config.loop_.tasks, config.loop_.workers), (1, 1), "{on}");
        assert!(config.parallelism_kill);
    }
    for off in ["", "0", "no", "maybe"] {
        assert!(!kill_switch(&Environment::from([(
            "FLOCKD_PARALLELISM_KILL".into(),
            off.into()
        )])));
    }
}

#[test]
fn behaviour_066_words_for_infinite() {
    for word in ["0", "infinite", "unlimited", " INFINITE ", "Unlimited"] {
        assert!(
            Project::new()
                .flag("--max-completed", "loop.max_completed", word)
                .config()
                .loop_
                .infinite,
            "{word:?}"
        );
        assert!(
            Project::new()
                .var("FLOCKD_LOOP_MAX_COMPLETED", word)
                .config()
                .loop_
                .infinite,
            "{word:?}"
        );
    }
    assert!(
        Project::new()
            .file("flockd.toml", "[loop]\nmax_completed = 0\n")
            .config()
            .loop_
            .infinite
    );
    let negative = Project::new().flag("--max-completed", "loop.max_completed", "-1");
    insta::assert_snapshot!(negative.errors(), @r#"--max-completed: loop.max_completed: -1 is not right here: write a whole number, or "infinite""#);
}

#[test]
fn behaviour_067_guard_settings_from_the_environment() {
    for bad in ["many", "-1", "1.5"] {
        let project = Project::new()
            .var("FLOCKD_MAX_CONSECUTIVE_BLOCKERS", bad)
            .var("FLOCKD_MAX_WALL_CLOCK_SECONDS", bad)
            .var("FLOCKD_TASK_WALL_CLOCK_SECONDS", bad);
        let guards = project.config().guards;
        assert_eq!(guards.consecutive_blockers, 3);
        assert_eq!(
            (guards.wall_clock, guards.task_wall_clock),
            (Duration::ZERO, Duration::ZERO)
        );
        assert_eq!(project.warnings().len(), 3, "{bad}");
    }
    let guards = Project::new()
        .var("FLOCKD_MAX_CONSECUTIVE_BLOCKERS", "7")
        .var("FLOCKD_MAX_WALL_CLOCK_SECONDS", "600")
        .var("FLOCKD_GUARDS_TASK_WALL_CLOCK", "10m")
        .config()
        .guards;
    assert_eq!(guards.consecutive_blockers, 7);
    assert_eq!(
        (guards.wall_clock, guards.task_wall_clock),
        (Duration::from_secs(600), Duration::from_secs(600))
    );
}

#[test]
fn the_environment_reaches_lists_agents_and_roles() {
    let config = Project::new()
        .file("flockd.toml", EXAMPLE)
        .var("FLOCKD_SHIP_VERIFY", "make check, make test")
        .var(
            "FLOCKD_AGENTS_CLAUDE_COMMAND",
            r#"["/opt/claude", "--x,y"]"#,
        )
        .var("FLOCKD_ROLES_WRITER_DEADLINE", "5m")
        .var("FLOCKD_STATE_DIR", "/elsewhere")
        .config();
    assert_eq!(config.ship.verify, ["make check", "make test"]);
    assert_eq!(config.agents["claude"].command, ["/opt/claude", "--x,y"]);
    assert_eq!(
        config.roles["writer"].limits.deadline,
        Duration::from_secs(300)
    );
    assert_eq!(config.state_dir, PathBuf::from("/elsewhere"));
}

#[test]
fn stages_of_a_higher_file_replace_those_below() {
    let config = Project::new()
        .file("flockd.toml", EXAMPLE)
        .file(
            "flockd.local.toml",
            "[[stages]]\nname = \"only\"\nrun = [\"true\"]\n",
        )
        .config();
    assert_eq!(config.stages.len(), 1);
    assert_eq!(config.stages[0].name, "only");
}
