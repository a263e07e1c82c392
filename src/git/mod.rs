//! git, as the `git` program: one command builder, parsers, worktrees, keeping what a worker did.
//!
//! Decides nothing about tasks and never removes what could be lost.

mod capture;
mod command;
mod leftovers;
mod parse;
mod repo;
mod worktree;

pub use capture::Captured;
pub use command::GitError;
pub use leftovers::Leftover;
pub use repo::Repo;
pub use worktree::{Removed, Worktree, WorktreeRequest};
