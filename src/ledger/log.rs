//! The segments on disk: opened, appended to in batches, rotated. Knows no threads and no callers.

use super::codec::{Source, encode};
use super::error::LedgerError;
use super::fact::{Fact, NewFact};
use super::segment::{Chain, FIRST_SEGMENT, INBOX_DIR, LEDGER_DIR, segment_path};
use crate::fsx::disk::{Disk, DiskFile};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sizes of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerLimits {
    /// A segment of so many bytes is sealed and a new one begun.
    pub segment_bytes: u64,
    /// At most so many facts are written by one sync.
    pub batch_facts: usize,
    /// About so many bytes are written by one sync.
    pub batch_bytes: usize,
}

impl Default for LedgerLimits {
    fn default() -> Self {
        Self {
            // About 16,000 facts: a reader that begins in the middle reads one of these.
            segment_bytes: 4 << 20,
            // Far above what gathers during one sync with a few hundred producers.
            batch_facts: 4_096,
            batch_bytes: 1 << 20,
        }
    }
}

/// Facts that are written together: encoded, not durable yet.
#[derive(Debug)]
pub(super) struct Batch {
    buffer: Vec<u8>,
    pub(super) facts: Vec<Fact>,
    chain: Chain,
}

impl Batch {
    /// Adds facts, all or none of them.
    pub(super) fn push(
        &mut self,
        facts: impl IntoIterator<Item = (NewFact, Option<Source>)>,
    ) -> Result<u64, LedgerError> {
        let (bytes, count, chain) = (self.buffer.len(), self.facts.len(), self.chain);
        for (fact, source) in facts {
            let fact = Fact {
                seq: self.chain.seq.saturating_add(1),
                at: fact.at,
                task: fact.task,
                run: fact.run,
                body: fact.body,
            };
            match encode(&fact, source.as_ref(), self.chain.sum, &mut self.buffer) {
                Ok(sum) => self.chain = Chain { seq: fact.seq, sum },
                Err(error) => {
                    self.buffer.truncate(bytes);
                    self.facts.truncate(count);
                    self.chain = chain;
                    return Err(error);
                }
            }
            self.facts.push(fact);
        }
        Ok(self.chain.seq)
    }

    pub(super) fn is_full(&self, limits: &LedgerLimits) -> bool {
        self.facts.len() >= limits.batch_facts || self.buffer.len() >= limits.batch_bytes
    }
}

/// The open end of the ledger.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) state_dir: PathBuf,
    pub(super) limits: LedgerLimits,
    pub(super) chain: Chain,
    pub(super) segment: u32,
    pub(super) segment_len: u64,
    pub(super) file: Box<dyn DiskFile>,
    /// How far inbox files that are still there were taken in before.
    pub(super) ingested: HashMap<String, u64>,
}

pub(super) fn ledger_dir(state_dir: &Path) -> PathBuf {
    state_dir.join(LEDGER_DIR)
}

pub(super) fn inbox_dir(state_dir: &Path) -> PathBuf {
    state_dir.join(LEDGER_DIR).join(INBOX_DIR)
}

/// Creates the folders; durable after the caller's sync of the state directory and the ledger's.
pub(super) fn create_layout(disk: &dyn Disk, state_dir: &Path) -> Result<(), LedgerError> {
    disk.create_dir(state_dir)?;
    disk.create_dir(&ledger_dir(state_dir))?;
    disk.create_dir(&inbox_dir(state_dir))?;
    Ok(())
}

impl Log {
    pub(super) fn batch(&self) -> Batch {
        Batch {
            buffer: Vec::new(),
            facts: Vec::new(),
            chain: self.chain,
        }
    }

    /// Makes a batch durable: one write, one sync. After an error the end of the segment is
    /// unknown, and this log must not be written to again.
    pub(super) fn commit(&mut self, batch: Batch) -> Result<Vec<Fact>, LedgerError> {
        if batch.facts.is_empty() {
            return Ok(batch.facts);
        }
        self.file.append(&batch.buffer)?;
        self.file.sync_data()?;
        self.chain = batch.chain;
        self.segment_len = self.segment_len.saturating_add(batch.buffer.len() as u64);
        Ok(batch.facts)
    }

    pub(super) fn is_segment_full(&self) -> bool {
        self.segment_len >= self.limits.segment_bytes
    }

    /// Begins the next segment and seals the full one, whose content is synced already.
    ///
    /// In this order the segment that is written to is never a sealed one, whenever the power goes.
    pub(super) fn rotate(&mut self) -> Result<(), LedgerError> {
        let dir = ledger_dir(&self.state_dir);
        let sealed = segment_path(&dir, self.segment);
        let next = self.segment.saturating_add(1);
        self.file = create_segment(&*self.disk, &dir, next)?;
        self.segment = next;
        self.segment_len = 0;
        // Only a guard against editors; a ledger with a writable old segment is as good.
        if let Err(error) = self.disk.set_readonly(&sealed) {
            tracing::warn!(%error, "cannot seal a ledger segment");
        }
        Ok(())
    }
}

/// A new, empty, durable segment.
pub(super) fn create_segment(
    disk: &dyn Disk,
    dir: &Path,
    segment: u32,
) -> Result<Box<dyn DiskFile>, LedgerError> {
    let mut file = disk.create_new(&segment_path(dir, segment))?;
    file.sync_data()?;
    disk.sync_dir(dir)?;
    Ok(file)
}

/// Opens the last segment for writing, or begins the first one, and makes durable all that was read
/// from it: a killed writer may have left what no sync covered.
pub(super) fn open_end(
    disk: &dyn Disk,
    state_dir: &Path,
    segment: Option<u32>,
) -> Result<Box<dyn DiskFile>, LedgerError> {
    let dir = ledger_dir(state_dir);
    disk.sync_dir(state_dir)?;
    let Some(segment) = segment else {
        return create_segment(disk, &dir, FIRST_SEGMENT);
    };
    let mut file = disk.open_append(&segment_path(&dir, segment))?;
    file.sync_data()?;
    disk.sync_dir(&dir)?;
    Ok(file)
}
