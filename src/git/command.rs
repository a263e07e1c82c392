//! The one builder of git commands: pinned locale, no prompts, no monitor, no variables of an outer git.

use crate::proc::command::{CommandError, CommandOutput, CommandSpec, run};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest run of one git command: a worktree of a large repository takes a while.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Variables that would point git at another repository, index or worktree than the one we mean.
const FOREIGN: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
];

/// Why git did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git could not be run, or not to its end.
    #[error("git: {0}")]
    Run(#[from] CommandError),
    /// git said no.
    #[error("git {command}: {message}")]
    Failed {
        /// Its first words.
        command: String,
        /// The last lines of what it said.
        message: String,
    },
    /// No room, or no right to write.
    #[error("git {command}: {message}; make room or mount it writable")]
    NoSpace {
        /// Its first words.
        command: String,
        /// The last lines of what it said.
        message: String,
    },
    /// Not in a repository.
    #[error("{} is not in a git repository: run `git init` first", .0.display())]
    NoRepository(PathBuf),
    /// A repository without a commit.
    #[error("{} has no commit yet: worktrees start from one, so make a first commit", .0.display())]
    NoCommit(PathBuf),
    /// A program too old.
    #[error(
        "git {found} is too old: {needed} or newer is needed (worktree move and remove, -z lists)"
    )]
    TooOld {
        /// What is installed.
        found: String,
        /// What is needed.
        needed: &'static str,
    },
    /// A worktree that is not where it should be.
    #[error("{} is not a worktree of its own: git says its top is {top}", path.display())]
    NotConfined {
        /// The folder.
        path: PathBuf,
        /// git's answer.
        top: String,
    },
}

impl GitError {
    /// Whether the machine is at fault and not the task.
    #[must_use]
    pub fn is_systemic(&self) -> bool {
        matches!(
            self,
            Self::Run(_)
                | Self::NoSpace { .. }
                | Self::NoRepository(_)
                | Self::NoCommit(_)
                | Self::TooOld { .. }
        )
    }
}

/// A git command in a folder.
pub(super) struct Git {
    spec: CommandSpec,
    words: Vec<String>,
}

impl Git {
    pub(super) fn at(folder: &Path) -> Self {
        let mut spec = CommandSpec::new("git");
        spec.cwd = Some(folder.to_owned());
        spec.timeout = TIMEOUT;
        spec.env = [
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_EDITOR", "true"),
        ]
        .map(|(n, v)| (OsString::from(n), OsString::from(v)))
        .to_vec();
        spec.env_remove = FOREIGN.map(OsString::from).to_vec();
        spec.args = [
            "-c",
            "core.fsmonitor=false",
            "-c",
            "submodule.recurse=false",
            "-c",
            "core.quotePath=false",
        ]
        .map(OsString::from)
        .to_vec();
        Self {
            spec,
            words: Vec::new(),
        }
    }

    /// A setting for this command only.
    pub(super) fn with(mut self, setting: &str) -> Self {
        self.spec.args.extend(["-c".into(), setting.into()]);
        self
    }

    /// A command that only reads takes no lock that a person's git could run into.
    pub(super) fn reading(mut self) -> Self {
        self.spec
            .env
            .push(("GIT_OPTIONAL_LOCKS".into(), "0".into()));
        self
    }

    pub(super) fn args<I, S>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        for arg in args {
            let arg = arg.into();
            self.words.push(arg.to_string_lossy().into_owned());
            self.spec.args.push(arg);
        }
        self
    }

    /// Runs it; any exit code.
    pub(super) fn output(self) -> Result<(CommandOutput, String), GitError> {
        let name = self
            .words
            .iter()
            .take(2)
            .cloned()
            .collect::<Vec<_>>()
            .join(" ");
        Ok((run(&self.spec)?, name))
    }

    /// Runs it; exit code 0 or an error.
    pub(super) fn ok(self) -> Result<Vec<u8>, GitError> {
        let (output, command) = self.output()?;
        if output.success() {
            return Ok(output.stdout);
        }
        Err(failed(command, &output))
    }

    /// As [`Git::ok`], as one trimmed text.
    pub(super) fn text(self) -> Result<String, GitError> {
        self.ok()
            .map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Runs it and asks only whether it succeeded.
    pub(super) fn succeeds(self) -> Result<bool, GitError> {
        self.output().map(|(output, _)| output.success())
    }
}

/// Lines of git's message that are kept.
const MESSAGE_LINES: usize = 3;

fn failed(command: String, output: &CommandOutput) -> GitError {
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let from = lines.len().saturating_sub(MESSAGE_LINES);
    let message = lines.get(from..).unwrap_or_default().join("; ");
    let full = [
        "No space left on device",
        "Disk quota exceeded",
        "Read-only file system",
    ];
    if full.iter().any(|text| said.contains(text)) {
        GitError::NoSpace { command, message }
    } else {
        GitError::Failed { command, message }
    }
}
