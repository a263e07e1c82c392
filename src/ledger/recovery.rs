//! Opening a ledger after any end of the last writer, and replaying one without touching it.

use super::append::Appender;
use super::error::LedgerError;
use super::inbox::{self, Taken};
use super::segment::{Tail, Walk};
use super::state::LedgerState;
use crate::fsx::disk::{Disk, RealDisk};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What opening had to put right, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note(String);

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The ledger, opened and not yet written to. The caller holds the singleton lock.
pub struct Ledger {
    pub(super) state_dir: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) appender: Appender,
    pub(super) taken: Taken,
    pub(super) state: LedgerState,
}

impl Ledger {
    /// Replays all facts, cuts a torn tail (nothing acknowledged is in it), takes the inbox in and makes
    /// everything that was read durable. Only under the singleton lock.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`] and [`LedgerError::Missing`] when facts were lost or changed: nothing is
    /// written then. [`LedgerError::Disk`].
    pub fn open(
        state_dir: &Path,
        disk: Arc<dyn Disk>,
    ) -> Result<(Self, LedgerState, Vec<Note>), LedgerError> {
        let (mut state, mut taken, mut notes) =
            (LedgerState::default(), Taken::default(), Vec::new());
        disk.create_dir_all(&inbox::folder(state_dir))?;
        let waiting = disk.list(&inbox::folder(state_dir))?;
        let mut walk = Walk::new(state_dir, Arc::clone(&disk))?;
        for line in walk.by_ref() {
            let line = line?;
            if let Some(from) = &line.from
                && !waiting.is_empty()
            {
                taken.note(from);
            }
            state.apply(&line.fact);
        }
        if let Some(tail) = &walk.tail {
            disk.truncate(&tail.path, tail.offset)?;
            notes.push(cut(tail));
        }
        let mut appender = Appender::resume(state_dir, Arc::clone(&disk), &walk)?;
        let mut arrived = 0;
        let left = inbox::ingest(state_dir, &disk, &mut taken, &mut appender, &mut |facts| {
            arrived += facts.len();
            facts.iter().for_each(|fact| state.apply(fact));
        })?;
        if arrived > 0 {
            notes.push(Note(format!(
                "took in {arrived} facts of processes that ran without a loop"
            )));
        }
        notes.extend(left.into_iter().map(Note));
        state.set_segment(appender.segment());
        let ledger = Self {
            state_dir: state_dir.to_owned(),
            disk,
            appender,
            taken,
            state: state.clone(),
        };
        Ok((ledger, state, notes))
    }
}

fn cut(tail: &Tail) -> Note {
    Note(format!(
        "cut {} bytes of an unfinished write off {} at line {} (byte {}): {}; nothing acknowledged is lost",
        tail.bytes,
        tail.path.display(),
        tail.line,
        tail.offset,
        tail.detail
    ))
}

/// The state that the facts of a state directory lead to. Takes no lock and writes nothing; what a
/// living writer appends meanwhile may or may not be in it.
///
/// # Errors
/// As [`Ledger::open`].
pub fn replay(state_dir: &Path) -> Result<LedgerState, LedgerError> {
    let mut state = LedgerState::default();
    let mut walk = Walk::new(state_dir, Arc::new(RealDisk))?;
    for line in walk.by_ref() {
        state.apply(&line?.fact);
    }
    state.set_segment(walk.segment.max(1));
    Ok(state)
}
