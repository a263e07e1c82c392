//! Slot files: M lock files that hold the ceiling over all processes. Knows no child; the caller sweeps.

use super::waiter::SlotWaiter;
use crate::fsx::lock::{Attempt, Lock, LockFile};
use crate::fsx::{self, FsError};
use crate::types::RunId;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The longest slot text that is read.
const CEILING_MAX: u32 = 100_000;

/// The text of a taken slot: whose run it pays for, and how to recognise what is left of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotText {
    /// The run.
    pub run_id: RunId,
    /// What its processes carry in `FLOCKD_TOKEN`.
    pub token: String,
    /// The holder's process id (a runner, or `flockd run`).
    pub pid: u32,
    /// The holder's start time.
    pub start_ticks: u64,
    /// The boot it belongs to: after another boot nothing of it is left.
    pub boot_id: String,
}

impl SlotText {
    /// Reads a slot's text; none when it is empty or not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text.trim()).ok()
    }

    pub(super) fn line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// The folder `slots/` of a state directory.
#[derive(Debug, Clone)]
pub struct SlotDir {
    dir: PathBuf,
}

impl SlotDir {
    /// Opens `slots/`, creating it.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn open(state_dir: &Path) -> Result<Self, FsError> {
        let dir = state_dir.join("slots");
        fsx::create_dir_all(&dir)?;
        Ok(Self { dir })
    }

    /// Writes M for other processes. Only the loop does.
    ///
    /// # Errors
    /// [`FsError`].
    pub fn set_ceiling(&self, m: u32) -> Result<(), FsError> {
        fsx::replace_cached(&self.dir.join("ceiling"), format!("{m}\n").as_bytes())
    }

    /// M as the last loop set it; none when none did.
    #[must_use]
    pub fn ceiling(&self) -> Option<u32> {
        let bytes = fsx::read(&self.dir.join("ceiling")).ok().flatten()?;
        let m: u32 = std::str::from_utf8(&bytes).ok()?.trim().parse().ok()?;
        (1..=CEILING_MAX).contains(&m).then_some(m)
    }

    /// The first `m` slots and who holds each. A look, not a lock: the answer may be stale at once.
    ///
    /// A slot whose text is empty is told free without touching its lock.
    #[must_use]
    pub fn used(&self, m: u32) -> Vec<(u32, Option<SlotText>)> {
        (0..m).map(|slot| (slot, self.holder(slot))).collect()
    }

    /// Every slot that somebody holds, also beyond today's M: after M was lowered, or by a client.
    #[must_use]
    pub fn held(&self) -> Vec<(u32, SlotText)> {
        let Ok(entries) = std::fs::read_dir(&self.dir) else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| {
                let name = entry.ok()?.file_name();
                let slot: u32 = name.to_str()?.strip_suffix(".lock")?.parse().ok()?;
                Some((slot, self.holder(slot)?))
            })
            .collect()
    }

    fn holder(&self, slot: u32) -> Option<SlotText> {
        let path = self.slot_path(slot);
        let bytes = fsx::read(&path).ok().flatten()?;
        let text = SlotText::parse(std::str::from_utf8(&bytes).ok()?)?;
        match LockFile::open(&path).and_then(LockFile::try_exclusive) {
            Ok(Attempt::Locked(_)) => None,
            Ok(Attempt::Busy(_)) | Err(_) => Some(text),
        }
    }

    /// Sweeps what dead holders left: `sweep` is called for each slot that names a run and that nobody
    /// holds, and answers whether nothing of that run is left. Answers how many slots became clean.
    ///
    /// Not guaranteed: that a holder who dies meanwhile is seen.
    ///
    /// # Errors
    /// [`FsError`] when a lock file cannot be opened or written.
    pub fn sweep_dead(&self, sweep: &mut dyn FnMut(&SlotText) -> bool) -> Result<u32, FsError> {
        let entries = std::fs::read_dir(&self.dir).map_err(FsError::io("read", &self.dir))?;
        let mut swept = 0;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".lock"));
            let Some(slot) = number.and_then(|number| number.parse().ok()) else {
                continue;
            };
            let path = self.slot_path(slot);
            let text = fsx::read(&path)?.unwrap_or_default();
            // An empty one is not touched: its lock may be looked at by somebody who wants the slot.
            if text.is_empty() {
                continue;
            }
            if let Attempt::Locked(lock) = LockFile::open(&path)?.try_exclusive()? {
                swept += u32::from(super::waiter::is_clean(&lock, sweep)?);
            }
        }
        Ok(swept)
    }

    /// A place to wait for `weight` of the first `m` slots, clamped to 1..=`m`.
    #[must_use]
    pub fn waiter(&self, m: u32, weight: u32) -> SlotWaiter {
        SlotWaiter::new(self.clone(), m, weight)
    }

    pub(super) fn path(&self) -> &Path {
        &self.dir
    }

    pub(super) fn slot_path(&self, slot: u32) -> PathBuf {
        self.dir.join(format!("{slot:02}.lock"))
    }

    pub(super) fn turnstile_path(&self) -> PathBuf {
        self.dir.join("turnstile.lock")
    }
}

/// Taken slots. Dropping it frees the locks but leaves the text, so that the next taker sweeps first.
#[derive(Debug)]
#[must_use = "dropping the guard frees the slots"]
pub struct SlotGuard {
    slots: Vec<u32>,
    locks: Vec<Lock>,
}

impl SlotGuard {
    pub(super) fn new(taken: impl IntoIterator<Item = (u32, Lock)>) -> Self {
        let (slots, locks) = taken.into_iter().unzip();
        Self { slots, locks }
    }

    /// Their numbers.
    #[must_use]
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Frees the slots: the tree is gone and its end is durable, so the next taker need not sweep.
    pub fn clear(self) {
        for lock in &self.locks {
            // A text that cannot be emptied costs the next taker a sweep that finds nothing.
            let _ = lock.write_text("");
        }
    }
}
