//! The daemon's fair counter of permits: who may ask a runner next. Knows no file and no process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Why a permit was not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// The caller's deadline passed first.
    #[error("no slot became free within {} ms", waited.as_millis())]
    Deadline {
        /// The bound the caller gave.
        waited: Duration,
    },
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    weight: u32,
    grant: oneshot::Sender<Permit>,
}

#[derive(Debug)]
struct State {
    total: u32,
    used: u32,
    next_id: u64,
    queue: VecDeque<Waiter>,
}

/// M permits, given out strictly in the order of asking (a heavy one at the head is not overtaken).
///
/// A permit comes back by being dropped and in no other way, so nothing can be returned twice. Clones
/// share the same permits.
#[derive(Debug, Clone)]
pub struct BoundedSemaphore {
    state: Arc<Mutex<State>>,
}

/// Some permits; dropping it gives them back.
#[derive(Debug)]
#[must_use = "dropping a permit gives it back"]
pub struct Permit {
    weight: u32,
    state: Arc<Mutex<State>>,
}

impl BoundedSemaphore {
    /// A semaphore of `m` permits, at least one.
    #[must_use]
    pub fn new(m: u32) -> Self {
        let state = State {
            total: m.max(1),
            used: 0,
            next_id: 0,
            queue: VecDeque::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Waits for `weight` permits, clamped to 1..=M. Dropping the future leaves the queue and loses nothing.
    ///
    /// # Errors
    /// [`AcquireError::Deadline`] when the deadline passes first.
    pub async fn acquire(
        &self,
        weight: u32,
        deadline: Option<Duration>,
    ) -> Result<Permit, AcquireError> {
        let (mut place, granted) = self.enqueue(weight);
        let received = match deadline {
            None => granted.await.ok(),
            Some(bound) => match tokio::time::timeout(bound, granted).await {
                Ok(received) => received.ok(),
                Err(_) => return Err(AcquireError::Deadline { waited: bound }),
            },
        };
        // The sender lives in the queue until it grants, and the place in the queue is ours.
        let permit = received.expect("a place in the queue ends by a grant or by its owner");
        place.settled = true;
        Ok(permit)
    }

    /// Takes permits that are free right now and that nobody waits for.
    pub fn try_acquire(&self, weight: u32) -> Option<Permit> {
        let mut state = lock(&self.state);
        let weight = weight.clamp(1, state.total);
        if !state.queue.is_empty() || state.used + weight > state.total {
            return None;
        }
        state.used += weight;
        Some(Permit {
            weight,
            state: Arc::clone(&self.state),
        })
    }

    /// Counts a run that is already alive (taken over from an earlier daemon), over M if it must be.
    pub fn adopt(&self, weight: u32) -> Permit {
        let weight = weight.max(1);
        lock(&self.state).used += weight;
        Permit {
            weight,
            state: Arc::clone(&self.state),
        }
    }

    /// Changes M, at least 1. Fewer takes effect as permits come back.
    pub fn resize(&self, m: u32) {
        lock(&self.state).total = m.max(1);
        grant_waiting(&self.state);
    }

    /// Permits free now; 0 while in debt.
    #[must_use]
    pub fn available(&self) -> u32 {
        let state = lock(&self.state);
        state.total.saturating_sub(state.used)
    }

    /// M.
    #[must_use]
    pub fn total(&self) -> u32 {
        lock(&self.state).total
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        lock(&self.state).queue.len()
    }

    fn enqueue(&self, weight: u32) -> (Place, oneshot::Receiver<Permit>) {
        let (grant, granted) = oneshot::channel();
        let id = {
            let mut state = lock(&self.state);
            let id = state.next_id;
            state.next_id += 1;
            state.queue.push_back(Waiter {
                id,
                weight: weight.max(1),
                grant,
            });
            id
        };
        let place = Place {
            id,
            settled: false,
            state: Arc::clone(&self.state),
        };
        grant_waiting(&self.state);
        (place, granted)
    }
}

impl Permit {
    /// How many permits this is.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.weight
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        {
            let mut state = lock(&self.state);
            state.used = state.used.saturating_sub(self.weight);
        }
        grant_waiting(&self.state);
    }
}

/// A place in the queue; dropping it unsettled leaves the queue.
#[derive(Debug)]
struct Place {
    id: u64,
    settled: bool,
    state: Arc<Mutex<State>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let removed = {
            let mut state = lock(&self.state);
            let at = state.queue.iter().position(|waiter| waiter.id == self.id);
            at.and_then(|at| state.queue.remove(at))
        };
        // A heavy head that gave up may have held back lighter ones behind it.
        if removed.is_some() {
            grant_waiting(&self.state);
        }
    }
}

/// Gives to the head of the queue while it fits. The mutex is not held while a grant is handed over:
/// a receiver that is gone drops its permit, and that takes the mutex again.
fn grant_waiting(shared: &Arc<Mutex<State>>) {
    loop {
        let (waiter, weight) = {
            let mut state = lock(shared);
            let Some(head) = state.queue.front() else {
                return;
            };
            let weight = head.weight.min(state.total);
            if state.used + weight > state.total {
                return;
            }
            let Some(waiter) = state.queue.pop_front() else {
                return;
            };
            state.used += weight;
            (waiter, weight)
        };
        drop(waiter.grant.send(Permit {
            weight,
            state: Arc::clone(shared),
        }));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Every section leaves the counters consistent, so a panic elsewhere in a holder spoils nothing.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
