//! Why git did not do what was asked.

use crate::proc::command::CommandError;
use std::path::PathBuf;

/// Why git did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No work tree there.
    #[error(
        "{dir} is not inside a git work tree ({why}): run `git init`, or start in a repository"
    )]
    NotARepository {
        /// Where it was looked for.
        dir: PathBuf,
        /// What git said.
        why: String,
    },
    /// An old git.
    #[error("git {found} is too old: at least {least} is needed")]
    TooOld {
        /// What `git version` says.
        found: String,
        /// The oldest one that does.
        least: &'static str,
    },
    /// No commit to start from.
    #[error("the repository has no commit yet: make a first commit, worktrees start from one")]
    NoCommitYet,
    /// The name means no commit.
    #[error("{name:?} names no commit here: name a branch, a tag or a commit")]
    NoSuchCommit {
        /// The name.
        name: String,
    },
    /// The disk is full.
    #[error("no space left for `git {command}`: free some, nothing was lost")]
    NoSpace {
        /// The subcommand.
        command: String,
    },
    /// What should be a worktree of its own is a part of something else; nothing may be written there.
    #[error("{path} belongs to the work tree {found}: it is not a worktree of its own")]
    NotConfined {
        /// The worktree.
        path: PathBuf,
        /// What git calls its top level.
        found: PathBuf,
    },
    /// Git refused.
    #[error("`git {command}` failed: {stderr}")]
    Failed {
        /// The subcommand and its arguments.
        command: String,
        /// What it said.
        stderr: String,
    },
    /// Git's answer has another shape than expected.
    #[error("`git {command}` answered {answer:?}")]
    Answer {
        /// The subcommand.
        command: String,
        /// The part that was not understood.
        answer: String,
    },
    /// Git could not be run, or ran too long.
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl GitError {
    /// Whether every task would meet it, rather than this one only.
    #[must_use]
    pub fn is_systemic(&self) -> bool {
        match self {
            Self::NotARepository { .. }
            | Self::TooOld { .. }
            | Self::NoCommitYet
            | Self::NoSuchCommit { .. }
            | Self::NoSpace { .. } => true,
            Self::Command(error) => !matches!(error, CommandError::Timeout { .. }),
            Self::NotConfined { .. } | Self::Failed { .. } | Self::Answer { .. } => false,
        }
    }
}
