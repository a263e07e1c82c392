//! Leases of the tasks in flight: claimed, taken over, given back. Holds the live locks of this process.

use super::input::Input;
use crate::config::TaskSpec;
use crate::engine::{ClaimRefusal, Conflict, EdgeError, Event, Granted};
use crate::git::Repo;
use crate::lease::{ClaimRequest, Claimed, Holder, LeaseError, LeaseHold, LeaseManager};
use crate::types::LeaseId;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// The daemon's side of the lease table.
pub(super) struct Claims {
    manager: Arc<LeaseManager>,
    repo: Arc<Repo>,
    base: String,
    holder: Holder,
    state_dir: PathBuf,
    holds: Arc<Mutex<HashMap<LeaseId, LeaseHold>>>,
    inputs: mpsc::UnboundedSender<Input>,
}

impl Claims {
    pub(super) fn new(
        manager: Arc<LeaseManager>,
        repo: Arc<Repo>,
        base: String,
        holder: Holder,
        state_dir: PathBuf,
        inputs: mpsc::UnboundedSender<Input>,
    ) -> Self {
        Self {
            manager,
            repo,
            base,
            holder,
            state_dir,
            holds: Arc::default(),
            inputs,
        }
    }

    /// Claims in the background; answers with [`Event::ClaimDecided`].
    pub(super) fn claim(
        self: &Arc<Self>,
        task: Arc<TaskSpec>,
        previous: Option<(LeaseId, u64)>,
        base: Option<String>,
    ) {
        let this = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let id = task.id.clone();
            let result = this.decide(&task, previous, base);
            drop(
                this.inputs
                    .send(Input::Event(Event::ClaimDecided { task: id, result })),
            );
        });
    }

    fn decide(
        &self,
        task: &TaskSpec,
        previous: Option<(LeaseId, u64)>,
        base: Option<String>,
    ) -> Result<Granted, ClaimRefusal> {
        let base = match base {
            Some(base) => base,
            None => self.repo.resolve(&self.base).map_err(|e| {
                ClaimRefusal::Failed(EdgeError {
                    systemic: e.is_systemic(),
                    detail: format!("base {:?}: {e}", self.base),
                })
            })?,
        };
        if let Some((lease_id, epoch)) = previous
            && let Ok(hold) = self.manager.adopt(&lease_id, epoch, &self.holder)
        {
            self.keep(lease_id.clone(), hold);
            return Ok(Granted {
                lease_id,
                epoch,
                base,
                reclaimed: Vec::new(),
            });
        }
        let claimed = self.claim_paths(task).map_err(refusal)?;
        let (lease_id, epoch) = (claimed.lease.lease_id.clone(), claimed.lease.epoch);
        let reclaimed = claimed
            .reclaimed
            .iter()
            .map(|r| (r.lease_id.clone(), r.epoch, r.task_id.to_string()))
            .collect();
        self.keep(lease_id.clone(), claimed.held);
        if !claimed.reclaimed.is_empty()
            && let Err(error) = crate::runner::sweep_dead_slots(&self.state_dir)
        {
            tracing::warn!(%error, "what a dead holder left may still run");
        }
        Ok(Granted {
            lease_id,
            epoch,
            base,
            reclaimed,
        })
    }

    fn claim_paths(&self, task: &TaskSpec) -> Result<Claimed, LeaseError> {
        self.manager.claim_disjoint(&ClaimRequest {
            task: task.id.clone(),
            paths: task.claims.clone(),
            holder: self.holder.clone(),
            run_ids: Vec::new(),
            ttl: None,
        })
    }

    fn keep(&self, id: LeaseId, hold: LeaseHold) {
        self.holds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, hold);
    }

    /// Gives a lease back in the background. A failure leaves a lease without a living holder, which
    /// the next claim removes.
    pub(super) fn release(self: &Arc<Self>, id: LeaseId, epoch: u64) {
        let this = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let hold = this
                .holds
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&id);
            if let Err(error) = this.manager.release(&id, epoch) {
                tracing::warn!(lease = %id, %error, "a lease could not be given back");
            }
            drop(hold);
            drop(this.inputs.send(Input::Event(Event::LeasesChanged)));
        });
    }
}

fn refusal(error: LeaseError) -> ClaimRefusal {
    match error {
        LeaseError::Conflict { task, path, .. } => ClaimRefusal::Conflict(Conflict {
            task: task.to_string(),
            path: path.as_str().to_owned(),
        }),
        other => ClaimRefusal::Failed(EdgeError {
            systemic: true,
            detail: format!("leases: {other}"),
        }),
    }
}
