//! Advisory file locks (flock): the kernel's word for who is alive. The only file that calls fs2.

use super::FsError;
use super::files::{Access, open};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How often a lock is taken anew because its file was replaced meanwhile. Nothing of ours
/// replaces a lock file, and a removed live file is removed once: three would do.
const REPLACED_MAX: u32 = 16;
/// The longest text kept in a lock file, in bytes: one JSON line.
const TEXT_MAX: u64 = 64 * 1024;

/// A held lock of a file. Given back on drop, or by the kernel when the process dies.
///
/// Two locks of one file exclude each other also within one process. The file is created when
/// missing (mode 0600) and never deleted here. Not guaranteed: fairness.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Exclusive,
    Shared,
}

impl Lock {
    /// Waits until nobody else has the file and takes it. Blocks the thread, without bound.
    ///
    /// # Errors
    /// [`FsError`] when the file cannot be opened or locked.
    pub fn exclusive(path: &Path) -> Result<Self, FsError> {
        Self::blocking(path, Kind::Exclusive)
    }

    /// Takes the file if nobody has it; `None` when somebody has.
    ///
    /// # Errors
    /// [`FsError`] when the file cannot be opened or locked.
    pub fn try_exclusive(path: &Path) -> Result<Option<Self>, FsError> {
        Self::acquire(path, Kind::Exclusive, Wait::No)
    }

    /// Waits until nobody has the file exclusively and shares it. Blocks the thread.
    ///
    /// # Errors
    /// [`FsError`] when the file cannot be opened or locked.
    pub fn shared(path: &Path) -> Result<Self, FsError> {
        Self::blocking(path, Kind::Shared)
    }

    /// Shares the file if nobody has it exclusively; `None` when somebody has.
    ///
    /// # Errors
    /// [`FsError`] when the file cannot be opened or locked.
    pub fn try_shared(path: &Path) -> Result<Option<Self>, FsError> {
        Self::acquire(path, Kind::Shared, Wait::No)
    }

    /// The file's path as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text in the file; empty when there is none. Bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    /// [`FsError`] when it cannot be read.
    pub fn read_text(&self) -> Result<String, FsError> {
        let wrap = || FsError::io("read", &self.path);
        let len = self.file.metadata().map_err(wrap())?.len().min(TEXT_MAX);
        let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
        let mut read = 0;
        while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, read as u64) {
                Ok(0) => break,
                Ok(n) => read += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(wrap()(error)),
            }
        }
        bytes.truncate(read);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Replaces the text in the file, in place. Not durable, and not atomic for a reader without
    /// the lock: it may see the old text's end behind the new one for a moment.
    ///
    /// # Errors
    /// [`FsError`] when it cannot be written.
    pub fn write_text(&self, text: &str) -> Result<(), FsError> {
        self.file
            .write_all_at(text.as_bytes(), 0)
            .and_then(|()| self.file.set_len(text.len() as u64))
            .map_err(FsError::io("write", &self.path))
    }

    /// Adds bytes at the end of the file.
    pub(super) fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let end = self.file.metadata()?.len();
        self.file.write_all_at(bytes, end)
    }

    /// Makes the file's content durable.
    pub(super) fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The lock belongs to the inode. If the name shows another one by now, somebody could lock that
    /// and we would both believe to be alone.
    fn is_current(&self) -> Result<bool, FsError> {
        let ours = self
            .file
            .metadata()
            .map_err(FsError::io("look at", &self.path))?;
        Ok(std::fs::symlink_metadata(&self.path)
            .is_ok_and(|named| named.dev() == ours.dev() && named.ino() == ours.ino()))
    }

    fn blocking(path: &Path, kind: Kind) -> Result<Self, FsError> {
        Self::acquire(path, kind, Wait::Yes)?.ok_or_else(|| FsError::LockReplaced {
            path: path.to_owned(),
        })
    }

    fn acquire(path: &Path, kind: Kind, wait: Wait) -> Result<Option<Self>, FsError> {
        for _ in 0..REPLACED_MAX {
            let file = open(path, Access::ReadWrite)?;
            if !flock(&file, kind, wait).map_err(FsError::io("lock", path))? {
                return Ok(None);
            }
            let lock = Self {
                file,
                path: path.to_owned(),
            };
            if lock.is_current()? {
                return Ok(Some(lock));
            }
        }
        Err(FsError::LockReplaced {
            path: path.to_owned(),
        })
    }
}

/// A lock file that is open and not locked: may be tried again and again without being reopened, so that
/// a try that fails closes nothing and wakes nobody who watches the folder for closed descriptors.
#[derive(Debug)]
pub struct LockFile {
    file: File,
    path: PathBuf,
}

/// What a try on a [`LockFile`] gave.
#[derive(Debug)]
pub enum Attempt {
    /// The lock.
    Locked(Lock),
    /// Somebody else has it; the file for the next try.
    Busy(LockFile),
}

impl LockFile {
    /// Opens the file, making it if needed. Locks nothing.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn open(path: &Path) -> Result<Self, FsError> {
        Ok(Self {
            file: open(path, Access::ReadWrite)?,
            path: path.to_owned(),
        })
    }

    /// Takes the lock exclusively if nobody has it.
    ///
    /// # Errors
    /// As [`Lock::exclusive`].
    pub fn try_exclusive(self) -> Result<Attempt, FsError> {
        if !flock(&self.file, Kind::Exclusive, Wait::No).map_err(FsError::io("lock", &self.path))? {
            return Ok(Attempt::Busy(self));
        }
        let lock = Lock {
            file: self.file,
            path: self.path,
        };
        if lock.is_current()? {
            return Ok(Attempt::Locked(lock));
        }
        // The folder was cleaned while we waited: the name means another file now, or none.
        Self::open(&lock.path)?.try_exclusive()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Yes,
    No,
}

/// Fully qualified: with the trait in scope some of these names would be std's, with other errors.
fn flock(file: &File, kind: Kind, wait: Wait) -> io::Result<bool> {
    loop {
        let result = match (kind, wait) {
            (Kind::Exclusive, Wait::Yes) => fs2::FileExt::lock_exclusive(file),
            (Kind::Exclusive, Wait::No) => fs2::FileExt::try_lock_exclusive(file),
            (Kind::Shared, Wait::Yes) => fs2::FileExt::lock_shared(file),
            (Kind::Shared, Wait::No) => fs2::FileExt::try_lock_shared(file),
        };
        match result {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Explicit: a copy of the descriptor in a child between fork and exec would keep the lock
        // beyond our close. An error has nobody to go to, and the close that follows unlocks too.
        drop(fs2::FileExt::unlock(&self.file));
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_exclude_within_one_process_and_end_with_the_guard() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00.lock");
        let held = Lock::try_exclusive(&path).unwrap().unwrap();
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        assert!(Lock::try_shared(&path).unwrap().is_none());
        drop(held);
        let one = Lock::shared(&path).unwrap();
        let two = Lock::try_shared(&path).unwrap().unwrap();
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        drop((one, two));
        Lock::exclusive(&path).unwrap();
    }

    #[test]
    fn the_text_is_replaced_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00.lock");
        let held = Lock::exclusive(&path).unwrap();
        assert_eq!(held.read_text().unwrap(), "");
        held.write_text("a long text\n").unwrap();
        held.write_text("short\n").unwrap();
        assert_eq!(held.read_text().unwrap(), "short\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "short\n");
        held.write_text("").unwrap();
        assert_eq!(held.read_text().unwrap(), "");
    }

    #[test]
    fn a_replaced_file_is_locked_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.live");
        let old = Lock::exclusive(&path).unwrap();
        super::super::remove(&path).unwrap();
        let new = Lock::try_exclusive(&path).unwrap().unwrap();
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        drop((old, new));
    }

    #[test]
    fn a_waiter_whose_file_is_removed_gets_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let old = Lock::exclusive(&path).unwrap();
        let waiter = std::thread::spawn({
            let path = path.clone();
            move || Lock::exclusive(&path).unwrap()
        });
        super::super::remove(&path).unwrap();
        drop(old);
        let new = waiter.join().unwrap();
        assert!(path.exists());
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        drop(new);
    }

    #[test]
    fn a_link_is_no_lock_file() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("l");
        std::os::unix::fs::symlink(dir.path().join("target"), &link).unwrap();
        assert!(matches!(
            Lock::try_exclusive(&link),
            Err(FsError::Symlink { .. })
        ));
    }
}
