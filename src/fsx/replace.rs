//! Files replaced as a whole: a reader sees the old or the new content, never a mixture.
//!
//! Durable replace: temp file in the same folder → write → mode → fsync → rename → fsync of the folder
//! (style §3.2; W15). Every error path touches the temp file only.

use super::error::{Context, FsError};
use super::files::sync_dir;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// Random characters of a temp name: `.<file>.<random>.tmp`.
const RANDOM_CHARS: usize = 8;
/// Ends our temp names, so that a sweep removes nothing else.
const SUFFIX: &str = ".tmp";

/// Replaces a file so that the new content survives power loss once this returns. The mode of an
/// existing file is kept, a new one is 0600.
///
/// # Errors
/// [`FsError`]; the old content is then intact and no temp file is left.
pub fn replace_durable(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let temp = write_temp(path, bytes)?;
    temp.as_file().sync_all().context("sync", path)?;
    persist(temp, path)?;
    sync_dir(&folder(path))
}

/// Replaces a file atomically. Not guaranteed: that it survives power loss.
///
/// # Errors
/// As [`replace_durable`].
pub fn replace_cached(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    persist(write_temp(path, bytes)?, path)
}

/// Makes a file that must not be there yet, durably.
///
/// # Errors
/// [`FsError`], also when it exists.
pub fn create_new_durable(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let temp = write_temp(path, bytes)?;
    temp.as_file().sync_all().context("sync", path)?;
    temp.persist_noclobber(path)
        .map_err(|e| FsError::other("create", path, e.error))?;
    sync_dir(&folder(path))
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn write_temp(path: &Path, bytes: &[u8]) -> Result<NamedTempFile, FsError> {
    super::guard::refuse_symlink(path)?;
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut temp = Builder::new()
        .prefix(&format!(".{name}."))
        .rand_bytes(RANDOM_CHARS)
        .suffix(SUFFIX)
        .tempfile_in(folder(path))
        .context("create a temp file beside", path)?;
    temp.write_all(bytes).context("write", path)?;
    if let Ok(old) = path.symlink_metadata() {
        let mode = old.permissions().mode() & 0o7777;
        if mode != 0o600 {
            temp.as_file()
                .set_permissions(Permissions::from_mode(mode))
                .context("set the mode of", path)?;
        }
    }
    Ok(temp)
}

fn persist(temp: NamedTempFile, path: &Path) -> Result<(), FsError> {
    temp.persist(path)
        .map_err(|e| FsError::other("rename onto", path, e.error))?;
    Ok(())
}

/// Removes temp files that a crash left in a folder; gives their number. Only under the singleton lock:
/// a living writer's temp file would go too.
///
/// # Errors
/// [`FsError`] when the folder cannot be read.
pub fn sweep_temps(dir: &Path) -> Result<usize, FsError> {
    let mut swept = 0;
    for entry in std::fs::read_dir(dir).context("list", dir)? {
        let entry = entry.context("list", dir)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let ours = name.starts_with('.')
            && name.ends_with(SUFFIX)
            && name.len() > RANDOM_CHARS + SUFFIX.len() + 2;
        if ours && entry.file_type().is_ok_and(|t| t.is_file()) {
            super::files::remove(&entry.path())?;
            swept += 1;
        }
    }
    Ok(swept)
}
