//! Why a claim, a hold or a release did not happen.

use crate::fsx::FsError;
use crate::types::{ClaimPath, LeaseId, TaskId};
use std::path::PathBuf;

/// Why a lease operation did not happen. Unless said otherwise, no byte was changed.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// A living holder has overlapping paths (P5).
    #[error(
        "{claim} overlaps {path}, which task {task} holds (lease {lease}, process {pid}): \
         wait for it, or claim other paths"
    )]
    Conflict {
        /// Whose lease it is.
        task: TaskId,
        /// The lease in the way.
        lease: LeaseId,
        /// The requested path.
        claim: ClaimPath,
        /// The path that is taken.
        path: ClaimPath,
        /// The process that claimed it, for people.
        pid: u32,
    },
    /// The request names no path.
    #[error("nothing is claimed: name a path, or \".\" for the whole repository")]
    Empty,
    /// The lease is not there any more: released, replaced or reclaimed.
    #[error("lease {lease} is not held any more: claim again")]
    Gone {
        /// The lease.
        lease: LeaseId,
    },
    /// The caller's epoch is not the lease's: somebody took it over (W17).
    #[error("lease {lease} has epoch {current}, not {epoch}: it was taken over")]
    Stale {
        /// The lease.
        lease: LeaseId,
        /// The caller's epoch.
        epoch: u64,
        /// The lease's epoch.
        current: u64,
    },
    /// A living process holds the lease that somebody else wants to release.
    #[error(
        "lease {lease} of task {task} is held by a living process (claimed by {pid}): end it first"
    )]
    Held {
        /// The lease.
        lease: LeaseId,
        /// Its task.
        task: TaskId,
        /// The process that claimed it.
        pid: u32,
    },
    /// The file is not what flockd writes. It is left as it is, since a rewrite would erase live claims.
    #[error(
        "{path} is damaged ({why}): it is left untouched; when no flockd process runs, move it away"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// The file is of a newer flockd.
    #[error("{path} has schema version {found}, this flockd knows {known}: use the newer flockd")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// Ours.
        known: u64,
    },
    /// A file could not be read, written or locked.
    #[error(transparent)]
    File(#[from] FsError),
}

impl LeaseError {
    /// Whether the disk is full: a state to wait out, not a fault of the claim.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        matches!(self, Self::File(error) if error.is_no_space())
    }

    /// Whether living holders are in the way, so that trying later makes sense (exit code 4).
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::Held { .. })
    }
}
