//! The leases as a table. Pure: decides who may claim, what a claim replaces and what it reclaims;
//! whether a `.live` file is locked comes in as an answer.

use super::clock::Clock;
use super::error::LeaseError;
use super::record::{
    Holder, LeaseMode, LeaseRecord, LeaseStatus, LeasesFile, file_bytes, record_text,
};
use crate::types::{ClaimSet, LeaseId, RunId, TaskId, Timestamp};
use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

/// Leases not in the way that a claim looks at, so that the dead go in time although nobody wants
/// their paths; two outpace one new entry per claim.
const PROBES_PER_CLAIM: usize = 2;

/// A claim of paths for a task.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// For whom.
    pub task: TaskId,
    /// What; not empty.
    pub paths: ClaimSet,
    /// Who asks.
    pub holder: Holder,
    /// Runs known to work under it.
    pub run_ids: Vec<RunId>,
    /// For a claim that outlives its claimer: how long. None: as long as a process holds it.
    pub ttl: Option<Duration>,
}

/// The time a decision is made at.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) boot_id: String,
    pub(super) wall: Timestamp,
    clock: Arc<dyn Clock>,
    boot_ms: OnceCell<u64>,
}

impl Moment {
    pub(super) fn now(clock: &Arc<dyn Clock>) -> Self {
        Self {
            boot_id: clock.boot_id(),
            wall: clock.wall(),
            clock: Arc::clone(clock),
            boot_ms: OnceCell::new(),
        }
    }

    /// Read once, and only when a TTL is looked at: most claims have none.
    pub(super) fn boot_ms(&self) -> u64 {
        *self.boot_ms.get_or_init(|| self.clock.boot_millis())
    }
}

/// Answers whether a process holds the lease's `.live` file.
pub(super) type IsLocked<'a> = &'a mut dyn FnMut(&LeaseRecord) -> Result<bool, LeaseError>;

/// What a granted claim does to the table.
#[derive(Debug, Default)]
pub(super) struct Grant {
    /// Places of dead entries, ascending.
    dead: Vec<usize>,
    /// The place of the task's own living lease.
    own: Option<usize>,
}

/// What a granted claim did.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) lease: LeaseRecord,
    pub(super) replaced: Option<LeaseId>,
    pub(super) reclaimed: Vec<LeaseRecord>,
}

#[derive(Debug, Clone)]
struct Entry {
    record: LeaseRecord,
    /// Its bytes in the file: a rewrite is a copy for all entries but the changed one.
    text: String,
}

/// All leases, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    next_epoch: u64,
}

impl Table {
    pub(super) fn new(file: LeasesFile) -> serde_json::Result<Self> {
        let entries = file
            .leases
            .into_iter()
            .map(Entry::new)
            .collect::<serde_json::Result<_>>()?;
        Ok(Self {
            entries,
            next_epoch: file.next_epoch,
        })
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &LeaseRecord> {
        self.entries.iter().map(|entry| &entry.record)
    }

    pub(super) fn find(&self, id: &LeaseId) -> Option<&LeaseRecord> {
        self.records().find(|record| record.lease_id == *id)
    }

    pub(super) fn bytes(&self, generated_at: Timestamp) -> Vec<u8> {
        let texts = self.entries.iter().map(|entry| entry.text.as_str());
        file_bytes(generated_at, self.next_epoch.max(1), texts)
    }

    /// An epoch once given is never given again: the ledger knows some that the file may have lost.
    pub(super) fn raise_epoch(&mut self, floor: u64) {
        self.next_epoch = self.next_epoch.max(floor).max(1);
    }

    /// Decides a claim; changes nothing. One pass over the standing leases.
    ///
    /// # Errors
    /// [`LeaseError::Conflict`] when a living holder has overlapping paths, also when that holder is
    /// another process at work on the same task; [`LeaseError::Empty`].
    pub(super) fn decide(
        &self,
        request: &ClaimRequest,
        moment: &Moment,
        is_locked: IsLocked<'_>,
    ) -> Result<Grant, LeaseError> {
        if request.paths.is_empty() {
            return Err(LeaseError::Empty);
        }
        let mut grant = Grant::default();
        let first_probe = usize::try_from(self.next_epoch).unwrap_or(0) % self.entries.len().max(1);
        for (at, entry) in self.entries.iter().enumerate() {
            let record = &entry.record;
            let own = record.task_id == request.task;
            let overlap = || {
                request
                    .paths
                    .overlapping(&record.paths)
                    .filter(|_| record.mode == LeaseMode::Write)
            };
            if record.holder.boot_id != moment.boot_id {
                grant.dead.push(at);
            } else if own {
                let same = record.holder.is_same_process(&request.holder);
                let locked = is_locked(record)?;
                if locked && !same {
                    return Err(own_conflict(request, record));
                }
                if locked || unexpired(record, moment) {
                    grant.own = Some(at);
                } else {
                    grant.dead.push(at);
                }
            } else if let Some((claim, held)) = overlap() {
                if unexpired(record, moment) || is_locked(record)? {
                    return Err(LeaseError::Conflict {
                        task: record.task_id.clone(),
                        lease: record.lease_id.clone(),
                        claim: claim.clone(),
                        path: held.clone(),
                        pid: record.holder.pid,
                    });
                }
                grant.dead.push(at);
            } else {
                let probed = (first_probe..first_probe + PROBES_PER_CLAIM).contains(&at);
                let expired = record.expires_boot_ms.is_some() && !unexpired(record, moment);
                let looked_at = expired || (probed && record.expires_boot_ms.is_none());
                if looked_at && !is_locked(record)? {
                    grant.dead.push(at);
                }
            }
        }
        Ok(grant)
    }

    /// Carries out a granted claim.
    pub(super) fn grant(
        &mut self,
        request: &ClaimRequest,
        grant: &Grant,
        id: LeaseId,
        moment: &Moment,
    ) -> serde_json::Result<Granted> {
        self.raise_epoch(1);
        let own = grant
            .own
            .and_then(|at| self.entries.get(at))
            .map(|entry| &entry.record);
        let ttl_ms = request
            .ttl
            .map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let lease = LeaseRecord {
            acquired_at: own.map_or(as_written(moment.wall), |record| record.acquired_at),
            epoch: self.next_epoch,
            expires_at: ttl_ms.map(|ttl| later(moment.wall, ttl)),
            expires_boot_ms: ttl_ms.map(|ttl| moment.boot_ms().saturating_add(ttl)),
            holder: Holder {
                started_at: as_written(request.holder.started_at),
                ..request.holder.clone()
            },
            lease_id: id,
            mode: LeaseMode::Write,
            paths: request.paths.clone(),
            run_ids: request.run_ids.clone(),
            status: LeaseStatus::Active,
            task_id: request.task.clone(),
        };
        let entry = Entry::new(lease.clone())?;
        self.next_epoch += 1;
        let mut replaced = None;
        match grant.own.and_then(|at| self.entries.get_mut(at)) {
            Some(place) => replaced = Some(std::mem::replace(place, entry).record.lease_id),
            None => self.entries.push(entry),
        }
        let reclaimed = grant
            .dead
            .iter()
            .rev()
            .map(|at| self.entries.remove(*at).record)
            .collect();
        Ok(Granted {
            lease,
            replaced,
            reclaimed,
        })
    }

    /// Changes one lease of a known epoch.
    ///
    /// # Errors
    /// [`LeaseError::Gone`], [`LeaseError::Stale`], or what the change answers.
    pub(super) fn change(
        &mut self,
        id: &LeaseId,
        epoch: u64,
        change: impl FnOnce(&mut LeaseRecord) -> Result<(), LeaseError>,
    ) -> Result<LeaseRecord, LeaseError> {
        let entry = self
            .entries
            .iter_mut()
            .find(|entry| entry.record.lease_id == *id)
            .ok_or_else(|| LeaseError::Gone { lease: id.clone() })?;
        check_epoch(&entry.record, epoch)?;
        let mut record = entry.record.clone();
        change(&mut record)?;
        let changed =
            Entry::new(record.clone()).map_err(|_| LeaseError::Gone { lease: id.clone() })?;
        *entry = changed;
        Ok(record)
    }

    /// Takes a lease out; `None` when it is not there.
    pub(super) fn remove(&mut self, id: &LeaseId) -> Option<LeaseRecord> {
        let at = self.records().position(|record| record.lease_id == *id)?;
        Some(self.entries.remove(at).record)
    }

    /// Takes out every lease that is dead.
    pub(super) fn remove_dead(
        &mut self,
        moment: &Moment,
        is_locked: IsLocked<'_>,
    ) -> Result<Vec<LeaseRecord>, LeaseError> {
        let mut dead = Vec::new();
        for record in self.records() {
            let lives = record.holder.boot_id == moment.boot_id
                && (unexpired(record, moment) || is_locked(record)?);
            if !lives {
                dead.push(record.lease_id.clone());
            }
        }
        Ok(dead.iter().filter_map(|id| self.remove(id)).collect())
    }
}

impl Entry {
    fn new(record: LeaseRecord) -> serde_json::Result<Self> {
        let text = record_text(&record)?;
        Ok(Self { record, text })
    }
}

/// # Errors
/// [`LeaseError::Stale`] unless the epoch is the lease's.
pub(super) fn check_epoch(record: &LeaseRecord, epoch: u64) -> Result<(), LeaseError> {
    if record.epoch == epoch {
        return Ok(());
    }
    Err(LeaseError::Stale {
        lease: record.lease_id.clone(),
        epoch,
        current: record.epoch,
    })
}

/// Whether a claim with a TTL still has time. One without has none: only its holder keeps it.
pub(super) fn unexpired(record: &LeaseRecord, moment: &Moment) -> bool {
    record.holder.boot_id == moment.boot_id
        && record
            .expires_boot_ms
            .is_some_and(|end| moment.boot_ms() < end)
}

pub(super) fn later(wall: Timestamp, ms: u64) -> Timestamp {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    as_written(Timestamp::from_millis(wall.as_millis().saturating_add(ms)))
}

/// The file has whole seconds; a record in memory equals the one in the file.
fn as_written(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.as_millis().div_euclid(1000).saturating_mul(1000))
}

/// Another living process works on the same task: replacing its claim would free paths it changes.
fn own_conflict(request: &ClaimRequest, record: &LeaseRecord) -> LeaseError {
    let pair = request.paths.overlap_with(&record.paths);
    let first = || {
        Some((
            request.paths.iter().next()?.clone(),
            record.paths.iter().next()?.clone(),
        ))
    };
    let Some((claim, path)) = pair.or_else(first) else {
        return LeaseError::Empty;
    };
    LeaseError::Conflict {
        task: record.task_id.clone(),
        lease: record.lease_id.clone(),
        claim,
        path,
        pid: record.holder.pid,
    }
}
