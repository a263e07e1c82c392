//! What can go wrong with a file, as one line that names the operation and the path.

use nix::errno::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file operation did not happen.
///
/// The cause is part of the message and not a `source()`: these texts go into facts and into
/// answers on the control socket, where a chain would be lost.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// The system refused.
    #[error("cannot {operation} {}: {cause}", path.display())]
    Io {
        /// What was tried, as a verb.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// A symbolic link where flockd keeps its own files.
    #[error("{} is a symbolic link: replace it by a real file or folder", path.display())]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// Locks of a network file system do not say who is alive.
    #[error(
        "{} is on a network file system ({kind}): set FLOCKD_STATE_DIR to a local folder, or set \
         FLOCKD_ALLOW_NETWORK_FS=1 if only this machine uses it",
        path.display()
    )]
    NetworkFs {
        /// The folder.
        path: PathBuf,
        /// The file system's type.
        kind: String,
    },
    /// Two exclusive locks of one file were granted at once.
    #[error(
        "file locks under {} exclude nobody: set FLOCKD_STATE_DIR to a local folder",
        path.display()
    )]
    LocksLie {
        /// The folder.
        path: PathBuf,
    },
    /// The file under a lock was replaced again and again while it was being taken.
    #[error("{} is replaced faster than it can be locked: stop what replaces it", path.display())]
    LockReplaced {
        /// The lock file.
        path: PathBuf,
    },
    /// The folder for sockets belongs to somebody else or is open to others.
    #[error("{} {why}: remove it or set XDG_RUNTIME_DIR to a folder of your own", path.display())]
    RuntimeDir {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl FsError {
    /// Wraps a system error; for `map_err`.
    pub fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |cause| match cause.raw_os_error() {
            // With O_NOFOLLOW the kernel's word for "it is a symbolic link" is ELOOP.
            Some(code) if code == Errno::ELOOP as i32 => Self::Symlink { path },
            _ => Self::Io {
                operation,
                path,
                cause,
            },
        }
    }

    /// Wraps an `errno`; for `map_err`.
    pub(crate) fn errno(
        operation: &'static str,
        path: &Path,
    ) -> impl FnOnce(Errno) -> Self + use<> {
        let wrap = Self::io(operation, path);
        move |errno| wrap(errno.into())
    }

    /// The path it is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::Symlink { path }
            | Self::NetworkFs { path, .. }
            | Self::LocksLie { path }
            | Self::LockReplaced { path }
            | Self::RuntimeDir { path, .. } => path,
        }
    }

    /// The kind of the system's answer; `Other` when the system did not refuse, flockd did.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Io { cause, .. } => cause.kind(),
            _ => io::ErrorKind::Other,
        }
    }

    /// Whether the disk or a quota is full: a state that passes, not a defect.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        matches!(
            self.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }

    /// Whether the file system is mounted read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.kind() == io::ErrorKind::ReadOnlyFilesystem
    }

    /// Whether the path (or a folder on the way) does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }

    /// Whether the path exists already.
    #[must_use]
    pub fn is_already_there(&self) -> bool {
        self.kind() == io::ErrorKind::AlreadyExists
    }
}
