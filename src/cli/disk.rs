//! The few files that commands write themselves. Everything goes through `fsx`.

use super::failure::Failure;
use crate::fsx;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Up to here each file of a batch is synced by itself: a whole file system may have much else to write.
const SINGLE_SYNCS_MAX: usize = 16;

impl From<fsx::FsError> for Failure {
    fn from(error: fsx::FsError) -> Self {
        Self::failed(error)
    }
}

/// A text file's content; none when it is missing.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, Failure> {
    let Some(bytes) = fsx::read(path)? else {
        return Ok(None);
    };
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| Failure::invalid(format!("{} is not UTF-8", path.display())))
}

/// A new file of the project with the folders above it, readable like any source file.
pub(super) fn write_project_file(path: &Path, text: &str, executable: bool) -> Result<(), Failure> {
    if let Some(folder) = path.parent()
        && !folder.is_dir()
    {
        fsx::create_dir_all(folder)?;
        set_mode(folder, 0o755)?;
    }
    fsx::create_new_durable(path, text.as_bytes())?;
    set_mode(path, if executable { 0o755 } else { 0o644 })
}

/// Replaces a file of the project, keeping its mode; a new one is readable like any source file.
pub(super) fn replace_project_file(path: &Path, text: &str) -> Result<(), Failure> {
    let new = !path.exists();
    fsx::replace_durable(path, text.as_bytes())?;
    if new { set_mode(path, 0o644) } else { Ok(()) }
}

fn set_mode(path: &Path, mode: u32) -> Result<(), Failure> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(|e| Failure::failed(format!("cannot set the mode of {}: {e}", path.display())))
}

/// An empty marker file; there already is fine.
pub(super) fn mark(path: &Path) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        fsx::create_dir_all(folder)?;
    }
    Ok(fsx::replace_durable(path, b"")?)
}

/// Removes a marker file; missing is fine.
pub(super) fn unmark(path: &Path) -> Result<(), Failure> {
    Ok(fsx::remove(path)?)
}

/// Writes new files into one folder, all or none, durable when it returns.
///
/// Not guaranteed: "none" after a power cut in the middle; then a part of the files may be there, each
/// whole or empty.
pub(super) fn write_batch(folder: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    fsx::create_dir_all(folder)?;
    let mut written = Vec::with_capacity(files.len());
    let result = files.iter().try_for_each(|(name, text)| {
        let path = folder.join(name);
        written.push(path.clone());
        fsx::replace_cached(&path, text.as_bytes())
    });
    let result = result.and_then(|()| {
        if written.len() <= SINGLE_SYNCS_MAX {
            written.iter().try_for_each(|path| fsx::sync_file(path))?;
            return fsx::sync_dir(folder);
        }
        fsx::sync_file_system(folder)
    });
    if let Err(error) = result {
        for path in &written {
            // The first error is the one to report.
            let _ = fsx::remove(path);
        }
        return Err(error.into());
    }
    Ok(())
}
