//! The state directory's version marker: written last at its creation, checked at every start.

use super::error::LedgerError;
use crate::fsx;
use std::path::Path;

/// The version of state directories that this program writes.
const STATE_VERSION: u32 = 1;

/// Writes `VERSION` when it is missing, else checks it. Call it under the singleton lock, at
/// creation after all else is there.
///
/// # Errors
/// [`LedgerError::NewerVersion`] when a newer flockd wrote it or it is no number; the disk's
/// refusal.
pub fn ensure_version(state_dir: &Path) -> Result<(), LedgerError> {
    let path = state_dir.join("VERSION");
    let Some(bytes) = fsx::read(&path)? else {
        return Ok(fsx::replace_durable(
            &path,
            format!("{STATE_VERSION}\n").as_bytes(),
        )?);
    };
    let text = String::from_utf8_lossy(&bytes);
    match text.trim().parse::<u32>() {
        Ok(version) if version <= STATE_VERSION => Ok(()),
        _ => Err(LedgerError::NewerVersion {
            path,
            found: text.trim().to_owned(),
            known: STATE_VERSION,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_state_directory_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("VERSION");
        ensure_version(dir.path()).unwrap();
        assert_eq!(fsx::read(&path).unwrap().unwrap(), b"1\n");
        ensure_version(dir.path()).unwrap();
        for other in ["2\n", "", "one\n"] {
            fsx::replace_cached(&path, other.as_bytes()).unwrap();
            let error = ensure_version(dir.path()).unwrap_err();
            assert!(matches!(error, LedgerError::NewerVersion { .. }));
            assert_eq!(fsx::read(&path).unwrap().unwrap(), other.as_bytes());
        }
    }
}
