//! The claims of all processes that share a state directory. Each operation is one short section:
//! lock, read, decide, write. Through one manager claims are decided in the order they come.

use super::clock::{Clock, SystemClock};
use super::error::LeaseError;
use super::hold::LeaseHold;
use super::live;
use super::record::{Holder, LeaseRecord, LeaseStatus};
use super::section::{Cache, Section, lock_path};
use super::table::{ClaimRequest, Granted, Moment, check_epoch, later, unexpired};
use super::view::{LeaseView, read_leases};
use crate::fsx;
use crate::fsx::lock::Lock;
use crate::types::LeaseId;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A granted claim.
#[derive(Debug)]
pub struct Claimed {
    /// The entry as written.
    pub lease: LeaseRecord,
    /// Keeps it alive.
    pub held: LeaseHold,
    /// The task's own lease that this one takes the place of.
    pub replaced: Option<LeaseId>,
    /// Dead leases that were in the way or found on the way.
    pub reclaimed: Vec<LeaseRecord>,
}

/// What a release found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// The lease was there and is gone now.
    Now(LeaseRecord),
    /// It was gone already; releasing twice is fine (behaviour 95).
    Before,
}

/// The claim section of a state directory.
#[derive(Debug)]
pub struct LeaseManager {
    state_dir: PathBuf,
    clock: Arc<dyn Clock>,
    epoch_floor: AtomicU64,
    /// One section of this process at a time; other processes are kept out by the file's lock.
    cache: Mutex<Cache>,
}

impl LeaseManager {
    /// Opens the leases of a state directory and makes their folder.
    ///
    /// # Errors
    /// [`LeaseError::File`] when the folder cannot be made or its file system has no honest locks
    /// (behaviour 99).
    pub fn open(state_dir: &Path) -> Result<Self, LeaseError> {
        Self::open_with_clock(state_dir, Arc::new(SystemClock))
    }

    /// As [`LeaseManager::open`], with a clock of the caller's.
    ///
    /// # Errors
    /// As [`LeaseManager::open`].
    pub fn open_with_clock(state_dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, LeaseError> {
        let folder = live::folder(state_dir);
        fsx::refuse_symlink(&folder)?;
        fsx::create_dir_all(&folder)?;
        fsx::check_lockable(&folder)?;
        Ok(Self {
            state_dir: state_dir.to_owned(),
            clock,
            epoch_floor: AtomicU64::new(1),
            cache: Mutex::default(),
        })
    }

    /// Epochs up to this one have been given: the highest of the ledger. It only ever rises.
    pub fn set_epoch_floor(&self, given: u64) {
        self.epoch_floor
            .fetch_max(given.saturating_add(1), Ordering::Relaxed);
    }

    /// Claims paths: the first writer wins, the loser changes no byte (behaviours 23 to 25).
    ///
    /// The lease lives as long as `held`, or a runner that shares it, and at least for its TTL. The
    /// same task claiming again replaces its lease and keeps its time (behaviour 94), unless another
    /// living process holds that one.
    ///
    /// # Errors
    /// [`LeaseError::Conflict`] names the task, the lease and both paths.
    pub fn claim_disjoint(&self, request: &ClaimRequest) -> Result<Claimed, LeaseError> {
        let mut answers = self.claim_batch(std::slice::from_ref(request))?;
        answers.pop().unwrap_or(Err(LeaseError::Empty))
    }

    /// Decides claims in their order, in one section and with one write; one answer for each.
    ///
    /// # Errors
    /// When the file cannot be read or written: then none is granted.
    pub fn claim_batch(
        &self,
        requests: &[ClaimRequest],
    ) -> Result<Vec<Result<Claimed, LeaseError>>, LeaseError> {
        let mut out = Vec::new();
        let mut obsolete = Vec::new();
        self.section(|section| {
            let answers: Vec<_> = requests
                .iter()
                .map(|request| self.claim_one(section, request))
                .collect();
            let granted = answers.iter().any(Result::is_ok);
            out = answers;
            Ok(granted)
        })
        .inspect_err(|_| {
            for claimed in out.iter().flatten() {
                live::remove(&self.state_dir, &claimed.lease.lease_id);
            }
        })?;
        for claimed in out.iter().flatten() {
            obsolete.extend(claimed.replaced.iter());
            obsolete.extend(claimed.reclaimed.iter().map(|record| &record.lease_id));
        }
        for id in obsolete {
            live::remove(&self.state_dir, id);
        }
        Ok(out)
    }

    fn claim_one(
        &self,
        section: &mut Section<'_>,
        request: &ClaimRequest,
    ) -> Result<Claimed, LeaseError> {
        let moment = Rc::clone(&section.moment);
        let grant = section
            .table
            .decide(request, &moment, &mut |record| self.is_locked(record))?;
        let id = self.new_id(&moment)?;
        // Held before it is published: nobody ever sees an entry that looks dead.
        let lock = Lock::shared(&live::path(&self.state_dir, &id))?;
        let granted = section.table.grant(request, &grant, id.clone(), &moment);
        let Granted {
            lease,
            replaced,
            reclaimed,
        } = granted.map_err(|error| LeaseError::Corrupt {
            path: live::path(&self.state_dir, &id),
            why: error.to_string(),
        })?;
        Ok(Claimed {
            held: LeaseHold::new(id, lock),
            lease,
            replaced,
            reclaimed,
        })
    }

    /// Takes over a lease that a runner has kept alive: this process holds it too and owns it.
    ///
    /// # Errors
    /// [`LeaseError::Gone`], [`LeaseError::Stale`].
    pub fn adopt(&self, id: &LeaseId, epoch: u64, owner: &Holder) -> Result<LeaseHold, LeaseError> {
        let mut hold = None;
        self.section(|section| {
            let boot_id = section.moment.boot_id.clone();
            section.table.change(id, epoch, |record| {
                if record.holder.boot_id != boot_id {
                    return Err(LeaseError::Gone { lease: id.clone() });
                }
                record.holder = owner.clone();
                record.status = LeaseStatus::Active;
                Ok(())
            })?;
            hold = Some(Lock::shared(&live::path(&self.state_dir, id))?);
            Ok(true)
        })?;
        let lock = hold.ok_or_else(|| LeaseError::Gone { lease: id.clone() })?;
        Ok(LeaseHold::new(id.clone(), lock))
    }

    /// Ends a lease, by its owner. The caller drops its [`LeaseHold`] before or after.
    ///
    /// # Errors
    /// [`LeaseError::Stale`] when the epoch is another: then it is somebody else's lease.
    pub fn release(&self, id: &LeaseId, epoch: u64) -> Result<Released, LeaseError> {
        self.release_if(id, |record| check_epoch(record, epoch))
    }

    /// Ends a lease that no process holds: the verb for people and scripts.
    ///
    /// # Errors
    /// [`LeaseError::Held`] when a process lives that holds it.
    pub fn release_unheld(&self, id: &LeaseId) -> Result<Released, LeaseError> {
        self.release_if(id, |record| {
            if !self.is_locked(record)? {
                return Ok(());
            }
            Err(LeaseError::Held {
                lease: id.clone(),
                task: record.task_id.clone(),
                pid: record.holder.pid,
            })
        })
    }

    fn release_if(
        &self,
        id: &LeaseId,
        check: impl FnOnce(&LeaseRecord) -> Result<(), LeaseError>,
    ) -> Result<Released, LeaseError> {
        let mut released = Released::Before;
        self.section(|section| {
            let Some(record) = section.table.find(id) else {
                return Ok(false);
            };
            check(record)?;
            if let Some(record) = section.table.remove(id) {
                released = Released::Now(record);
            }
            Ok(true)
        })?;
        live::remove(&self.state_dir, id);
        Ok(released)
    }

    /// Gives a claim with a TTL more time from now. Never creates one, never wakes an expired one
    /// (behaviour 96).
    ///
    /// # Errors
    /// [`LeaseError::Gone`], [`LeaseError::Stale`].
    pub fn renew(
        &self,
        id: &LeaseId,
        epoch: u64,
        ttl: Duration,
    ) -> Result<LeaseRecord, LeaseError> {
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        self.change(id, epoch, |record, moment| {
            if !unexpired(record, moment) && !self.is_locked(record)? {
                return Err(LeaseError::Gone { lease: id.clone() });
            }
            record.expires_boot_ms = Some(moment.boot_ms().saturating_add(ttl_ms));
            record.expires_at = Some(later(moment.wall, ttl_ms));
            Ok(())
        })
    }

    /// Marks leases whose owner died while a runner holds on, so that people see what recovers.
    /// Answers the marked ones.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn mark_recovering(
        &self,
        owner_lives: &dyn Fn(&Holder) -> bool,
    ) -> Result<Vec<LeaseRecord>, LeaseError> {
        let mut marked = Vec::new();
        self.section(|section| {
            let orphans: Vec<LeaseRecord> = section
                .table
                .records()
                .filter(|record| {
                    record.status == LeaseStatus::Active && !owner_lives(&record.holder)
                })
                .cloned()
                .collect();
            for record in orphans {
                if self.is_locked(&record)? {
                    marked.push(section.table.change(
                        &record.lease_id,
                        record.epoch,
                        |record| {
                            record.status = LeaseStatus::Recovering;
                            Ok(())
                        },
                    )?);
                }
            }
            Ok(!marked.is_empty())
        })?;
        Ok(marked)
    }

    /// Removes every dead lease and every `.live` file without an entry; at start, and when idle.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn reclaim_dead(&self) -> Result<Vec<LeaseRecord>, LeaseError> {
        let mut dead = Vec::new();
        self.section(|section| {
            let moment = Rc::clone(&section.moment);
            dead = section
                .table
                .remove_dead(&moment, &mut |record| self.is_locked(record))?;
            let gone: HashSet<&str> = dead.iter().map(|record| record.lease_id.as_str()).collect();
            let mut known: HashSet<&str> = section
                .table
                .records()
                .map(|r| r.lease_id.as_str())
                .collect();
            known.extend(gone);
            live::sweep(&self.state_dir, &known)?;
            Ok(!dead.is_empty())
        })?;
        for record in &dead {
            live::remove(&self.state_dir, &record.lease_id);
        }
        Ok(dead)
    }

    /// All leases, oldest first, and whether each lives. Never waits for a claimer; while one is in
    /// its section, life is judged by the claimer's process alone.
    #[must_use]
    pub fn list(&self) -> Vec<LeaseView> {
        let section = Lock::try_exclusive(&lock_path(&self.state_dir))
            .ok()
            .flatten();
        let moment = Moment::now(&self.clock);
        read_leases(&self.state_dir)
            .leases
            .into_iter()
            .map(|record| {
                let this_boot = record.holder.boot_id == moment.boot_id;
                let held = match &section {
                    Some(_) => self.is_locked(&record).unwrap_or(true),
                    None => Path::new("/proc")
                        .join(record.holder.pid.to_string())
                        .exists(),
                };
                let alive = this_boot && (unexpired(&record, &moment) || held);
                LeaseView { record, alive }
            })
            .collect()
    }

    fn change(
        &self,
        id: &LeaseId,
        epoch: u64,
        change: impl FnOnce(&mut LeaseRecord, &Moment) -> Result<(), LeaseError>,
    ) -> Result<LeaseRecord, LeaseError> {
        let mut changed = None;
        self.section(|section| {
            let moment = Rc::clone(&section.moment);
            changed = Some(
                section
                    .table
                    .change(id, epoch, |record| change(record, &moment))?,
            );
            Ok(true)
        })?;
        changed.ok_or_else(|| LeaseError::Gone { lease: id.clone() })
    }

    /// One section; it writes when the body answers true.
    fn section(
        &self,
        body: impl FnOnce(&mut Section<'_>) -> Result<bool, LeaseError>,
    ) -> Result<(), LeaseError> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let floor = self.epoch_floor.load(Ordering::Relaxed);
        let mut section = Section::enter(&self.state_dir, &self.clock, floor, &mut cache)?;
        if body(&mut section)? {
            section.commit()?;
        } else {
            section.leave();
        }
        Ok(())
    }

    fn is_locked(&self, record: &LeaseRecord) -> Result<bool, LeaseError> {
        live::is_locked(&self.state_dir, &record.lease_id)
    }

    fn new_id(&self, moment: &Moment) -> Result<LeaseId, LeaseError> {
        let millis = u64::try_from(moment.wall.as_millis()).unwrap_or_default();
        let text = ulid::Ulid::from_datetime(std::time::UNIX_EPOCH + Duration::from_millis(millis))
            .to_string();
        LeaseId::new(&text).map_err(|error| LeaseError::Corrupt {
            path: self.state_dir.clone(),
            why: error.to_string(),
        })
    }
}
