//! Opening, reading, removing and syncing single files; never through a symbolic link.

use super::{FsError, refuse_symlink};
use nix::fcntl::{FallocateFlags, OFlag, fallocate};
use nix::sys::statvfs::statvfs;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The mode of new files: prompts and output can hold secrets.
const FILE_MODE: u32 = 0o600;
/// The mode of new folders.
const DIR_MODE: u32 = 0o700;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Reading; it must exist.
    Read,
    /// Appending; made when missing.
    Append,
    /// Appending; it must exist.
    AppendExisting,
    /// Reading and writing in place; made when missing, never truncated.
    ReadWrite,
    /// Appending; must not exist.
    CreateNew,
}

/// The one place that opens files: close-on-exec (std's default) and without following a link.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the place that the lint sends everybody to"
)]
pub(super) fn open(path: &Path, access: Access) -> Result<File, FsError> {
    let mut options = OpenOptions::new();
    options
        .mode(FILE_MODE)
        .custom_flags(OFlag::O_NOFOLLOW.bits());
    match access {
        Access::Read => options.read(true),
        Access::Append => options.append(true).create(true),
        Access::AppendExisting => options.append(true),
        Access::ReadWrite => options.read(true).write(true).create(true).truncate(false),
        Access::CreateNew => options.append(true).create_new(true),
    };
    options.open(path).map_err(FsError::io("open", path))
}

/// Creates a folder and those above it, mode 0700; existing ones keep theirs.
///
/// Not guaranteed: that the folder survives a power cut; [`sync_dir`] of its parent does that.
///
/// # Errors
/// [`FsError::Symlink`] when the path itself is a link, else the system's refusal.
pub fn create_dir_all(path: &Path) -> Result<(), FsError> {
    refuse_symlink(path)?;
    DirBuilder::new()
        .recursive(true)
        .mode(DIR_MODE)
        .create(path)
        .map_err(FsError::io("create the folder", path))
}

/// Opens a file for a child's output: appended to, made with mode 0600 when missing.
///
/// # Errors
/// [`FsError::Symlink`] when the path is a link, else the system's refusal.
pub fn open_output(path: &Path) -> Result<File, FsError> {
    open(path, Access::Append)
}

/// Opens an existing file for reading.
///
/// # Errors
/// [`FsError::Symlink`] when the path is a link, else the system's refusal.
pub fn open_input(path: &Path) -> Result<File, FsError> {
    open(path, Access::Read)
}

/// The bytes of a file; `None` when there is none. A missing file and an unreadable one differ.
///
/// # Errors
/// [`FsError::Symlink`] when the path is a link, else the system's refusal.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, FsError> {
    let mut file = match open(path, Access::Read) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(FsError::io("read", path))?;
    Ok(Some(bytes))
}

/// Removes a file (a link itself, never what it points at); a missing one is fine.
///
/// Not guaranteed: that it stays away after a power cut; [`sync_dir`] does that.
///
/// # Errors
/// The system's refusal.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the place that the lint sends everybody to"
)]
pub fn remove(path: &Path) -> Result<(), FsError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(FsError::io("remove", path)(error)),
    }
}

/// Makes everything written to a folder's file system durable: one call for a batch of many files.
///
/// Not guaranteed: speed. It also waits for what other programs have written there.
///
/// # Errors
/// The system's refusal.
pub fn sync_file_system(dir: &Path) -> Result<(), FsError> {
    let folder = open(dir, Access::Read)?;
    nix::unistd::syncfs(&folder).map_err(FsError::errno("sync the file system of", dir))
}

/// Mode 0600: a socket gets the umask's mode when it is bound.
///
/// # Errors
/// The system's refusal.
pub fn set_private(path: &Path) -> Result<(), FsError> {
    std::fs::set_permissions(path, Permissions::from_mode(FILE_MODE))
        .map_err(FsError::io("set the mode of", path))
}

/// Makes content and size of a file durable; its name needs [`sync_dir`].
///
/// # Errors
/// The system's refusal. After one the content is unknown: never sync again and believe it.
pub fn sync_file(path: &Path) -> Result<(), FsError> {
    open(path, Access::Read)?
        .sync_all()
        .map_err(FsError::io("sync", path))
}

/// Makes the names in a folder durable: what was created, renamed and removed in it.
///
/// # Errors
/// The system's refusal.
pub fn sync_dir(path: &Path) -> Result<(), FsError> {
    File::open(path)
        .and_then(|dir| dir.sync_all())
        .map_err(FsError::io("sync the folder", path))
}

/// Gives the blocks of a range back to the disk; the file keeps its size and reads as zeros there.
///
/// # Errors
/// The system's refusal, as on a file system that has no holes.
pub fn punch_hole(file: &File, from: u64, len: u64) -> Result<(), FsError> {
    if len == 0 {
        return Ok(());
    }
    let path = Path::new("output");
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    fallocate(
        file,
        FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE,
        signed(from),
        signed(len),
    )
    .map_err(FsError::errno("punch a hole into", path))
}

/// Cuts (or extends with zeros) an open file.
///
/// # Errors
/// The system's refusal.
pub fn truncate(file: &File, len: u64) -> Result<(), FsError> {
    file.set_len(len)
        .map_err(FsError::io("truncate", Path::new("an open file")))
}

/// Bytes that an ordinary user can still write on the file system of a path.
///
/// # Errors
/// The system's refusal.
pub fn free_bytes(path: &Path) -> Result<u64, FsError> {
    let stat = statvfs(path).map_err(FsError::errno("look up the free space of", path))?;
    Ok(stat.blocks_available().saturating_mul(stat.fragment_size()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_private_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        create_dir_all(&deep).unwrap();
        let mode = std::fs::metadata(&deep).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let path = deep.join("out");
        let mut file = open_output(&path).unwrap();
        file.write_all(b"one").unwrap();
        drop(file);
        open_output(&path).unwrap().write_all(b"two").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"onetwo");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let link = deep.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(read(&link), Err(FsError::Symlink { .. })));
        assert!(matches!(open_output(&link), Err(FsError::Symlink { .. })));
        remove(&link).unwrap();
        assert!(path.exists());
        remove(&link).unwrap();
        assert_eq!(read(&link).unwrap(), None);
        assert!(free_bytes(&deep).unwrap() > 0);
    }

    #[test]
    fn a_hole_keeps_the_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut file = open_output(&path).unwrap();
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
        let before = file.metadata().unwrap().blocks();
        if punch_hole(&file, 65_536, (1 << 20) - 65_536).is_ok() {
            let meta = file.metadata().unwrap();
            assert_eq!(meta.len(), 1 << 20);
            assert!(meta.blocks() < before);
        }
        truncate(&file, 10).unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"xxxxxxxxxx");
    }
}
