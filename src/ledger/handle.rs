//! What the rest of the daemon holds of the ledger: appending, following, closing.

use super::error::LedgerError;
use super::fact::{Fact, NewFact};
use super::pending::Pending;
use super::recovery::Ledger;
use super::view::DaemonInfo;
use super::writer::Writer;
use crate::types::{TaskId, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{broadcast, oneshot};

/// Facts that a follower may be behind before it is told that it lost some.
const FOLLOW_FACTS_MAX: usize = 4_096;

pub(super) enum Command {
    Append(Vec<NewFact>, oneshot::Sender<Result<u64, LedgerError>>),
    NextTask(Option<TaskId>),
    Ingest,
    Close,
}

/// What the handles and the writer share.
pub(super) struct Shared {
    pub(super) seq: AtomicU64,
    /// Gone once the writer is: followers see the end.
    live: Mutex<Option<broadcast::Sender<Arc<Fact>>>>,
    thread: Mutex<Option<JoinHandle<Result<(), LedgerError>>>>,
}

impl Shared {
    pub(super) fn publish(&self, fact: Fact) {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = live.as_ref() {
            // Nobody follows: no error.
            let _ = live.send(Arc::new(fact));
        }
    }

    pub(super) fn hush(&self) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The running ledger. Cheap to clone; the writer ends with [`LedgerHandle::close`] or the last clone.
#[derive(Clone)]
pub struct LedgerHandle {
    commands: Sender<Command>,
    shared: Arc<Shared>,
}

impl Ledger {
    /// Starts the writer's thread and writes the view.
    ///
    /// # Errors
    /// [`LedgerError::Thread`].
    pub fn start(self, started_at: Timestamp) -> Result<LedgerHandle, LedgerError> {
        let (commands, inbox) = channel();
        let shared = Arc::new(Shared {
            seq: AtomicU64::new(self.state.last_seq()),
            live: Mutex::new(Some(broadcast::channel(FOLLOW_FACTS_MAX).0)),
            thread: Mutex::new(None),
        });
        let writer = Writer {
            state_dir: self.state_dir,
            disk: self.disk,
            appender: self.appender,
            taken: self.taken,
            state: self.state,
            daemon: DaemonInfo {
                pid: std::process::id(),
                started_at,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            next_task: None,
            shared: Arc::clone(&shared),
            latched: None,
            view_dirty: true,
            view_written: None,
        };
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || writer.run(&inbox))
            .map_err(|e| LedgerError::Thread(Arc::new(e)))?;
        *shared.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(LedgerHandle { commands, shared })
    }
}

impl LedgerHandle {
    /// Hands facts over, in order, all or none of them together; never blocks.
    pub fn append(&self, facts: Vec<NewFact>) -> Pending {
        let (reply, pending) = oneshot::channel();
        // A closed ledger drops the reply, which answers `Closed`.
        drop(self.commands.send(Command::Append(facts, reply)));
        Pending(pending)
    }

    /// What the view says is next.
    pub fn set_next_task(&self, task: Option<TaskId>) {
        drop(self.commands.send(Command::NextTask(task)));
    }

    /// Facts from now on, each after it is durable.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Fact>> {
        let live = self
            .shared
            .live
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match live.as_ref() {
            Some(live) => live.subscribe(),
            None => broadcast::channel(1).1,
        }
    }

    /// The number of the last durable fact.
    #[must_use]
    pub fn durable_seq(&self) -> u64 {
        self.shared.seq.load(Ordering::Acquire)
    }

    /// Takes in what processes that are gone left in the inbox.
    pub fn ingest_inbox(&self) {
        drop(self.commands.send(Command::Ingest));
    }

    /// Finishes what was handed over before, writes the last view and joins the thread. Blocks.
    ///
    /// # Errors
    /// The error that latched the ledger.
    pub fn close(&self) -> Result<(), LedgerError> {
        drop(self.commands.send(Command::Close));
        let mut slot = self
            .shared
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let thread = slot.take();
        drop(slot);
        match thread.map(JoinHandle::join) {
            Some(Ok(closed)) => closed,
            Some(Err(_)) => Err(LedgerError::Closed),
            None => Ok(()),
        }
    }
}
