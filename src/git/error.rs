//! What can go wrong with git: which command, what git said, what the user can do.

use super::parse;
use crate::proc::command::{CommandError, CommandOutput};
use std::path::{Path, PathBuf};

/// The oldest git that works: `worktree list --porcelain -z`, the only listing that is safe for every path, came with it.
pub(super) const GIT_VERSION_MIN: (u32, u32) = (2, 36);

/// Lines of git's words that are shown: the cause is at the end.
const SAID_LINES_MAX: usize = 5;

/// Endings of git's lines that mean that the machine, not the task, is at fault.
const MACHINE_FAULTS: &[&str] = &[
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "Input/output error",
    "Too many open files",
    "Too many open files in system",
    "Cannot allocate memory",
];

/// A git operation that did not work.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("cannot find git: install git {}.{} or newer, or put it on PATH", GIT_VERSION_MIN.0, GIT_VERSION_MIN.1)]
    Missing,
    /// The git that was found is too old.
    #[error("git {found} is too old: install git {}.{} or newer", GIT_VERSION_MIN.0, GIT_VERSION_MIN.1)]
    TooOld {
        /// Its version.
        found: String,
    },
    /// The folder belongs to no repository.
    #[error("{} is not in a git repository: run `git init` and commit something there, or start flockd inside a repository", .0.display())]
    NotARepository(PathBuf),
    /// The repository has no files checked out here.
    #[error("{} has no working tree (a bare repository, or inside .git): start flockd in a checkout of it", .0.display())]
    NoWorkTree(PathBuf),
    /// The repository has no commit yet.
    #[error("the repository {} has no commit yet: workers start from a commit, make the first one with `git commit`", .0.display())]
    Unborn(PathBuf),
    /// A name that means no commit.
    #[error("{commitish:?} is no commit of {}: check the spelling, or fetch it first", top.display())]
    Unresolved {
        /// The name.
        commitish: String,
        /// The repository.
        top: PathBuf,
    },
    /// A folder that should be there is not.
    #[error("the folder {} is gone", .0.display())]
    FolderGone(PathBuf),
    /// A lock file is in the way: a git that runs, or one that was killed.
    #[error("{command}: {} exists: wait for the git that runs there, or remove the file if none does", file.display())]
    Locked {
        /// The command.
        command: String,
        /// The lock file.
        file: PathBuf,
    },
    /// The machine cannot do it: no space, read-only, out of descriptors.
    #[error("{command}: {said}: make room or make the file system writable, then start again")]
    Machine {
        /// The command.
        command: String,
        /// Git's last words.
        said: String,
    },
    /// Git said no.
    #[error("{command} failed: {said} (in {}; run it there by hand to look into it)", cwd.display())]
    Failed {
        /// The command.
        command: String,
        /// Where it ran.
        cwd: PathBuf,
        /// Git's last words.
        said: String,
    },
    /// The command could not be run to its end.
    #[error("{command}: {source}: see whether the disk or the repository is slow or stuck")]
    Unfinished {
        /// The command.
        command: String,
        /// Why.
        #[source]
        source: CommandError,
    },
    /// Git's output is not what flockd understands.
    #[error(
        "cannot understand what {command} printed: {what}; report this together with `git --version`"
    )]
    Unreadable {
        /// The command.
        command: String,
        /// What is wrong with it.
        what: String,
    },
    /// A new worktree is not a tree of its own: work in it would land elsewhere.
    #[error("the worktree {} is not confined: git in it works on {}; choose another folder for worktrees", path.display(), found.display())]
    Unconfined {
        /// The worktree.
        path: PathBuf,
        /// What git there takes for its tree.
        found: PathBuf,
    },
    /// A branch whose name keeps all `flockd/…` branches from existing.
    #[error(
        "the branch {0:?} is in the way of the branches flockd/…: rename it with `git branch -m {0} NEW`"
    )]
    BranchInTheWay(String),
}

impl GitError {
    /// Whether the machine is at fault, so that every other task would fail the same way.
    #[must_use]
    pub fn is_systemic(&self) -> bool {
        match self {
            Self::Missing | Self::TooOld { .. } | Self::Machine { .. } => true,
            Self::Unfinished { source, .. } => matches!(source, CommandError::Start { .. }),
            _ => false,
        }
    }

    /// What a command that ended without success means.
    pub(super) fn of_output(command: &str, cwd: &Path, output: &CommandOutput) -> Self {
        let command = command.to_owned();
        let text = String::from_utf8_lossy(&output.stderr);
        let is_machine = |line: &str| MACHINE_FAULTS.iter().any(|fault| line.ends_with(fault));
        if let Some(line) = text.lines().map(str::trim).find(|line| is_machine(line)) {
            return Self::Machine {
                command,
                said: line.to_owned(),
            };
        }
        if let Some(file) = parse::lock_in_the_way(&text) {
            return Self::Locked { command, file };
        }
        Self::Failed {
            command,
            cwd: cwd.to_owned(),
            said: last_words(&text, output),
        }
    }

    /// What a command that has no output means.
    pub(super) fn of_command(command: &str, cwd: &Path, source: CommandError) -> Self {
        if let CommandError::Start { source, .. } = &source
            && source.kind() == std::io::ErrorKind::NotFound
        {
            // The system says the same for a missing folder and a missing program.
            return if cwd.is_dir() {
                Self::Missing
            } else {
                Self::FolderGone(cwd.to_owned())
            };
        }
        Self::Unfinished {
            command: command.to_owned(),
            source,
        }
    }
}

fn last_words(text: &str, output: &CommandOutput) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("hint:"))
        .collect();
    let from = lines.len().saturating_sub(SAID_LINES_MAX);
    match (lines.get(from..), output.code, output.signal) {
        (Some(said), ..) if !said.is_empty() => said.join("; "),
        (_, Some(code), _) => format!("exit code {code} without a word"),
        (_, None, signal) => format!("ended by signal {}", signal.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(stderr: &str) -> GitError {
        let output = CommandOutput {
            code: Some(128),
            signal: None,
            stdout: Vec::new(),
            stderr: stderr.as_bytes().to_vec(),
            truncated: false,
        };
        GitError::of_output("git add -A", Path::new("/w"), &output)
    }

    #[test]
    fn the_machines_faults_are_systemic() {
        for said in [
            "error: unable to create temporary file: No space left on device\nfatal: adding files failed\n",
            "fatal: Unable to create '/r/.git/index.lock': Read-only file system",
        ] {
            let error = error_of(said);
            assert!(error.is_systemic(), "{error}");
            assert!(error.to_string().starts_with("git add -A: "), "{error}");
        }
        assert!(GitError::Missing.is_systemic());
        assert!(!error_of("fatal: 'No space left on device' is no commit").is_systemic());
    }

    #[test]
    fn a_lock_is_named_and_not_systemic() {
        let error = error_of(
            "fatal: Unable to create '/r/a b/index.lock': File exists.\n\nAnother git process…",
        );
        assert!(!error.is_systemic());
        assert!(error.to_string().contains("/r/a b/index.lock"), "{error}");
    }

    #[test]
    fn git_is_quoted_from_its_end_without_hints() {
        let error = error_of("1\n2\n3\n4\n5\n6\nhint: use x\n");
        assert_eq!(
            error.to_string(),
            "git add -A failed: 2; 3; 4; 5; 6 (in /w; run it there by hand to look into it)"
        );
        assert!(error_of("").to_string().contains("exit code 128"));
    }
}
