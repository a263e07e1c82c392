//! Git, as the `git` program. Owns worktrees, branches under `flockd/` and the capture of work; knows
//! nothing of tasks' states or of leases. Creation is serialised by the caller.

mod capture;
mod command;
mod error;
mod leftovers;
mod parse;
mod repo;
#[cfg(test)]
mod tests;
mod worktree;

pub use capture::Captured;
pub use error::GitError;
pub use leftovers::Leftover;
pub use repo::Repo;
pub use worktree::{Removed, Worktree, WorktreeRequest};
