//! Facts of processes that are not the ledger's writer: a file each, taken in as a whole when its
//! process is done or dead.

use super::codec::{Source, encode};
use super::error::LedgerError;
use super::fact::{Fact, NewFact};
use super::log::{Log, create_layout, inbox_dir, ledger_dir};
use super::recovery::RecoveryNote;
use super::segment::{Chain, End, Tail, scan};
use crate::fsx::disk::{Disk, DiskFile, RealDisk};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The facts of one process, in a file of its own under `ledger/inbox/` that it keeps locked.
///
/// The daemon takes the facts into the ledger once the lock is free, that is when this value is
/// dropped or the process dies.
#[derive(Debug)]
pub struct Inbox {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    chain: Chain,
    latched: Option<LedgerError>,
}

impl Inbox {
    /// Creates the file, durably.
    ///
    /// # Errors
    /// The disk's refusal.
    pub fn create(state_dir: &Path) -> Result<Self, LedgerError> {
        Self::create_on(&RealDisk, state_dir)
    }

    /// [`Inbox::create`] on another disk than the real one.
    ///
    /// # Errors
    /// The disk's refusal.
    pub fn create_on(disk: &dyn Disk, state_dir: &Path) -> Result<Self, LedgerError> {
        create_layout(disk, state_dir)?;
        let dir = inbox_dir(state_dir);
        let path = dir.join(format!("{}.jsonl", ulid::Ulid::generate()));
        let file = disk.create_locked(&path)?;
        disk.sync_dir(&dir)?;
        disk.sync_dir(&ledger_dir(state_dir))?;
        disk.sync_dir(state_dir)?;
        Ok(Self {
            file,
            path,
            chain: Chain::START,
            latched: None,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds facts by one write and one sync: durable when this returns.
    ///
    /// # Errors
    /// The disk's refusal; after the first one every call gets it again.
    pub fn append(&mut self, facts: &[NewFact]) -> Result<(), LedgerError> {
        if let Some(error) = &self.latched {
            return Err(error.clone());
        }
        let mut buffer = Vec::new();
        let mut chain = self.chain;
        for fact in facts {
            let fact = Fact {
                seq: chain.seq.saturating_add(1),
                at: fact.at,
                task: fact.task.clone(),
                run: fact.run.clone(),
                body: fact.body.clone(),
            };
            let sum = encode(&fact, None, chain.sum, &mut buffer)?;
            chain = Chain { seq: fact.seq, sum };
        }
        let written = self
            .file
            .append(&buffer)
            .and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            let error = LedgerError::from(error);
            self.latched = Some(error.clone());
            return Err(error);
        }
        self.chain = chain;
        Ok(())
    }
}

impl Log {
    /// Takes in all inbox files whose process is done or dead, and removes them.
    ///
    /// Every ingested line names its file and its number there. After a crash in between, what the
    /// ledger has already is skipped, so no fact is doubled; a file is removed only after its facts
    /// are durable, so none is lost.
    pub(super) fn ingest(
        &mut self,
        each: &mut dyn FnMut(Vec<Fact>),
    ) -> Result<Vec<RecoveryNote>, LedgerError> {
        let mut notes = Vec::new();
        let dir = inbox_dir(&self.state_dir);
        for name in self.disk.list(&dir)? {
            let Some(stem) = name.strip_suffix(".jsonl") else {
                continue;
            };
            let path = dir.join(&name);
            let disk = Arc::clone(&self.disk);
            // Held until the file is removed: a process that is about to lock it notices.
            let Some(_lock) = disk.try_lock(&path)? else {
                continue;
            };
            let (facts, end) = self.take_in(&path, stem)?;
            if !facts.is_empty() {
                notes.push(RecoveryNote::Ingested {
                    path: path.clone(),
                    facts: facts.len(),
                });
                each(facts);
            }
            if let End::Damaged { line, offset, why } = end {
                let kept = dir.join(format!("{stem}.damaged"));
                disk.rename(&path, &kept)?;
                notes.push(RecoveryNote::DamagedInbox {
                    path: kept,
                    why: format!("line {line}, byte {offset}: {why}"),
                });
            } else {
                disk.remove(&path)?;
            }
            self.ingested.remove(stem);
        }
        Ok(notes)
    }

    fn take_in(&mut self, path: &Path, stem: &str) -> Result<(Vec<Fact>, End), LedgerError> {
        let bytes = self.disk.read(path)?.unwrap_or_default();
        let seen = self.ingested.get(stem).copied().unwrap_or(0);
        let mut lines = Vec::new();
        let end = scan(
            &bytes,
            &mut { Chain::START },
            Tail::MayBeTorn,
            &mut |line| {
                if line.fact.seq > seen {
                    lines.push(line.fact);
                }
            },
        );
        let mut facts = Vec::new();
        let mut rest = lines.into_iter().peekable();
        while rest.peek().is_some() {
            let mut batch = self.batch();
            while let Some(fact) = rest.next_if(|_| !batch.is_full(&self.limits)) {
                let source = Source {
                    inbox: stem.to_owned(),
                    seq: fact.seq,
                };
                let Fact {
                    at,
                    task,
                    run,
                    body,
                    ..
                } = fact;
                batch.push([(
                    NewFact {
                        at,
                        task,
                        run,
                        body,
                    },
                    Some(source),
                )])?;
            }
            let last = batch.facts.len();
            facts.extend(self.commit(batch)?);
            // Within this process an error after here must not take them in again.
            *self.ingested.entry(stem.to_owned()).or_default() += last as u64;
            if self.is_segment_full() {
                self.rotate()?;
            }
        }
        Ok((facts, end))
    }
}
