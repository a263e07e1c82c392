//! Why the ledger refuses, as one line with the place and the way out.

use crate::fsx::FsError;
use std::path::PathBuf;
use std::sync::Arc;

/// Why a ledger cannot be opened, read or written. Cheap to clone: a latched one answers everybody.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LedgerError {
    /// The disk refused. After the first one of a writer every later append gets it too.
    #[error("the ledger stopped: {0}")]
    Disk(Arc<FsError>),
    /// A line is damaged and valid ones follow, or it is complete and its checksum is wrong.
    #[error(
        "{}:{line}: byte {offset}: {why}; nothing was changed. Restore the file from a backup, or \
         move the folder {} away to start with an empty ledger",
        path.display(),
        path.parent().unwrap_or(path).display()
    )]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// Where the line begins, in bytes.
        offset: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A segment is missing between others, or before the first.
    #[error(
        "{} is missing; nothing was changed. Restore it from a backup, or move the folder {} away \
         to start with an empty ledger",
        path.display(),
        path.parent().unwrap_or(path).display()
    )]
    MissingSegment {
        /// The segment that should be there.
        path: PathBuf,
    },
    /// There are no facts, but the view says that there were.
    #[error(
        "the ledger is empty, but {} covers {seq} facts; nothing was changed. Restore the folder \
         ledger from a backup, or remove that file to start with an empty ledger",
        view.display()
    )]
    MissingFacts {
        /// The view.
        view: PathBuf,
        /// The last sequence number that it covers.
        seq: u64,
    },
    /// A newer flockd wrote this state directory.
    #[error(
        "{} says {found:?}, this flockd knows {known}: use the newer flockd, or set \
         FLOCKD_STATE_DIR to another folder",
        path.display()
    )]
    NewerVersion {
        /// The version file.
        path: PathBuf,
        /// Its text.
        found: String,
        /// The version of this program's state directories.
        known: u32,
    },
    /// A fact could not be written as JSON.
    #[error("fact cannot be written as JSON: {0}")]
    Encode(String),
    /// The writer is closed.
    #[error("the ledger is closed: start flockd again")]
    Closed,
}

impl From<FsError> for LedgerError {
    fn from(error: FsError) -> Self {
        Self::Disk(Arc::new(error))
    }
}

impl LedgerError {
    /// Whether a full disk is the cause.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        matches!(self, Self::Disk(error) if error.is_no_space())
    }
}
