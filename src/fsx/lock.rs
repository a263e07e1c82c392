//! Advisory locks on files that are never renamed and never deleted. The only place that takes them.
//!
//! flock belongs to the open file description: two opens in one process exclude each other, and the
//! kernel frees it when the last descriptor closes, however the process ends (P2).
#![expect(
    clippy::disallowed_methods,
    reason = "this module is the one that the ban sends people to"
)]

use super::error::{Context, FsError};
use super::files::refused;
use nix::errno::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A held lock; given back on drop.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

#[derive(Clone, Copy)]
enum Kind {
    Exclusive,
    Shared,
}

impl Lock {
    /// Waits in the kernel until the lock is exclusively ours. Never on an async executor.
    ///
    /// # Errors
    /// [`FsError`] when the file cannot be opened or locked.
    pub fn exclusive(path: &Path) -> Result<Self, FsError> {
        Self::wait(path, Kind::Exclusive)
    }

    /// Waits until the lock is ours together with other readers.
    ///
    /// # Errors
    /// As [`Lock::exclusive`].
    pub fn shared(path: &Path) -> Result<Self, FsError> {
        Self::wait(path, Kind::Shared)
    }

    /// Takes the lock exclusively if nobody has it.
    ///
    /// # Errors
    /// As [`Lock::exclusive`]; a busy lock is `None`.
    pub fn try_exclusive(path: &Path) -> Result<Option<Self>, FsError> {
        Self::attempt(path, Kind::Exclusive)
    }

    /// Takes the lock together with other readers if nobody has it exclusively.
    ///
    /// # Errors
    /// As [`Lock::exclusive`]; a busy lock is `None`.
    pub fn try_shared(path: &Path) -> Result<Option<Self>, FsError> {
        Self::attempt(path, Kind::Shared)
    }

    fn wait(path: &Path, kind: Kind) -> Result<Self, FsError> {
        loop {
            let file = open(path)?;
            match kind {
                Kind::Exclusive => fs2::FileExt::lock_exclusive(&file),
                Kind::Shared => fs2::FileExt::lock_shared(&file),
            }
            .context("lock", path)?;
            let lock = Self {
                file,
                path: path.to_owned(),
            };
            if lock.is_current() {
                return Ok(lock);
            }
        }
    }

    fn attempt(path: &Path, kind: Kind) -> Result<Option<Self>, FsError> {
        loop {
            let file = open(path)?;
            let taken = match kind {
                Kind::Exclusive => fs2::FileExt::try_lock_exclusive(&file),
                Kind::Shared => fs2::FileExt::try_lock_shared(&file),
            };
            match taken {
                Ok(()) => {}
                Err(e) if e.raw_os_error() == Some(Errno::EWOULDBLOCK as i32) => return Ok(None),
                Err(e) => return Err(FsError::other("lock", path, e)),
            }
            let lock = Self {
                file,
                path: path.to_owned(),
            };
            if lock.is_current() {
                return Ok(Some(lock));
            }
        }
    }

    /// Whether the path still means the file that was locked: somebody may have cleaned the folder.
    fn is_current(&self) -> bool {
        match (self.file.metadata(), self.path.symlink_metadata()) {
            (Ok(held), Ok(named)) => held.dev() == named.dev() && held.ino() == named.ino(),
            _ => false,
        }
    }

    /// The lock file's text: for people, or the name of the run that holds a slot.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn read_text(&self) -> Result<String, FsError> {
        let mut file = &self.file;
        file.rewind().context("read", &self.path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).context("read", &self.path)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Replaces the text in place. Not atomic for readers without the lock.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn write_text(&self, text: &str) -> Result<(), FsError> {
        let mut file = &self.file;
        file.rewind().context("write", &self.path)?;
        file.write_all(text.as_bytes())
            .context("write", &self.path)?;
        let len = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.file.set_len(len).context("write", &self.path)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Explicit: a copy of the descriptor in a process that is between fork and exec would keep it.
        if let Err(error) = fs2::FileExt::unlock(&self.file) {
            tracing::warn!(path = %self.path.display(), %error, "unlock");
        }
    }
}

fn open(path: &Path) -> Result<File, FsError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
        .open(path)
        .map_err(|e| refused(path, e, "open"))
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
            file: open(path)?,
            path: path.to_owned(),
        })
    }

    /// Takes the lock exclusively if nobody has it.
    ///
    /// # Errors
    /// As [`Lock::exclusive`].
    pub fn try_exclusive(self) -> Result<Attempt, FsError> {
        match fs2::FileExt::try_lock_exclusive(&self.file) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(Errno::EWOULDBLOCK as i32) => {
                return Ok(Attempt::Busy(self));
            }
            Err(e) => return Err(FsError::other("lock", &self.path, e)),
        }
        let lock = Lock {
            file: self.file,
            path: self.path,
        };
        if lock.is_current() {
            return Ok(Attempt::Locked(lock));
        }
        // The folder was cleaned while we waited: the name means another file now, or none.
        Self::open(&lock.path)?.try_exclusive()
    }
}
