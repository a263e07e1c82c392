//! Holding a lease: the part of it that keeps it alive.

use super::error::LeaseError;
use super::live;
use super::section;
use crate::fsx;
use crate::fsx::lock::Lock;
use crate::types::LeaseId;
use std::path::Path;

/// Keeps a lease alive until it is dropped or the process ends. Dropping is not releasing: the entry
/// stays until it is released, or reclaimed by who wants its paths.
#[derive(Debug)]
pub struct LeaseHold {
    lease_id: LeaseId,
    _lock: Lock,
}

impl LeaseHold {
    pub(super) fn new(lease_id: LeaseId, lock: Lock) -> Self {
        Self {
            lease_id,
            _lock: lock,
        }
    }

    /// The lease.
    #[must_use]
    pub fn lease_id(&self) -> &LeaseId {
        &self.lease_id
    }
}

/// Joins in holding a lease: what a runner does before it starts a child under it.
///
/// # Errors
/// [`LeaseError::Gone`] when the lease has been released or reclaimed.
pub fn hold_shared(state_dir: &Path, id: &LeaseId) -> Result<LeaseHold, LeaseError> {
    let gone = || LeaseError::Gone { lease: id.clone() };
    let path = live::path(state_dir, id);
    if path.symlink_metadata().is_err() {
        return Err(gone());
    }
    // Waits at most for somebody's look at it.
    let lock = Lock::shared(&path)?;
    // Whoever reclaims takes the entry out before it lets go of the file: with our lock and the entry
    // there, the lease is ours to share.
    let bytes = fsx::read(&section::leases_path(state_dir))?.unwrap_or_default();
    if names_lease(&bytes, id) {
        return Ok(LeaseHold::new(id.clone(), lock));
    }
    drop(lock);
    live::remove(state_dir, id);
    Err(gone())
}

/// The search for an entry without parsing: the bytes are ours.
fn names_lease(bytes: &[u8], id: &LeaseId) -> bool {
    let needle = format!("\"lease_id\": \"{id}\"");
    std::str::from_utf8(bytes).is_ok_and(|text| text.contains(&needle))
}
