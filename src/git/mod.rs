//! Git: worktrees and branches of workers, capture of their work, leftovers. Knows no lease, no run, no ledger.

mod call;
mod capture;
mod error;
mod leftover;
mod parse;
mod prepare;
mod repo;
mod retire;

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files the way users do"
)]
mod tests;

pub use capture::Captured;
pub use error::GitError;
pub use prepare::{Worktree, WorktreeRequest};
pub use repo::Repo;
pub use retire::{Leftover, Removed};
