//! The operations that the ledger needs of a disk, as a trait: the real one here, one that fails and
//! one that loses power in `disk_fault` and `disk_crash`. Knows nothing of what is written.

use super::error::{Context, FsError};
use super::files;
use super::lock::Lock;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// An append-only file on a [`Disk`].
pub trait DiskFile: Send {
    /// Appends all bytes. Not guaranteed: that anything of them survives power loss, or that nothing
    /// of them is written when it fails.
    ///
    /// # Errors
    /// [`FsError`].
    fn append(&mut self, bytes: &[u8]) -> Result<(), FsError>;

    /// Brings what was appended to the disk.
    ///
    /// # Errors
    /// [`FsError`]; after one the content may be lost although a later sync succeeds: never retry.
    fn sync_data(&mut self) -> Result<(), FsError>;
}

/// Files and folders as the ledger uses them.
pub trait Disk: Send + Sync {
    /// Makes a folder and those above it.
    ///
    /// # Errors
    /// [`FsError`].
    fn create_dir_all(&self, path: &Path) -> Result<(), FsError>;

    /// The names of the plain files in a folder, sorted; none when it is not there.
    ///
    /// # Errors
    /// [`FsError`].
    fn list(&self, dir: &Path) -> Result<Vec<String>, FsError>;

    /// A whole file; none when it is not there.
    ///
    /// # Errors
    /// [`FsError`].
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, FsError>;

    /// Makes an empty file, mode 0600, that must not be there yet.
    ///
    /// # Errors
    /// [`FsError`].
    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError>;

    /// Opens an existing file to append to it.
    ///
    /// # Errors
    /// [`FsError`].
    fn open_append(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError>;

    /// Cuts a file and brings the cut to the disk.
    ///
    /// # Errors
    /// [`FsError`].
    fn truncate(&self, path: &Path, len: u64) -> Result<(), FsError>;

    /// Nobody is to write this file again (mode 0400).
    ///
    /// # Errors
    /// [`FsError`].
    fn set_readonly(&self, path: &Path) -> Result<(), FsError>;

    /// Removes a file; one that is not there is no error.
    ///
    /// # Errors
    /// [`FsError`].
    fn remove(&self, path: &Path) -> Result<(), FsError>;

    /// Brings a folder's names to the disk.
    ///
    /// # Errors
    /// [`FsError`].
    fn sync_dir(&self, dir: &Path) -> Result<(), FsError>;

    /// Takes the file's lock until the answer is dropped; none when a living process has it.
    ///
    /// # Errors
    /// [`FsError`].
    fn try_hold(&self, path: &Path) -> Result<Option<Box<dyn Send>>, FsError>;
}

/// The disk of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

struct RealFile {
    file: File,
    path: PathBuf,
}

impl DiskFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), FsError> {
        self.file.write_all(bytes).context("append to", &self.path)
    }

    fn sync_data(&mut self) -> Result<(), FsError> {
        self.file.sync_data().context("sync", &self.path)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "fsx is the module that the ban sends people to"
)]
fn open(options: &mut OpenOptions, path: &Path) -> Result<File, FsError> {
    options
        .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
        .open(path)
        .map_err(|e| files::refused(path, e, "open"))
}

impl Disk for RealDisk {
    fn create_dir_all(&self, path: &Path) -> Result<(), FsError> {
        files::create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>, FsError> {
        let entries = match std::fs::read_dir(dir) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.context("list", dir)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.context("list", dir)?;
            if entry.file_type().is_ok_and(|t| !t.is_dir()) {
                names.extend(entry.file_name().into_string());
            }
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, FsError> {
        files::read(path)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError> {
        let mut options = OpenOptions::new();
        let file = open(options.append(true).create_new(true).mode(0o600), path)?;
        let path = path.to_owned();
        Ok(Box::new(RealFile { file, path }))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError> {
        let file = open(OpenOptions::new().append(true), path)?;
        let path = path.to_owned();
        Ok(Box::new(RealFile { file, path }))
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<(), FsError> {
        let file = open(OpenOptions::new().write(true), path)?;
        file.set_len(len).context("cut", path)?;
        file.sync_all().context("sync", path)
    }

    fn set_readonly(&self, path: &Path) -> Result<(), FsError> {
        std::fs::set_permissions(path, Permissions::from_mode(0o400))
            .context("set the mode of", path)
    }

    fn remove(&self, path: &Path) -> Result<(), FsError> {
        files::remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), FsError> {
        files::sync_dir(dir)
    }

    fn try_hold(&self, path: &Path) -> Result<Option<Box<dyn Send>>, FsError> {
        Ok(Lock::try_exclusive(path)?.map(|lock| Box::new(lock) as Box<dyn Send>))
    }
}
