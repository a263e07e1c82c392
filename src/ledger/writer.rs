//! The thread that owns the ledger's end: group commit, latch, publication, view (style §3.3).
//!
//! One batch at a time: what arrives while a sync runs is the next batch. Nothing is answered, published
//! or shown before it is durable. The first error is the last thing that happens to the disk: every
//! later append answers it.

use super::append::{Appender, Entry};
use super::error::LedgerError;
use super::fact::{Fact, NewFact};
use super::handle::{Command, Shared};
use super::inbox::{self, BATCH_FACTS_MAX, Taken};
use super::state::LedgerState;
use super::view::{self, DaemonInfo};
use crate::fsx::{self, disk::Disk};
use crate::types::{TaskId, Timestamp};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;

/// The view is written at most this often while facts flow.
const VIEW_EVERY: Duration = Duration::from_millis(50);
const VIEW_FILE: &str = "auto_loop_state.json";

type Reply = oneshot::Sender<Result<u64, LedgerError>>;

pub(super) struct Writer {
    pub(super) state_dir: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) appender: Appender,
    pub(super) taken: Taken,
    pub(super) state: LedgerState,
    pub(super) daemon: DaemonInfo,
    pub(super) next_task: Option<TaskId>,
    pub(super) shared: Arc<Shared>,
    pub(super) latched: Option<LedgerError>,
    /// When the view that is due was last written; none when it is as the facts are.
    pub(super) view_dirty: bool,
    pub(super) view_written: Option<Instant>,
}

/// Appends that become durable together.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    /// Each caller with the number of entries up to its last one.
    waiting: Vec<(u64, Reply)>,
}

impl Batch {
    fn push(&mut self, facts: Vec<NewFact>, reply: Reply) {
        self.entries
            .extend(facts.into_iter().map(|fact| (fact, None)));
        let upto = u64::try_from(self.entries.len()).unwrap_or(u64::MAX);
        self.waiting.push((upto, reply));
    }
}

impl Writer {
    /// Works until it is closed or nobody can send any more; answers the latched error, if any.
    pub(super) fn run(mut self, commands: &Receiver<Command>) -> Result<(), LedgerError> {
        let mut next = None;
        loop {
            let command = match next.take() {
                Some(command) => command,
                None => match self.receive(commands) {
                    Ok(command) => command,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => break,
                },
            };
            match command {
                Command::Append(facts, reply) => next = self.gather(facts, reply, commands),
                Command::NextTask(task) => {
                    self.view_dirty |= self.next_task != task;
                    self.next_task = task;
                }
                Command::Ingest => self.ingest(),
                Command::Close => break,
            }
        }
        self.write_view();
        self.shared.hush();
        self.latched.map_or(Ok(()), Err)
    }

    /// The next command; writes the view when it is due.
    fn receive(&mut self, commands: &Receiver<Command>) -> Result<Command, RecvTimeoutError> {
        if !self.view_dirty {
            return commands.recv().map_err(|_| RecvTimeoutError::Disconnected);
        }
        let since = self.view_written.map_or(VIEW_EVERY, |at| at.elapsed());
        let wait = VIEW_EVERY.saturating_sub(since);
        let waited = if wait.is_zero() {
            Err(RecvTimeoutError::Timeout)
        } else {
            commands.recv_timeout(wait)
        };
        if matches!(waited, Err(RecvTimeoutError::Timeout)) {
            self.write_view();
        }
        waited
    }

    /// Takes what else is queued into the batch and commits it; gives the command that ended it.
    fn gather(
        &mut self,
        facts: Vec<NewFact>,
        reply: Reply,
        commands: &Receiver<Command>,
    ) -> Option<Command> {
        let (mut batch, mut next) = (Batch::default(), None);
        batch.push(facts, reply);
        while batch.entries.len() < BATCH_FACTS_MAX {
            match commands.try_recv() {
                Ok(Command::Append(facts, reply)) => batch.push(facts, reply),
                Ok(other) => {
                    next = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        self.commit(batch);
        next
    }

    fn commit(&mut self, batch: Batch) {
        let before = self.appender.seq();
        let done = match &self.latched {
            Some(error) => Err(error.clone()),
            None => self.appender.append(batch.entries),
        };
        match done {
            Ok(facts) => {
                self.publish(facts);
                for (upto, reply) in batch.waiting {
                    // A caller that went away wanted no answer.
                    let _ = reply.send(Ok(before + upto));
                }
            }
            Err(error) => {
                for (_, reply) in batch.waiting {
                    let _ = reply.send(Err(error.clone()));
                }
                self.latch(error);
            }
        }
    }

    fn latch(&mut self, error: LedgerError) {
        if self.latched.is_none() {
            tracing::error!(%error, "the ledger cannot be written");
            self.latched = Some(error);
        }
    }

    fn publish(&mut self, facts: Vec<Fact>) {
        for fact in facts {
            self.state.apply(&fact);
            self.shared.publish(fact);
        }
        self.state.set_segment(self.appender.segment());
        self.shared
            .seq
            .store(self.state.last_seq(), Ordering::Release);
        self.view_dirty = true;
    }

    fn ingest(&mut self) {
        if self.latched.is_some() {
            return;
        }
        let mut arrived = Vec::new();
        let (disk, taken) = (Arc::clone(&self.disk), &mut self.taken);
        let left = inbox::ingest(
            &self.state_dir,
            &disk,
            taken,
            &mut self.appender,
            &mut |facts| {
                arrived.push(facts);
            },
        );
        arrived.into_iter().for_each(|facts| self.publish(facts));
        match left {
            Ok(left) => left.iter().for_each(|note| tracing::warn!("{note}")),
            Err(error) => self.latch(error),
        }
    }

    /// The view is derived: when it cannot be written, the ledger goes on.
    fn write_view(&mut self) {
        let view = self
            .state
            .view(wall(), Some(&self.daemon), self.next_task.as_ref());
        let path = self.state_dir.join(VIEW_FILE);
        let written = view::bytes(&view)
            .map_err(LedgerError::from)
            .and_then(|bytes| Ok(fsx::replace_cached(&path, &bytes)?));
        if let Err(error) = written {
            tracing::warn!(%error, "{VIEW_FILE} is not up to date");
        }
        self.view_dirty = false;
        self.view_written = Some(Instant::now());
    }
}

fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX));
    Timestamp::from_millis(millis)
}
