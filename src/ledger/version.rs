//! The version of the state directory's layout: written last at creation, checked before anything else.

use super::error::LedgerError;
use crate::fsx;
use std::path::Path;

const VERSION: u32 = 1;
const FILE: &str = "VERSION";

/// Writes the version into a new state directory, or checks it.
///
/// # Errors
/// [`LedgerError::Version`] when a newer flockd made it, [`LedgerError::Disk`].
pub fn ensure_version(state_dir: &Path) -> Result<(), LedgerError> {
    let path = state_dir.join(FILE);
    let Some(bytes) = fsx::read(&path)? else {
        return Ok(fsx::replace_durable(
            &path,
            format!("{VERSION}\n").as_bytes(),
        )?);
    };
    let found = String::from_utf8_lossy(&bytes).trim().to_owned();
    match found.parse::<u32>() {
        Ok(version) if (1..=VERSION).contains(&version) => Ok(()),
        _ => Err(LedgerError::Version {
            path,
            found,
            known: VERSION,
        }),
    }
}
