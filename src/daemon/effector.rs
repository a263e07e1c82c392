//! Carries effects out, in order: what follows a `Record` waits until those facts are durable (P3).
//!
//! Nothing here blocks: slow effects become tasks that answer with an event.

use super::claims::Claims;
use super::clock::Clock;
use super::input::Input;
use super::launch::Launcher;
use super::progress::Progress;
use super::worktrees::Worktrees;
use crate::api::Reply;
use crate::budget::{BoundedSemaphore, Permit};
use crate::engine::{Effect, Event, Finish};
use crate::ledger::{LedgerError, LedgerHandle, Pending};
use crate::runner::{Pool, StopHow};
use crate::types::RunId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

/// One event's effects, or a reply, in the order in which the core produced them.
pub(super) enum Work {
    /// Effects that wait for the facts of the same event.
    Effects {
        durable: Option<Pending>,
        effects: Vec<Effect>,
    },
    /// An answer that must not overtake the facts it tells of.
    Answer {
        to: oneshot::Sender<Reply>,
        reply: Reply,
    },
}

/// A call's place in the queue for permits, or its permits.
pub(super) enum Place {
    Queued(AbortHandle),
    Granted(
        #[expect(dead_code, reason = "held for its drop, which gives the permits back")] Permit,
    ),
}

pub(super) type Places = Arc<Mutex<HashMap<RunId, Place>>>;

/// What effects are carried out with.
pub(super) struct Effector {
    pub(super) clock: Clock,
    pub(super) semaphore: BoundedSemaphore,
    pub(super) pool: Arc<Pool>,
    pub(super) launcher: Arc<Launcher>,
    pub(super) claims: Arc<Claims>,
    pub(super) worktrees: Arc<Worktrees>,
    pub(super) progress: Arc<Progress>,
    pub(super) inputs: mpsc::UnboundedSender<Input>,
    pub(super) places: Places,
}

impl Effector {
    /// A child of an earlier daemon goes on: its permits are taken, into debt if M has shrunk.
    pub(super) fn adopt(&self, run: &RunId, slots: u32) {
        let permit = self.semaphore.adopt(slots);
        self.lock().insert(run.clone(), Place::Granted(permit));
    }

    /// Works until the loop is finished or the ledger fails.
    pub(super) async fn run(self, mut work: mpsc::UnboundedReceiver<Work>) {
        while let Some(item) = work.recv().await {
            match item {
                Work::Answer { to, reply } => drop(to.send(reply)),
                Work::Effects { durable, effects } => {
                    if let Some(pending) = durable
                        && let Err(error) = pending.await
                    {
                        self.send(Input::LedgerFailed(error));
                        return;
                    }
                    for effect in effects {
                        if let Some(finish) = self.carry_out(effect) {
                            self.send(Input::Finished(finish));
                            return;
                        }
                    }
                }
            }
        }
    }

    fn send(&self, input: Input) {
        // The loop is gone only when the daemon is: nobody is left to tell.
        drop(self.inputs.send(input));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn carry_out(&self, effect: Effect) -> Option<Finish> {
        match effect {
            Effect::Record(_) => {
                debug_assert!(false, "facts are taken out before effects are queued");
            }
            Effect::Claim {
                task,
                previous,
                base,
            } => self.claims.claim(task, previous, base),
            Effect::Release { lease_id, epoch } => self.claims.release(lease_id, epoch),
            Effect::PrepareWorktree {
                task,
                worker,
                base,
                reuse,
            } => {
                self.worktrees.prepare(task, worker, base, reuse);
            }
            Effect::AcquireSlot { run, slots } => self.acquire(run, slots),
            Effect::ForgetSlot { run } => drop(self.forget(&run)),
            Effect::Launch(plan) => self.launcher.launch(*plan),
            Effect::StopRun { run, kill } => {
                let how = if kill { StopHow::Kill } else { StopHow::Term };
                if !self.pool.stop(&run, how) {
                    self.launcher.cancel(&run);
                }
            }
            Effect::Settle { run } => {
                self.pool.settled(&run);
                drop(self.forget(&run));
            }
            Effect::Capture {
                task,
                worker,
                base,
                worktree,
                run,
                passed,
            } => {
                self.worktrees
                    .capture(task, worker, base, worktree, run, passed);
            }
            Effect::SetTimer { at, key } => {
                let (inputs, instant) = (self.inputs.clone(), self.clock.instant(at));
                tokio::spawn(async move {
                    tokio::time::sleep_until(instant.into()).await;
                    drop(inputs.send(Input::Event(Event::Timer(key))));
                });
            }
            Effect::Say(line) => self.progress.say(&line),
            Effect::Finish(finish) => return Some(finish),
        }
        None
    }

    fn acquire(&self, run: RunId, slots: u32) {
        let (semaphore, places, inputs) = (
            self.semaphore.clone(),
            Arc::clone(&self.places),
            self.inputs.clone(),
        );
        // The map is locked over the spawn, so that the task finds its place even if it wins at once.
        let mut map = self.lock();
        let key = run.clone();
        let task = tokio::spawn(async move {
            let Ok(permit) = semaphore.acquire(slots, None).await else {
                return;
            };
            let mut map = places.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place @ Place::Queued(_)) = map.get_mut(&run) {
                *place = Place::Granted(permit);
                drop(map);
                drop(inputs.send(Input::Event(Event::SlotGranted { run })));
            }
        });
        map.insert(key, Place::Queued(task.abort_handle()));
    }

    fn forget(&self, run: &RunId) -> Option<Place> {
        let place = self.lock().remove(run);
        if let Some(Place::Queued(task)) = &place {
            task.abort();
        }
        place
    }
}

/// Takes the facts out of an event's effects and hands them to the ledger.
pub(super) fn split(ledger: &LedgerHandle, mut effects: Vec<Effect>) -> Work {
    let durable = match effects.first_mut() {
        Some(Effect::Record(facts)) => {
            let facts = std::mem::take(facts);
            effects.remove(0);
            Some(ledger.append(facts))
        }
        _ => None,
    };
    Work::Effects { durable, effects }
}

/// What people are told when the ledger cannot be written.
pub(super) fn ledger_failed(error: &LedgerError) -> String {
    format!(
        "the ledger cannot be written: {error}; nothing acknowledged is lost and running children go on; \
         mend the cause (make room, mount writable) and run `flockd start` again"
    )
}
