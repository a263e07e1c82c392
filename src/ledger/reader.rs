//! Reading facts beside a living writer: no lock, no write.

use super::error::LedgerError;
use super::fact::Fact;
use super::segment::Walk;
use crate::fsx::disk::RealDisk;
use std::path::Path;
use std::sync::Arc;

/// The facts with a number above `since`, in order. A line that is being written ends the iteration.
/// The first error is the last item.
pub fn read_facts(
    state_dir: &Path,
    since: u64,
) -> impl Iterator<Item = Result<Fact, LedgerError>> + use<> {
    let (walk, error) = match Walk::new(state_dir, Arc::new(RealDisk)) {
        Ok(walk) => (Some(walk), None),
        Err(error) => (None, Some(Err(error))),
    };
    walk.into_iter()
        .flatten()
        .map(|line| line.map(|line| line.fact))
        .filter(move |fact| !matches!(fact, Ok(fact) if fact.seq <= since))
        .chain(error)
}

/// What a check of the whole ledger found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Facts, all intact.
    pub facts: u64,
    /// Files they are in.
    pub segments: u64,
    /// The number of the last one.
    pub last_seq: u64,
}

/// Checks every number and every checksum.
///
/// # Errors
/// [`LedgerError::Damaged`] for a line that is not as it was written, also the last one; a line that is
/// being written (it has no end yet) is none.
pub fn verify(state_dir: &Path) -> Result<Verified, LedgerError> {
    let mut walk = Walk::new(state_dir, Arc::new(RealDisk))?;
    for line in walk.by_ref() {
        line?;
    }
    if let Some(tail) = walk.tail.as_ref().filter(|tail| tail.whole) {
        return Err(LedgerError::Damaged {
            path: tail.path.clone(),
            line: tail.line,
            offset: tail.offset,
            detail: tail.detail.clone(),
        });
    }
    Ok(Verified {
        facts: walk.seq,
        segments: walk.segment,
        last_seq: walk.seq,
    })
}
