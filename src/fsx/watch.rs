//! Notices of changes in folders, by inotify. Says that something changed, not what is in it now.

use super::error::{Context, FsError};
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// What is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchMask {
    /// Names that come, go or get new content.
    Entries,
    /// Descriptors that are closed, whether written to or not: how a lock's end is seen, also after
    /// `kill -9`.
    Closes,
    /// Content that is appended, and descriptors that are closed: following a log.
    Writes,
}

impl WatchMask {
    fn flags(self) -> AddWatchFlags {
        use AddWatchFlags as F;
        match self {
            Self::Entries => {
                F::IN_CLOSE_WRITE | F::IN_MOVED_TO | F::IN_MOVED_FROM | F::IN_CREATE | F::IN_DELETE
            }
            Self::Closes => F::IN_CLOSE_WRITE | F::IN_CLOSE_NOWRITE | F::IN_DELETE,
            Self::Writes => F::IN_MODIFY | F::IN_CLOSE_WRITE | F::IN_CREATE | F::IN_MOVED_TO,
        }
    }
}

/// One notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The watched folder.
    pub dir: PathBuf,
    /// The name in it, where the kernel gives one.
    pub name: Option<OsString>,
    /// Notices were lost: look at everything again.
    pub overflow: bool,
}

/// Folders that are watched; readable when there are notices.
#[derive(Debug)]
pub struct Watch {
    inotify: Inotify,
    dirs: HashMap<WatchDescriptor, PathBuf>,
}

impl Watch {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// [`FsError`], for one when the user's limit of watches is reached.
    pub fn new() -> Result<Self, FsError> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)
            .context("watch files under", Path::new("inotify"))?;
        Ok(Self {
            inotify,
            dirs: HashMap::new(),
        })
    }

    /// Watches one more folder; not those below it.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn add(&mut self, dir: &Path, mask: WatchMask) -> Result<(), FsError> {
        let wd = self
            .inotify
            .add_watch(dir, mask.flags())
            .context("watch", dir)?;
        self.dirs.insert(wd, dir.to_owned());
        Ok(())
    }

    /// The notices since the last call, without waiting.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn read(&mut self) -> Result<Vec<Change>, FsError> {
        let mut changes = Vec::new();
        loop {
            match self.inotify.read_events() {
                Ok(events) => changes.extend(events.into_iter().map(|e| Change {
                    dir: self.dirs.get(&e.wd).cloned().unwrap_or_default(),
                    name: e.name,
                    overflow: e.mask.contains(AddWatchFlags::IN_Q_OVERFLOW),
                })),
                Err(Errno::EAGAIN) => return Ok(changes),
                Err(Errno::EINTR) => {}
                Err(errno) => {
                    return Err(FsError::other("watch", Path::new("inotify"), errno.into()));
                }
            }
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
