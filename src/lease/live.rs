//! The `.live` files: a lease lives as long as some process holds the lock of its file (P2).

use super::error::LeaseError;
use crate::fsx::lock::Lock;
use crate::fsx::{self, FsError};
use crate::types::LeaseId;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const SUFFIX: &str = ".live";

/// Where the `.live` files are.
pub(super) fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join("leases")
}

pub(super) fn path(state_dir: &Path, id: &LeaseId) -> PathBuf {
    folder(state_dir).join(format!("{id}{SUFFIX}"))
}

/// Whether some process holds the lease. Only under the leases lock: the attempt itself holds the
/// file for a moment, which another look would take for life.
pub(super) fn is_locked(state_dir: &Path, id: &LeaseId) -> Result<bool, LeaseError> {
    let path = path(state_dir, id);
    if path.symlink_metadata().is_err() {
        return Ok(false);
    }
    Ok(Lock::try_exclusive(&path)?.is_none())
}

/// Removes the file of a lease that is out of the table. A lease's id is never used again, so this
/// lock file, unlike others, may go: nobody waits for it.
pub(super) fn remove(state_dir: &Path, id: &LeaseId) {
    if let Err(error) = fsx::remove(&path(state_dir, id)) {
        tracing::warn!(lease = %id, %error, "the live file stays; the next start removes it");
    }
}

/// Removes files without an entry, left by a crash before an entry was published or after it went.
/// Only under the leases lock.
pub(super) fn sweep(state_dir: &Path, known: &HashSet<&str>) -> Result<usize, LeaseError> {
    let folder = folder(state_dir);
    let entries = std::fs::read_dir(&folder).map_err(FsError::io("read", &folder))?;
    let mut swept = 0;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)) else {
            continue;
        };
        if !known.contains(id) && Lock::try_exclusive(&entry.path())?.is_some() {
            fsx::remove(&entry.path())?;
            swept += 1;
        }
    }
    Ok(swept)
}
