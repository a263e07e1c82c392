//! What `flockd init` writes, as data: which agents are installed and the texts of the files. Writes
//! nothing itself.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// An agent CLI that flockd knows how to run without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownAgent {
    /// Its program, and its name in `flockd.toml`.
    pub program: &'static str,
    /// argv that reads the prompt on stdin and may edit the worktree.
    command: &'static [&'static str],
    /// Variables it logs in with.
    env: &'static [&'static str],
}

/// In order of preference: the first one found becomes the writer.
const KNOWN_AGENTS: [KnownAgent; 7] = [
    KnownAgent {
        program: "claude",
        command: &["claude", "-p", "--permission-mode", "acceptEdits"],
        env: &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"],
    },
    KnownAgent {
        program: "codex",
        command: &["codex", "exec", "--sandbox", "workspace-write", "-"],
        env: &["OPENAI_API_KEY", "CODEX_HOME"],
    },
    KnownAgent {
        program: "gemini",
        // A fresh worktree is an untrusted folder to it (exit 55) unless told otherwise.
        command: &["gemini", "--approval-mode", "yolo", "--skip-trust"],
        env: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
    KnownAgent {
        program: "opencode",
        command: &["opencode", "run", "--auto"],
        env: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENCODE_CONFIG"],
    },
    KnownAgent {
        program: "cursor-agent",
        // It takes the prompt as an argument only.
        command: &[
            "sh",
            "-c",
            "exec cursor-agent -p --force --output-format text \"$(cat)\"",
        ],
        env: &["CURSOR_API_KEY"],
    },
    KnownAgent {
        program: "goose",
        command: &["goose", "run", "--no-session", "-i", "-"],
        env: &[
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GOOSE_PROVIDER",
            "GOOSE_MODEL",
        ],
    },
    KnownAgent {
        program: "aider",
        command: &[
            "aider",
            "--yes-always",
            "--no-stream",
            "--no-pretty",
            "--no-check-update",
            "--no-gitignore",
            "--no-auto-commits",
            "--message-file",
            "/dev/stdin",
        ],
        env: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
    },
];

/// One file of a new project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitFile {
    /// Relative to the project's root.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
    /// Whether people may run it.
    pub executable: bool,
}

/// The known agents whose programs are on this `PATH`, in order of preference.
#[must_use]
pub fn installed_agents(path: &OsStr) -> Vec<KnownAgent> {
    let is_program = |file: &Path| {
        std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    KNOWN_AGENTS
        .into_iter()
        .filter(|agent| std::env::split_paths(path).any(|dir| is_program(&dir.join(agent.program))))
        .collect()
}

/// The files of a new project; the caller writes those that are not there yet.
#[must_use]
pub fn init_files(agents: &[KnownAgent]) -> Vec<InitFile> {
    let plain = |path: &str, text: String| InitFile {
        path: path.into(),
        text,
        executable: false,
    };
    let mut files = vec![
        plain(super::PROJECT_FILE, project_file(agents)),
        plain("tasks/T-0001.md", EXAMPLE_TASK.to_owned()),
    ];
    if agents.is_empty() {
        files.push(InitFile {
            path: EXAMPLE_SCRIPT_PATH.into(),
            text: EXAMPLE_SCRIPT.to_owned(),
            executable: true,
        });
    }
    files
}

/// Lines that keep state and local settings out of git.
const IGNORED: [&str; 2] = ["/.flockd/", "/flockd.local.toml"];

/// `.gitignore` with flockd's rules added; none when they are all there.
#[must_use]
pub fn ignore_rules(existing: Option<&str>) -> Option<String> {
    let existing = existing.unwrap_or_default();
    let has = |rule: &str| {
        let bare = rule.trim_matches('/');
        existing
            .lines()
            .any(|line| line.trim().trim_matches('/') == bare)
    };
    let missing: Vec<&str> = IGNORED.into_iter().filter(|rule| !has(rule)).collect();
    if missing.is_empty() {
        return None;
    }
    let mut text = existing.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for rule in missing {
        text.push_str(rule);
        text.push('\n');
    }
    Some(text)
}

fn project_file(agents: &[KnownAgent]) -> String {
    let list = |items: &[&str]| {
        let quoted: Vec<String> = items
            .iter()
            .map(|item| toml::Value::String((*item).to_owned()).to_string())
            .collect();
        format!("[{}]", quoted.join(", "))
    };
    let mut sections = String::new();
    for agent in agents {
        sections.push_str(&format!(
            "[agents.{}]\nkind = \"command\"                 # prompt on stdin, verdict by exit code and last line\n\
             command = {}\nenv = {}\n\n",
            agent.program,
            list(agent.command),
            list(agent.env),
        ));
    }
    if agents.is_empty() {
        sections.push_str(&format!(
            "# No agent CLI was found on PATH. Any program will do: the prompt comes on stdin, exit code 0\n\
             # and a last line \"verdict: pass\" mean done. This one is an example to be replaced.\n\
             [agents.example]\nkind = \"command\"\ncommand = [\"sh\", \"{EXAMPLE_SCRIPT_PATH}\"]\n\n"
        ));
    }
    let writer = agents.first().map_or("example", |agent| agent.program);
    format!("{HEAD}{sections}[roles.writer]\nagent = \"{writer}\"\n{TAIL}")
}

const HEAD: &str = r#"# flockd: what runs in this repository, and how much of it at once.
# Every value can be overridden by flockd.local.toml (not in git), by FLOCKD_<SECTION>_<KEY> and by
# flags; `flockd config show` says where each value comes from.

# state_dir = ".flockd"
# task_dir = "tasks"

[loop]
tasks = 2                        # X: tasks in flight
workers = 1                      # Y: workers per task, each in its own worktree
roles = 4                        # Z: roles of one stage at once
global_concurrency = 8           # M: child processes alive at once, everything counted
max_completed = 5                # a bounded run stops after so many completions
# max_attempts = 15              # claims per bounded run
# infinite = false               # true: until the queue is empty
# base = "HEAD"                  # commit-ish the worktrees start from

# [guards]
# consecutive_blockers = 3       # blockers in a row that stop the loop
# task_blockers = 3              # a task blocked so often waits for a person
# wall_clock = "0s"              # whole loop; 0 = off
# task_wall_clock = "0s"         # one task; 0 = off

[limits]
deadline = "60m"                 # of one run
idle = "10m"                     # no output and no CPU time
# grace = "5s"                   # TERM to KILL
# output_max = "64MiB"           # kept per stream
# retries = 1                    # of an infrastructure failure

"#;

const TAIL: &str = r#"# prompt = "prompts/write.md"    # a template; without it the task's body is the prompt
# deadline = "30m"

[[stages]]                       # in this order, for each worker of a task
name = "write"
roles = ["writer"]

# [[stages]]
# name = "verify"
# run = ["make check"]           # commands, in the worktree; each takes a slot
"#;

const EXAMPLE_TASK: &str = r#"+++
title = "An example: replace it with work of your own"
priority = 0                     # higher first, then lowest id
claims = ["docs/example.md"]     # what it may touch; without claims: the whole repository
# after = ["T-0000"]             # tasks that must be completed first
state = "hold"                   # write "ready" and the loop takes it
+++
Everything below the fence is the prompt.

Write docs/example.md: one paragraph that says what this repository is for.
"#;

const EXAMPLE_SCRIPT_PATH: &str = "scripts/flockd-agent.sh";

const EXAMPLE_SCRIPT: &str = r#"#!/bin/sh
# An example agent: reads the prompt on stdin, changes the worktree it runs in, says its verdict.
set -eu
prompt=$(cat)
mkdir -p docs
printf '%s: %s\n\n%s\n' "$FLOCKD_TASK_ID" "$FLOCKD_TASK_TITLE" "$prompt" > docs/example.md
echo "verdict: pass"
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::merge::Merged;
    use crate::config::place::FileLayer;

    #[test]
    fn what_init_writes_is_valid_for_every_agent() {
        let mut sets: Vec<Vec<KnownAgent>> =
            KNOWN_AGENTS.iter().map(|agent| vec![*agent]).collect();
        sets.push(Vec::new());
        sets.push(KNOWN_AGENTS.to_vec());
        for agents in sets {
            let files = init_files(&agents);
            let mut merged = Merged::builtin();
            merged.file(FileLayer::Project, Path::new("flockd.toml"), &files[0].text);
            let config = crate::config::resolve::resolve(&mut merged, Path::new("/r"), false);
            assert_eq!(merged.problems, [], "{agents:?}");
            assert_eq!(config.cannot_start(), None);
            let task = crate::config::parse_task(&files[1].path, files[1].text.as_bytes()).unwrap();
            assert_eq!(task.state, crate::config::TaskState::Hold);
            assert_eq!(files.len(), if agents.is_empty() { 3 } else { 2 });
        }
    }

    #[test]
    fn ignore_rules_are_added_once() {
        let first = ignore_rules(None).unwrap();
        assert_eq!(first, "/.flockd/\n/flockd.local.toml\n");
        assert_eq!(ignore_rules(Some(&first)), None);
        assert_eq!(
            ignore_rules(Some("target\n.flockd")).unwrap(),
            "target\n.flockd\n/flockd.local.toml\n"
        );
    }
}
