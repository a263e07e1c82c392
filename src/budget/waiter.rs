//! Waiting for slot files by events: tries without blocking, is woken when a holder's descriptor closes.

use super::slots::{SlotDir, SlotGuard, SlotText};
use crate::fsx::FsError;
use crate::fsx::lock::{Attempt, Lock, LockFile};
use crate::fsx::watch::{Watch, WatchMask};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

/// The kernel tells of a killed holder's close a moment before its lock is gone, so an event that found
/// nothing is followed by another try after this, then after twice this, and so on.
const RETRY_FIRST: Duration = Duration::from_millis(2);
/// The longest pause between two tries without an event: a lost event costs at most this.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// Somebody who wants slots. Dropping it gives back what it has gathered.
///
/// Only the holder of the turnstile scans, so one waiter gathers slots and all others hold nothing:
/// no two can wait for each other.
#[derive(Debug)]
pub struct SlotWaiter {
    dir: SlotDir,
    m: u32,
    weight: u32,
    turnstile: Option<Lock>,
    taken: BTreeMap<u32, Lock>,
    // Kept open between tries: closing a file that was open for writing would wake all waiters, and
    // they each other, for ever.
    turnstile_file: Option<LockFile>,
    slot_files: BTreeMap<u32, LockFile>,
    watch: Option<Watch>,
    retry: Duration,
}

impl SlotWaiter {
    pub(super) fn new(dir: SlotDir, m: u32, weight: u32) -> Self {
        let m = m.max(1);
        Self {
            dir,
            m,
            weight: weight.clamp(1, m),
            turnstile: None,
            taken: BTreeMap::new(),
            turnstile_file: None,
            slot_files: BTreeMap::new(),
            watch: None,
            retry: RETRY_FIRST,
        }
    }

    /// Takes what is free; answers the slots once all of them are taken and name `text`'s run.
    ///
    /// `sweep` is called for a slot whose last run has no recorded end and answers whether nothing of
    /// that run is left; a slot that is not clean is passed over. Never blocks on a lock.
    ///
    /// # Errors
    /// [`FsError`] when a lock file cannot be opened or written.
    pub fn try_take(
        &mut self,
        text: &SlotText,
        sweep: &mut dyn FnMut(&SlotText) -> bool,
    ) -> Result<Option<SlotGuard>, FsError> {
        let had_event = match &mut self.watch {
            Some(watch) => !watch.read()?.is_empty(),
            None => false,
        };
        self.retry = if had_event {
            RETRY_FIRST
        } else {
            (self.retry * 2).min(RETRY_MAX)
        };
        if self.scan(sweep)? {
            return self.finish(text).map(Some);
        }
        if self.watch.is_none() {
            // The watch costs more than a try, so it is made only now; what was freed in between is
            // seen by one more scan.
            let mut watch = Watch::new()?;
            watch.add(self.dir.path(), WatchMask::CLOSES)?;
            self.watch = Some(watch);
            self.retry = RETRY_FIRST;
            if self.scan(sweep)? {
                return self.finish(text).map(Some);
            }
        }
        Ok(None)
    }

    /// Readable when a try may succeed; none before the first try.
    #[must_use]
    pub fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// When to try again if no event comes.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        self.retry
    }

    /// Whether enough slots are gathered.
    fn scan(&mut self, sweep: &mut dyn FnMut(&SlotText) -> bool) -> Result<bool, FsError> {
        if self.turnstile.is_none() {
            let path = self.dir.turnstile_path();
            match try_lock(self.turnstile_file.take(), path)? {
                Attempt::Locked(lock) => self.turnstile = Some(lock),
                Attempt::Busy(file) => {
                    self.turnstile_file = Some(file);
                    return Ok(false);
                }
            }
        }
        let wanted = self.weight as usize;
        for slot in 0..self.m {
            if self.taken.len() >= wanted {
                break;
            }
            if self.taken.contains_key(&slot) {
                continue;
            }
            match try_lock(self.slot_files.remove(&slot), self.dir.slot_path(slot))? {
                Attempt::Locked(lock) => {
                    if is_clean(&lock, sweep)? {
                        self.taken.insert(slot, lock);
                    }
                }
                Attempt::Busy(file) => {
                    self.slot_files.insert(slot, file);
                }
            }
        }
        Ok(self.taken.len() >= wanted)
    }

    fn finish(&mut self, text: &SlotText) -> Result<SlotGuard, FsError> {
        let line = text.line();
        for lock in self.taken.values() {
            lock.write_text(&line)?;
        }
        // Only now may the next one scan: until here a kill leaves slots that name nobody and hold nothing.
        self.turnstile = None;
        Ok(SlotGuard::new(std::mem::take(&mut self.taken)))
    }
}

fn try_lock(file: Option<LockFile>, path: PathBuf) -> Result<Attempt, FsError> {
    match file {
        Some(file) => file.try_exclusive(),
        None => LockFile::open(&path)?.try_exclusive(),
    }
}

/// Empties the text of a slot that we hold once nothing of its last run is left.
pub(super) fn is_clean(
    lock: &Lock,
    sweep: &mut dyn FnMut(&SlotText) -> bool,
) -> Result<bool, FsError> {
    let Some(text) = SlotText::parse(&lock.read_text()?) else {
        return Ok(true);
    };
    if !sweep(&text) {
        return Ok(false);
    }
    lock.write_text("")?;
    Ok(true)
}
