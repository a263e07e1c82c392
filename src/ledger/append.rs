//! The end of the log: facts get their numbers, their lines and their durability here.
//!
//! One batch is one write and one sync. Nothing is retried: after an error the caller latches.

use super::codec::{self, Origin, Sum};
use super::error::LedgerError;
use super::fact::{Fact, NewFact};
use super::segment::{self, Walk};
use crate::fsx::disk::{Disk, DiskFile};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A segment that is this long is sealed before the next batch.
pub(super) const SEGMENT_BYTES: u64 = 4 << 20;

/// A fact and, if it came through the inbox, from where.
pub(super) type Entry = (NewFact, Option<Origin>);

/// Appends to the last segment.
pub(super) struct Appender {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    file: Box<dyn DiskFile>,
    segment: u64,
    len: u64,
    seq: u64,
    sum: Sum,
    pub(super) segment_bytes: u64,
}

impl Appender {
    /// Goes on where a walk ended; its torn tail is cut already.
    pub(super) fn resume(
        state_dir: &Path,
        disk: Arc<dyn Disk>,
        walk: &Walk,
    ) -> Result<Self, LedgerError> {
        let dir = segment::folder(state_dir);
        let segment = walk.segment.max(1);
        let path = dir.join(segment::name(segment));
        let mut file = if walk.segment == 0 {
            disk.create(&path)?
        } else {
            disk.open_append(&path)?
        };
        // What was read may be in memory only: it must not be acted on before it is durable.
        file.sync_data()?;
        disk.sync_dir(&dir)?;
        if segment > 1 {
            disk.set_readonly(&dir.join(segment::name(segment - 1)))?;
        }
        Ok(Self {
            disk,
            dir,
            file,
            segment,
            len: walk.good_len(),
            seq: walk.seq,
            sum: walk.sum,
            segment_bytes: SEGMENT_BYTES,
        })
    }

    /// The number of the segment that is appended to.
    pub(super) fn segment(&self) -> u64 {
        self.segment
    }

    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    /// Makes a batch durable and gives its facts with their numbers. After an error nothing more may be
    /// appended: what is on the disk is unknown.
    pub(super) fn append(&mut self, entries: Vec<Entry>) -> Result<Vec<Fact>, LedgerError> {
        let (mut buffer, mut sum, mut seq) = (Vec::new(), self.sum, self.seq);
        for (fact, from) in &entries {
            seq += 1;
            sum = codec::encode(fact, seq, from.as_ref(), sum, &mut buffer)?;
        }
        if buffer.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = u64::try_from(buffer.len()).unwrap_or(u64::MAX);
        if self.len > 0 && self.len.saturating_add(bytes) > self.segment_bytes {
            self.rotate()?;
        }
        self.file.append(&buffer)?;
        self.file.sync_data()?;
        self.len = self.len.saturating_add(bytes);
        let first = self.seq + 1;
        (self.seq, self.sum) = (seq, sum);
        let numbered = (first..).zip(entries);
        Ok(numbered
            .map(|(seq, (fact, _))| numbered_fact(seq, fact))
            .collect())
    }

    /// Everything in the old segment is synced: each batch was.
    fn rotate(&mut self) -> Result<(), LedgerError> {
        let old = self.dir.join(segment::name(self.segment));
        let next = self.dir.join(segment::name(self.segment + 1));
        let mut file = self.disk.create(&next)?;
        file.sync_data()?;
        self.disk.sync_dir(&self.dir)?;
        self.disk.set_readonly(&old)?;
        (self.file, self.len) = (file, 0);
        self.segment += 1;
        Ok(())
    }
}

fn numbered_fact(seq: u64, fact: NewFact) -> Fact {
    Fact {
        seq,
        at: fact.at,
        task: fact.task,
        run: fact.run,
        body: fact.body,
    }
}
