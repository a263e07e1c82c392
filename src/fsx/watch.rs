//! Events of folders (inotify), so that nobody has to look again and again.

use super::FsError;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Which events of a folder's entries are wanted; joined by `|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchMask(AddWatchFlags);

impl WatchMask {
    /// A descriptor that was open for writing was closed, also by the death of its process.
    pub const CLOSED: Self = Self(AddWatchFlags::IN_CLOSE_WRITE);
    /// An entry was created.
    pub const CREATED: Self = Self(AddWatchFlags::IN_CREATE);
    /// An entry was removed.
    pub const REMOVED: Self = Self(AddWatchFlags::IN_DELETE);
    /// An entry was renamed into or out of the folder.
    pub const MOVED: Self = Self(AddWatchFlags::IN_MOVE);
    /// Bytes were written.
    pub const MODIFIED: Self = Self(AddWatchFlags::IN_MODIFY);
}

impl WatchMask {
    /// Any descriptor was closed, whether written to or not, or an entry was removed: how the end of a
    /// lock is seen, also after `kill -9`.
    pub const CLOSES: Self = Self(
        AddWatchFlags::IN_CLOSE_WRITE
            .union(AddWatchFlags::IN_CLOSE_NOWRITE)
            .union(AddWatchFlags::IN_DELETE),
    );
    /// Entries that come, go or get new content.
    pub const ENTRIES: Self = Self(
        AddWatchFlags::IN_CLOSE_WRITE
            .union(AddWatchFlags::IN_CREATE)
            .union(AddWatchFlags::IN_DELETE)
            .union(AddWatchFlags::IN_MOVE),
    );
    /// Entries that grow, are closed, or come: following a log.
    pub const WRITES: Self = Self(
        AddWatchFlags::IN_MODIFY
            .union(AddWatchFlags::IN_CLOSE_WRITE)
            .union(AddWatchFlags::IN_CREATE)
            .union(AddWatchFlags::IN_MOVED_TO),
    );
}

impl std::ops::BitOr for WatchMask {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Something happened in a watched folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The folder as it was given; empty when `overflow`.
    pub dir: PathBuf,
    /// The entry; none for the folder itself.
    pub name: Option<OsString>,
    /// Events were lost: look at everything again.
    pub overflow: bool,
}

/// A set of watched folders. Readable (poll, epoll) when something happened.
#[derive(Debug)]
pub struct Watch {
    inotify: Inotify,
    dirs: HashMap<WatchDescriptor, PathBuf>,
}

impl Watch {
    /// An empty set.
    ///
    /// # Errors
    /// [`FsError`] when the system has no more instances
    /// (`/proc/sys/fs/inotify/max_user_instances`).
    pub fn new() -> Result<Self, FsError> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).map_err(
            FsError::errno("get a watch, see", Path::new("/proc/sys/fs/inotify")),
        )?;
        Ok(Self {
            inotify,
            dirs: HashMap::new(),
        })
    }

    /// Watches a folder (not those below it). A second call for it replaces the mask.
    ///
    /// What happened before this call is not reported: add first, then look.
    ///
    /// # Errors
    /// [`FsError`] when the folder is missing or the system has no more watches.
    pub fn add(&mut self, dir: &Path, mask: WatchMask) -> Result<(), FsError> {
        let watch = self
            .inotify
            .add_watch(dir, mask.0 | AddWatchFlags::IN_ONLYDIR)
            .map_err(FsError::errno("watch", dir))?;
        self.dirs.insert(watch, dir.to_owned());
        Ok(())
    }

    /// What happened since the last call; empty when nothing did. Never blocks.
    ///
    /// # Errors
    /// [`FsError`] when the system refuses the read.
    pub fn read(&mut self) -> Result<Vec<Change>, FsError> {
        let mut changes = Vec::new();
        // One read takes about 100 events; the bound keeps a flood from holding the caller here.
        for _ in 0..64 {
            let events = match self.inotify.read_events() {
                Ok(events) => events,
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => continue,
                Err(errno) => {
                    return Err(FsError::errno("read the watch on", Path::new("folders"))(
                        errno,
                    ));
                }
            };
            for event in events {
                let overflow = event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW);
                let dir = self.dirs.get(&event.wd).cloned();
                if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                    self.dirs.remove(&event.wd);
                    continue;
                }
                if overflow || dir.is_some() {
                    changes.push(Change {
                        dir: dir.unwrap_or_default(),
                        name: event.name,
                        overflow,
                    });
                }
            }
        }
        Ok(changes)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsx::Lock;

    #[test]
    fn the_end_of_a_lock_holder_is_an_event() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = Watch::new().unwrap();
        watch.add(dir.path(), WatchMask::CLOSED).unwrap();
        assert_eq!(watch.read().unwrap(), []);
        let lock = Lock::exclusive(&dir.path().join("00.lock")).unwrap();
        assert_eq!(watch.read().unwrap(), []);
        drop(lock);
        let changes = watch.read().unwrap();
        assert_eq!(
            changes,
            [Change {
                dir: dir.path().to_owned(),
                name: Some("00.lock".into()),
                overflow: false
            }]
        );
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let mut watch = Watch::new().unwrap();
        assert!(
            watch
                .add(Path::new("/missing"), WatchMask::CREATED)
                .is_err()
        );
    }
}
