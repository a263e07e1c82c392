//! From the files to the state: replays all segments, cuts an unfinished write, refuses damage.

use super::error::LedgerError;
use super::fact::{FactBody, NewFact};
use super::log::{LedgerLimits, Log, create_layout, inbox_dir, ledger_dir, open_end};
use super::segment::{Chain, End, FIRST_SEGMENT, Tail, scan, segment_numbers, segment_path};
use super::state::LedgerState;
use super::view::VIEW_FILE;
use super::writer::{self, LedgerHandle, ViewSettings};
use crate::fsx::disk::Disk;
use crate::types::Timestamp;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Something that opening the ledger found and dealt with; one line for people each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryNote {
    /// The last write was not finished. Nothing in it was ever acknowledged; it was cut off.
    TornTail {
        /// The segment.
        path: PathBuf,
        /// Its length now.
        offset: u64,
        /// How many bytes were cut off.
        bytes: u64,
    },
    /// The view covers facts that the ledger does not have: its end was lost after it was durable.
    FactsMissing {
        /// The view's last sequence number.
        view_seq: u64,
        /// The ledger's.
        ledger_seq: u64,
    },
    /// Facts of another process were taken in.
    Ingested {
        /// Its inbox file.
        path: PathBuf,
        /// How many.
        facts: usize,
    },
    /// An inbox file is damaged: what precedes the damage was taken in, the file was renamed.
    DamagedInbox {
        /// Its new name.
        path: PathBuf,
        /// What is wrong, with line and byte.
        why: String,
    },
}

impl fmt::Display for RecoveryNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornTail {
                path,
                offset,
                bytes,
            } => write!(
                f,
                "{}: cut {bytes} bytes of an unfinished write at byte {offset}",
                path.display()
            ),
            Self::FactsMissing {
                view_seq,
                ledger_seq,
            } => write!(
                f,
                "the ledger ends at fact {ledger_seq}, but {VIEW_FILE} covers {view_seq}: \
                 facts were lost, check the disk and the last backup"
            ),
            Self::Ingested { path, facts } => {
                write!(f, "took in {facts} facts of {}", path.display())
            }
            Self::DamagedInbox { path, why } => {
                write!(f, "kept a damaged inbox file as {}: {why}", path.display())
            }
        }
    }
}

impl RecoveryNote {
    /// Whether something may be lost that was acknowledged: people must see it.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::FactsMissing { .. } | Self::DamagedInbox { .. })
    }
}

/// An open ledger that nobody writes to yet. Its opener holds the singleton lock.
#[derive(Debug)]
pub struct Ledger {
    pub(super) log: Log,
    pub(super) state: LedgerState,
}

impl Ledger {
    /// Opens the ledger of a state directory (created when missing), replays it and takes in the
    /// inbox. Everything in the returned state is durable.
    ///
    /// Call it only under the singleton lock. An unfinished write at the end is cut off (and is in
    /// the notes); losses are also recorded as warnings.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`] and its neighbours, with nothing changed; or the disk's refusal.
    pub fn open(
        state_dir: &Path,
        disk: Arc<dyn Disk>,
    ) -> Result<(Self, LedgerState, Vec<RecoveryNote>), LedgerError> {
        Self::open_with(state_dir, disk, LedgerLimits::default())
    }

    /// [`Ledger::open`] with other sizes than the usual ones.
    ///
    /// # Errors
    /// As [`Ledger::open`].
    pub fn open_with(
        state_dir: &Path,
        disk: Arc<dyn Disk>,
        limits: LedgerLimits,
    ) -> Result<(Self, LedgerState, Vec<RecoveryNote>), LedgerError> {
        create_layout(&*disk, state_dir)?;
        let replayed = replay(&*disk, state_dir)?;
        let mut notes = replayed.notes;
        if let Some(note) = compare_with_view(&*disk, state_dir, replayed.chain.seq)? {
            notes.push(note);
        }
        if let Some((path, offset)) = &replayed.cut {
            disk.truncate(path, *offset)?;
        }
        let file = open_end(&*disk, state_dir, replayed.segment)?;
        let log = Log {
            file,
            disk,
            state_dir: state_dir.to_owned(),
            limits,
            chain: replayed.chain,
            segment: replayed.segment.unwrap_or(FIRST_SEGMENT),
            segment_len: replayed.segment_len,
            ingested: replayed.ingested,
        };
        let mut ledger = Self {
            log,
            state: replayed.state,
        };
        let Self { log, state } = &mut ledger;
        notes.extend(log.ingest(&mut |facts| {
            for fact in &facts {
                state.apply(fact);
            }
        })?);
        ledger.record_losses(&notes)?;
        let state = ledger.state.clone();
        Ok((ledger, state, notes))
    }

    /// Starts the writer thread.
    #[must_use]
    pub fn start(self, settings: ViewSettings) -> LedgerHandle {
        writer::start(self, settings)
    }

    fn record_losses(&mut self, notes: &[RecoveryNote]) -> Result<(), LedgerError> {
        let at = Timestamp::from_millis(
            self.state
                .last_at
                .as_millis()
                .max(writer::wall_clock().as_millis()),
        );
        let warnings = notes.iter().filter(|note| note.is_loss()).map(|note| {
            let text = note.to_string();
            (NewFact::new(at, FactBody::Warning { text }), None)
        });
        let mut batch = self.log.batch();
        batch.push(warnings)?;
        for fact in self.log.commit(batch)? {
            self.state.apply(&fact);
        }
        Ok(())
    }
}

struct Replayed {
    state: LedgerState,
    chain: Chain,
    segment: Option<u32>,
    segment_len: u64,
    ingested: HashMap<String, u64>,
    /// What has to be cut: nothing is changed before all is read and found good.
    cut: Option<(PathBuf, u64)>,
    notes: Vec<RecoveryNote>,
}

fn replay(disk: &dyn Disk, state_dir: &Path) -> Result<Replayed, LedgerError> {
    let dir = ledger_dir(state_dir);
    let numbers = segment_numbers(&dir, &disk.list(&dir)?)?;
    // Only what is still in the inbox can be taken in twice; the rest of history need not be known.
    let mut ingested: HashMap<String, u64> = disk
        .list(&inbox_dir(state_dir))?
        .into_iter()
        .filter_map(|name| name.strip_suffix(".jsonl").map(|stem| (stem.to_owned(), 0)))
        .collect();
    let mut state = LedgerState::default();
    let mut replayed = Replayed {
        state: LedgerState::default(),
        chain: Chain::START,
        segment: numbers.last().copied(),
        segment_len: 0,
        ingested: HashMap::new(),
        cut: None,
        notes: Vec::new(),
    };
    for number in numbers {
        let path = segment_path(&dir, number);
        let bytes = disk.read(&path)?.unwrap_or_default();
        let tail = if replayed.segment == Some(number) {
            Tail::MayBeTorn
        } else {
            Tail::Whole
        };
        let end = scan(&bytes, &mut replayed.chain, tail, &mut |line| {
            state.apply(&line.fact);
            if let Some(source) = line.source
                && let Some(seen) = ingested.get_mut(&source.inbox)
            {
                *seen = source.seq.max(*seen);
            }
        });
        replayed.segment_len = bytes.len() as u64;
        match end {
            End::Clean => {}
            End::Torn { offset } => {
                replayed.notes.push(RecoveryNote::TornTail {
                    path: path.clone(),
                    offset,
                    bytes: replayed.segment_len.saturating_sub(offset),
                });
                replayed.segment_len = offset;
                replayed.cut = Some((path, offset));
            }
            End::Damaged { line, offset, why } => {
                return Err(LedgerError::Damaged {
                    path,
                    line,
                    offset,
                    why,
                });
            }
        }
    }
    replayed.state = state;
    replayed.ingested = ingested;
    Ok(replayed)
}

/// The view is written only after its facts are durable: one that covers more is proof of a loss.
/// It is a cache, so one that cannot be read proves nothing.
fn compare_with_view(
    disk: &dyn Disk,
    state_dir: &Path,
    ledger_seq: u64,
) -> Result<Option<RecoveryNote>, LedgerError> {
    let path = state_dir.join(VIEW_FILE);
    let view_seq = disk
        .read(&path)?
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
        .and_then(|view| view.get("ledger")?.get("seq")?.as_u64())
        .unwrap_or(0);
    if view_seq <= ledger_seq {
        return Ok(None);
    }
    if ledger_seq == 0 {
        return Err(LedgerError::MissingFacts {
            view: path,
            seq: view_seq,
        });
    }
    Ok(Some(RecoveryNote::FactsMissing {
        view_seq,
        ledger_seq,
    }))
}

#[cfg(test)]
#[path = "crash_tests.rs"]
mod tests;
