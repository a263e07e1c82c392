//! Facts of processes that are not the writer: each has a file of its own in `ledger/inbox`, which the
//! writer takes in whole once the process is gone.
//!
//! Taking in is idempotent: every fact that came through the inbox says in its line from which file and
//! place, so that a crash before the file's removal doubles nothing.

use super::append::{Appender, Entry};
use super::codec::{self, Origin, Sum};
use super::error::LedgerError;
use super::fact::{Fact, NewFact};
use super::segment;
use crate::fsx::disk::{Disk, DiskFile, RealDisk};
use crate::fsx::lock::Lock;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SUFFIX: &str = ".jsonl";
/// Facts of one batch at most.
pub(super) const BATCH_FACTS_MAX: usize = 1_024;

pub(super) fn folder(state_dir: &Path) -> PathBuf {
    segment::folder(state_dir).join("inbox")
}

/// One process's facts on their way to the ledger.
pub struct Inbox {
    file: Box<dyn DiskFile>,
    seq: u64,
    sum: Sum,
    failed: Option<LedgerError>,
    /// Held while this lives: the writer leaves the file alone.
    _lock: Lock,
}

impl Inbox {
    /// Makes this process's file.
    ///
    /// # Errors
    /// [`LedgerError::Disk`].
    pub fn create(state_dir: &Path) -> Result<Self, LedgerError> {
        let dir = folder(state_dir);
        RealDisk.create_dir_all(&dir)?;
        let path = dir.join(format!("{}{SUFFIX}", ulid::Ulid::generate()));
        let lock = Lock::exclusive(&path)?;
        let mut file = RealDisk.open_append(&path)?;
        file.sync_data()?;
        RealDisk.sync_dir(&dir)?;
        Ok(Self {
            file,
            seq: 0,
            sum: Sum::default(),
            failed: None,
            _lock: lock,
        })
    }

    /// Makes facts durable. After the first error every call answers it.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub fn append(&mut self, facts: &[NewFact]) -> Result<(), LedgerError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let done = self.write(facts);
        self.failed = done.as_ref().err().cloned();
        done
    }

    fn write(&mut self, facts: &[NewFact]) -> Result<(), LedgerError> {
        let (mut buffer, mut sum, mut seq) = (Vec::new(), self.sum, self.seq);
        for fact in facts {
            seq += 1;
            sum = codec::encode(fact, seq, None, sum, &mut buffer)?;
        }
        self.file.append(&buffer)?;
        self.file.sync_data()?;
        (self.seq, self.sum) = (seq, sum);
        Ok(())
    }
}

/// What the writer knows of the inbox: how many facts of a file are in the ledger already.
#[derive(Default)]
pub(super) struct Taken(HashMap<String, u64>);

impl Taken {
    /// Remembers that a fact of a file is in the ledger.
    pub(super) fn note(&mut self, from: &Origin) {
        let taken = self.0.entry(from.file.clone()).or_default();
        *taken = (*taken).max(from.seq);
    }

    /// Forgets files that are gone: nothing of them can come again.
    pub(super) fn retain(&mut self, names: &[String]) {
        let stem = |name: &String| name.strip_suffix(SUFFIX).map(str::to_owned);
        let there: std::collections::HashSet<String> = names.iter().filter_map(stem).collect();
        self.0.retain(|file, _| there.contains(file));
    }
}

/// Takes in all files whose process is gone and gives the new facts to `each`; the answer says what was
/// left and why. Only an error of the ledger itself is an error.
pub(super) fn ingest(
    state_dir: &Path,
    disk: &Arc<dyn Disk>,
    taken: &mut Taken,
    appender: &mut Appender,
    each: &mut dyn FnMut(Vec<Fact>),
) -> Result<Vec<String>, LedgerError> {
    let dir = folder(state_dir);
    let names = disk.list(&dir)?;
    taken.retain(&names);
    let mut left = Vec::new();
    for name in &names {
        let Some(stem) = name.strip_suffix(SUFFIX) else {
            continue;
        };
        let path = dir.join(name);
        let Some(held) = disk.try_hold(&path)? else {
            continue;
        };
        let bytes = disk.read(&path)?.unwrap_or_default();
        let entries = match parse(stem, &bytes) {
            Ok(entries) => entries,
            Err((line, detail)) => {
                left.push(format!(
                    "{} is left where it is: line {line} is damaged: {detail}; remove it to be rid of it",
                    path.display()
                ));
                continue;
            }
        };
        let done = taken.0.get(stem).copied().unwrap_or_default();
        let is_new = |entry: &Entry| entry.1.as_ref().is_some_and(|from| from.seq > done);
        let mut fresh = entries.into_iter().filter(is_new).peekable();
        while fresh.peek().is_some() {
            let batch: Vec<Entry> = fresh.by_ref().take(BATCH_FACTS_MAX).collect();
            let last = batch.last().and_then(|entry| entry.1.clone());
            each(appender.append(batch)?);
            last.iter().for_each(|from| taken.note(from));
        }
        if let Err(error) = disk.remove(&path) {
            left.push(format!(
                "{} is in the ledger but stays: {error}",
                path.display()
            ));
        }
        drop(held);
    }
    Ok(left)
}

/// The facts of an inbox file; a torn end was never acknowledged and is left out.
fn parse(stem: &str, bytes: &[u8]) -> Result<Vec<Entry>, (usize, String)> {
    let (mut sum, mut entries) = (Sum::default(), Vec::new());
    let mut lines = bytes.split_inclusive(|b| *b == b'\n').zip(1..);
    while let Some((line, number)) = lines.next() {
        let decoded = match line.strip_suffix(b"\n") {
            None => break,
            Some(text) => codec::decode(text, sum),
        };
        match decoded {
            Ok(line) => {
                sum = line.sum;
                let from = Origin {
                    file: stem.to_owned(),
                    seq: line.fact.seq,
                };
                entries.push((unnumbered(line.fact), Some(from)));
            }
            Err(detail) => {
                let intact_follows = lines.any(|(line, _)| {
                    line.strip_suffix(b"\n")
                        .is_some_and(codec::looks_like_a_fact)
                });
                if intact_follows {
                    return Err((number, detail));
                }
                break;
            }
        }
    }
    Ok(entries)
}

fn unnumbered(fact: Fact) -> NewFact {
    NewFact {
        at: fact.at,
        task: fact.task,
        run: fact.run,
        body: fact.body,
    }
}
