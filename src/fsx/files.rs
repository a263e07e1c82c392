//! Plain operations on files and folders: private modes, close-on-exec, no symbolic links followed.
#![expect(
    clippy::disallowed_methods,
    reason = "this module is the one that the ban sends people to"
)]

use super::error::{Context, FsError};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const NOFOLLOW: i32 = nix::fcntl::OFlag::O_NOFOLLOW.bits();

/// Makes a folder and those above it, mode 0700. An existing folder keeps its mode.
///
/// # Errors
/// [`FsError`] when one cannot be made or is not a folder.
pub fn create_dir_all(path: &Path) -> Result<(), FsError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .context("create folder", path)
}

/// Reads a whole file; none when it is not there.
///
/// # Errors
/// [`FsError::Symlink`] for a symbolic link, [`FsError::Io`] for the rest.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, FsError> {
    match open_input(path) {
        Ok(mut file) => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).context("read", path)?;
            Ok(Some(bytes))
        }
        Err(FsError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file for reading; a symbolic link is refused.
///
/// # Errors
/// [`FsError`].
pub fn open_input(path: &Path) -> Result<File, FsError> {
    OpenOptions::new()
        .read(true)
        .custom_flags(NOFOLLOW)
        .open(path)
        .map_err(|e| refused(path, e, "open"))
}

/// Opens a file that a child appends its output to: made with mode 0600, never truncated.
///
/// # Errors
/// [`FsError`].
pub fn open_output(path: &Path) -> Result<File, FsError> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(NOFOLLOW)
        .open(path)
        .map_err(|e| refused(path, e, "open"))
}

pub(super) fn refused(path: &Path, source: std::io::Error, operation: &'static str) -> FsError {
    if source.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) {
        FsError::Symlink(path.to_owned())
    } else {
        FsError::other(operation, path, source)
    }
}

/// Removes a file; one that is not there is no error.
///
/// # Errors
/// [`FsError`].
pub fn remove(path: &Path) -> Result<(), FsError> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(FsError::other("remove", path, e)),
        _ => Ok(()),
    }
}

/// Mode 0600: sockets get the umask's mode when they are bound.
///
/// # Errors
/// [`FsError`].
pub fn set_private(path: &Path) -> Result<(), FsError> {
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).context("set the mode of", path)
}

/// Brings a file's content and size to the disk.
///
/// # Errors
/// [`FsError`]; after one the content may be lost although a later sync succeeds.
pub fn sync_file(path: &Path) -> Result<(), FsError> {
    File::open(path)
        .and_then(|f| f.sync_all())
        .context("sync", path)
}

/// Brings a folder's names to the disk: without it a create or rename may be undone by a power cut.
///
/// # Errors
/// [`FsError`].
pub fn sync_dir(path: &Path) -> Result<(), FsError> {
    File::open(path)
        .and_then(|f| f.sync_all())
        .context("sync folder", path)
}

/// Makes everything written to a folder's file system durable: one call for a batch of many files.
///
/// Not guaranteed: speed. It also waits for what other programs have written there.
///
/// # Errors
/// [`FsError`].
pub fn sync_file_system(dir: &Path) -> Result<(), FsError> {
    let folder = File::open(dir).context("open", dir)?;
    nix::unistd::syncfs(&folder).context("sync the file system of", dir)
}

/// Gives the blocks of a range back; the file keeps its size and reads zeros there.
///
/// # Errors
/// [`FsError`], also where the file system cannot.
pub fn punch_hole(file: &File, from: u64, len: u64) -> Result<(), FsError> {
    use nix::fcntl::{FallocateFlags, fallocate};
    let clamp = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(file, flags, clamp(from), clamp(len)).context("punch a hole in", Path::new("output"))
}

/// Cuts a file to a length.
///
/// # Errors
/// [`FsError`].
pub fn truncate(file: &File, len: u64) -> Result<(), FsError> {
    file.set_len(len).context("truncate", Path::new("output"))
}

/// Bytes that this user may still write on the path's file system.
///
/// # Errors
/// [`FsError`].
pub fn free_bytes(path: &Path) -> Result<u64, FsError> {
    let stat = nix::sys::statvfs::statvfs(path).context("look at the file system of", path)?;
    Ok(stat.blocks_available().saturating_mul(stat.fragment_size()))
}
