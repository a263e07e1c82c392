//! The few file operations that the ledger is made of, as a trait: the real disk, one that fails at
//! a chosen operation, and one that loses power at a chosen operation. Knows nothing of facts.

use super::files::{Access, open};
use super::{FsError, Lock};
use std::fmt::Debug;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub use super::disk_crash::CrashDisk;
pub use super::disk_cut::{Cut, DataKept, NamesKept, Survival};
pub use super::disk_fault::{Fault, FaultDisk};

/// An operation that changes a disk; reads are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiskOp {
    /// A folder was created.
    CreateDir,
    /// A file was created.
    Create,
    /// Bytes were appended.
    Append,
    /// A file's content was made durable.
    SyncData,
    /// A folder's names were made durable.
    SyncDir,
    /// A name was moved.
    Rename,
    /// A file was cut.
    Truncate,
    /// A name was removed.
    Remove,
    /// A file was made read-only.
    SetReadonly,
}

/// A file open for appending.
pub trait DiskFile: Send + Debug {
    /// Adds bytes at the end. Not durable. After an error any part of them may be in the file.
    ///
    /// # Errors
    /// The system's refusal.
    fn append(&mut self, bytes: &[u8]) -> Result<(), FsError>;

    /// Makes what was appended durable (fdatasync). After an error nothing is known of the content,
    /// and another call may succeed without having written it.
    ///
    /// # Errors
    /// The system's refusal.
    fn sync_data(&mut self) -> Result<(), FsError>;
}

/// Keeps a file locked until it is dropped.
pub trait DiskLock: Send + Debug {}

/// A disk. Names become durable by [`Disk::sync_dir`], content by [`DiskFile::sync_data`].
pub trait Disk: Send + Sync + Debug {
    /// Creates a folder and those above it; an existing one is fine.
    ///
    /// # Errors
    /// The system's refusal.
    fn create_dir(&self, path: &Path) -> Result<(), FsError>;

    /// Creates a file, mode 0600; fails when the name is taken.
    ///
    /// # Errors
    /// The system's refusal.
    fn create_new(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError>;

    /// Opens an existing file for appending.
    ///
    /// # Errors
    /// The system's refusal.
    fn open_append(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError>;

    /// Creates a file and keeps it locked as long as the returned handle lives.
    ///
    /// # Errors
    /// The system's refusal.
    fn create_locked(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError>;

    /// Locks an existing file if nobody has it; `None` when somebody has.
    ///
    /// # Errors
    /// The system's refusal.
    fn try_lock(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>, FsError>;

    /// The bytes of a file; `None` when there is none.
    ///
    /// # Errors
    /// The system's refusal.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, FsError>;

    /// The names in a folder, sorted; empty when there is no folder. Names that are no UTF-8 are
    /// left out: none of ours is such.
    ///
    /// # Errors
    /// The system's refusal.
    fn list(&self, dir: &Path) -> Result<Vec<String>, FsError>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// The system's refusal.
    fn sync_dir(&self, dir: &Path) -> Result<(), FsError>;

    /// Moves a name over another one in the same folder.
    ///
    /// # Errors
    /// The system's refusal.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), FsError>;

    /// Cuts a file; durable after its [`DiskFile::sync_data`].
    ///
    /// # Errors
    /// The system's refusal.
    fn truncate(&self, path: &Path, len: u64) -> Result<(), FsError>;

    /// Removes a name; a missing one is fine.
    ///
    /// # Errors
    /// The system's refusal.
    fn remove(&self, path: &Path) -> Result<(), FsError>;

    /// Makes a file read-only for everybody (mode 0400).
    ///
    /// # Errors
    /// The system's refusal.
    fn set_readonly(&self, path: &Path) -> Result<(), FsError>;

    /// Replaces a file atomically, not durably, as [`super::replace_cached`].
    ///
    /// # Errors
    /// The system's refusal.
    fn replace_cached(&self, path: &Path, bytes: &[u8]) -> Result<(), FsError>;
}

/// The disk itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile {
    file: File,
    path: PathBuf,
}

impl RealFile {
    fn boxed(path: &Path, access: Access) -> Result<Box<dyn DiskFile>, FsError> {
        Ok(Box::new(Self {
            file: open(path, access)?,
            path: path.to_owned(),
        }))
    }
}

impl DiskFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), FsError> {
        self.file
            .write_all(bytes)
            .map_err(FsError::io("append to", &self.path))
    }

    fn sync_data(&mut self) -> Result<(), FsError> {
        self.file
            .sync_data()
            .map_err(FsError::io("sync", &self.path))
    }
}

impl DiskFile for Lock {
    fn append(&mut self, bytes: &[u8]) -> Result<(), FsError> {
        Self::append(self, bytes).map_err(FsError::io("append to", self.path()))
    }

    fn sync_data(&mut self) -> Result<(), FsError> {
        Self::sync_data(self).map_err(FsError::io("sync", self.path()))
    }
}

impl DiskLock for Lock {}

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> Result<(), FsError> {
        super::create_dir_all(path)
    }

    fn create_new(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError> {
        RealFile::boxed(path, Access::CreateNew)
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError> {
        RealFile::boxed(path, Access::AppendExisting)
    }

    fn create_locked(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError> {
        Ok(Box::new(Lock::exclusive(path)?))
    }

    fn try_lock(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>, FsError> {
        let lock = Lock::try_exclusive(path)?;
        Ok(lock.map(|lock| Box::new(lock) as Box<dyn DiskLock>))
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, FsError> {
        super::read(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>, FsError> {
        let entries = match std::fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(FsError::io("list", dir)(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(FsError::io("list", dir))?;
            names.extend(entry.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), FsError> {
        super::sync_dir(dir)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "fsx is the module that renames; the callers sync the folder"
    )]
    fn rename(&self, from: &Path, to: &Path) -> Result<(), FsError> {
        std::fs::rename(from, to).map_err(FsError::io("rename", from))
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<(), FsError> {
        open(path, Access::AppendExisting)?
            .set_len(len)
            .map_err(FsError::io("truncate", path))
    }

    fn remove(&self, path: &Path) -> Result<(), FsError> {
        super::remove(path)
    }

    fn set_readonly(&self, path: &Path) -> Result<(), FsError> {
        std::fs::set_permissions(path, Permissions::from_mode(0o400))
            .map_err(FsError::io("make read-only", path))
    }

    fn replace_cached(&self, path: &Path, bytes: &[u8]) -> Result<(), FsError> {
        super::replace_cached(path, bytes)
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
