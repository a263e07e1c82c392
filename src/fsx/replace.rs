//! Replacing a file as a whole: readers see the old bytes or the new ones, never a mixture.

use super::{FsError, sync_dir};
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;

/// The end of every temp name of ours: `.<file>.<8 letters or digits>.tmp`.
const TEMP_SUFFIX: &str = ".tmp";
/// Random letters in a temp name.
const TEMP_RANDOM: usize = 8;
/// The mode of a file that was not there before.
const NEW_FILE_MODE: u32 = 0o600;

/// Replaces a file, durably: when this returns, the new bytes survive a power cut.
///
/// A temp file beside the target is written and synced, then renamed over it, then the folder is
/// synced. The mode of an existing target is kept; a new file gets 0600. On an error the target is
/// as it was (or, if only the last sync failed, already the new one) and no temp file is left.
///
/// # Errors
/// [`FsError::Symlink`] when the target is a link, else the system's refusal.
pub fn replace_durable(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let temp = write_temp(path, bytes)?;
    temp.as_file()
        .sync_all()
        .map_err(FsError::io("sync the new content of", path))?;
    persist(temp, path)?;
    sync_dir(parent(path))
}

/// Replaces a file atomically but not durably: after a power cut the name may show the old bytes,
/// the new ones, or an empty file. For what can be made again.
///
/// # Errors
/// As [`replace_durable`].
pub fn replace_cached(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    persist(write_temp(path, bytes)?, path)
}

/// Creates a file with all its content, durably, mode 0600; never replaces one.
///
/// # Errors
/// [`FsError::is_already_there`] when the name is taken, else the system's refusal.
pub fn create_new_durable(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let temp = write_temp(path, bytes)?;
    temp.as_file()
        .sync_all()
        .map_err(FsError::io("sync the new content of", path))?;
    temp.persist_noclobber(path)
        .map_err(|error| FsError::io("create", path)(error.error))?;
    sync_dir(parent(path))
}

/// Removes temp files that a killed process left in a folder; returns how many.
///
/// Only names that this module makes are touched. Call it only under the singleton lock: the temp
/// file of a living writer looks the same.
///
/// # Errors
/// The system's refusal. A missing folder has no temp files.
pub fn sweep_temps(dir: &Path) -> Result<usize, FsError> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(FsError::io("list", dir)(error)),
    };
    let mut swept = 0;
    for entry in entries {
        let entry = entry.map_err(FsError::io("list", dir))?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_temp_name(&entry.file_name()) {
            super::remove(&entry.path())?;
            swept += 1;
        }
    }
    Ok(swept)
}

fn is_temp_name(name: &OsStr) -> bool {
    let Some(stem) = name.as_bytes().strip_suffix(TEMP_SUFFIX.as_bytes()) else {
        return false;
    };
    let Some(cut) = stem.len().checked_sub(TEMP_RANDOM) else {
        return false;
    };
    let (prefix, random) = stem.split_at(cut);
    random.iter().all(u8::is_ascii_alphanumeric)
        && prefix.len() > 2
        && prefix.starts_with(b".")
        && prefix.ends_with(b".")
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

fn write_temp(path: &Path, bytes: &[u8]) -> Result<NamedTempFile, FsError> {
    let mode = match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_symlink() => {
            return Err(FsError::Symlink {
                path: path.to_owned(),
            });
        }
        Ok(meta) => meta.permissions().mode() & 0o7777,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => NEW_FILE_MODE,
        Err(error) => return Err(FsError::io("look at", path)(error)),
    };
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".");
    let mut temp = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(TEMP_SUFFIX)
        .rand_bytes(TEMP_RANDOM)
        .tempfile_in(parent(path))
        .map_err(FsError::io("create a temp file beside", path))?;
    temp.write_all(bytes)
        .map_err(FsError::io("write the new content of", path))?;
    if mode != NEW_FILE_MODE {
        temp.as_file()
            .set_permissions(Permissions::from_mode(mode))
            .map_err(FsError::io("keep the mode of", path))?;
    }
    Ok(temp)
}

fn persist(temp: NamedTempFile, path: &Path) -> Result<(), FsError> {
    // On an error the temp file is dropped with it, and with that removed.
    temp.persist(path)
        .map(drop)
        .map_err(|error| FsError::io("replace", path)(error.error))
}

#[cfg(test)]
#[path = "replace_tests.rs"]
mod tests;
