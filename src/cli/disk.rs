//! The few files that commands write themselves. Everything goes through `fsx`.

use super::failure::Failure;
use std::path::Path;

fn failed(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}

/// A text file's content; none when it is missing.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::failed(format!("cannot read {}: {error}", path.display()))),
    }
}

/// A new file of the project with the folders above it, readable like any source file.
#[expect(clippy::disallowed_methods, reason = "replaced by fsx when it lands")]
pub(super) fn write_project_file(path: &Path, text: &str, executable: bool) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| failed(path, e))?;
    }
    std::fs::write(path, text).map_err(|e| failed(path, e))?;
    let mode = if executable { 0o755 } else { 0o644 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(|e| failed(path, e))
}

/// Replaces a file of the project, keeping its mode.
#[expect(clippy::disallowed_methods, reason = "replaced by fsx when it lands")]
pub(super) fn replace_project_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| failed(path, e))
}

/// An empty marker file; there already is fine.
#[expect(clippy::disallowed_methods, reason = "replaced by fsx when it lands")]
pub(super) fn mark(path: &Path) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| failed(path, e))?;
    }
    std::fs::write(path, b"").map_err(|e| failed(path, e))
}

/// Removes a marker file; missing is fine.
#[expect(clippy::disallowed_methods, reason = "replaced by fsx when it lands")]
pub(super) fn unmark(path: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::failed(format!("cannot remove {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}
