//! What can go wrong with the ledger, each with the way out.

use crate::fsx::FsError;
use std::path::PathBuf;
use std::sync::Arc;

/// A failed operation on the ledger. Cheap to clone: a latched writer answers it to everyone.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LedgerError {
    /// The disk said no.
    #[error("{source}; {}", way_out(source))]
    Disk {
        /// What failed, on which path.
        source: Arc<FsError>,
    },
    /// A line is damaged and intact ones follow it: no crash leaves that behind.
    #[error(
        "{} is damaged at line {line} (byte {offset}): {detail}; nothing was changed: copy the state \
         directory, then put the file back from a backup, or remove the files in {} from this one on \
         to lose what follows", path.display(), path.parent().unwrap_or(path).display()
    )]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// Where the line begins, in bytes from 0.
        offset: u64,
        /// What is wrong with it.
        detail: String,
    },
    /// A segment that must be there is not.
    #[error("{} is missing; put it back from a backup", .0.display())]
    Missing(PathBuf),
    /// The state directory was made by a newer flockd, or by something else.
    #[error(
        "{} says {found:?}, this flockd knows version {known}; use the flockd that made this state \
         directory or another state_dir", path.display()
    )]
    Version {
        /// The version file.
        path: PathBuf,
        /// Its text.
        found: String,
        /// What this flockd writes.
        known: u32,
    },
    /// A fact could not be put into a line.
    #[error("cannot encode a fact: {0}; report this as a bug of flockd")]
    Encode(Arc<serde_json::Error>),
    /// The writer's thread could not be started.
    #[error("cannot start the ledger's thread: {0}; raise the limit of processes (ulimit -u)")]
    Thread(Arc<std::io::Error>),
    /// The ledger was closed before.
    #[error("the ledger is closed; start the loop again")]
    Closed,
}

impl LedgerError {
    /// No room is left, on the disk or in a quota.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        matches!(self, Self::Disk { source } if source.is_no_space())
    }
}

fn way_out(error: &FsError) -> &'static str {
    if error.is_no_space() {
        "make room on the disk and start the loop again"
    } else if error.is_read_only() {
        "the file system is read-only: make it writable, or set state_dir to another one"
    } else {
        "put that right and start the loop again"
    }
}

impl From<FsError> for LedgerError {
    fn from(error: FsError) -> Self {
        Self::Disk {
            source: Arc::new(error),
        }
    }
}

impl From<serde_json::Error> for LedgerError {
    fn from(error: serde_json::Error) -> Self {
        Self::Encode(Arc::new(error))
    }
}
