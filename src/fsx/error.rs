//! One error for every failed operation on a path.

use std::io;
use std::path::{Path, PathBuf};

/// A file operation that failed: what was tried, where, and why.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// The system said no.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// A verb: `open`, `write`, `sync`…
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A symbolic link where flockd keeps its state.
    #[error("{} is a symbolic link: state files must be real ones; remove it or point state_dir at the real folder", .0.display())]
    Symlink(PathBuf),
    /// Locks of this file system cannot be trusted.
    #[error("{} is on a file system whose locks cannot be trusted ({why}); put state_dir on a local disk", path.display())]
    Lockless {
        /// Where.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// A folder that should be private to this user is not.
    #[error("{} {why}; remove it or set XDG_RUNTIME_DIR", path.display())]
    NotPrivate {
        /// Where.
        path: PathBuf,
        /// What was found.
        why: String,
    },
}

impl FsError {
    /// Wraps a system error.
    #[must_use]
    pub fn other(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            operation,
            path: path.to_owned(),
            source,
        }
    }

    fn errno(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// No room is left, on the disk or in a quota.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        use nix::errno::Errno;
        self.errno().is_some_and(|e| {
            [Errno::ENOSPC, Errno::EDQUOT]
                .map(|n| n as i32)
                .contains(&e)
        })
    }

    /// The file system is mounted read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.errno() == Some(nix::errno::Errno::EROFS as i32)
    }
}

/// Adds the path and the verb to a system error.
pub(crate) trait Context<T> {
    fn context(self, operation: &'static str, path: &Path) -> Result<T, FsError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, operation: &'static str, path: &Path) -> Result<T, FsError> {
        self.map_err(|source| FsError::other(operation, path, source))
    }
}

impl<T> Context<T> for nix::Result<T> {
    fn context(self, operation: &'static str, path: &Path) -> Result<T, FsError> {
        self.map_err(|errno| FsError::other(operation, path, errno.into()))
    }
}
