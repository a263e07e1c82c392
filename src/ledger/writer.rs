//! The one thread that writes the ledger: gathers what is queued, one write, one sync, then tells.

use super::error::LedgerError;
use super::fact::{Fact, NewFact};
use super::log::Batch;
use super::recovery::{Ledger, RecoveryNote};
use super::view::{DaemonInfo, VIEW_FILE, ViewContext, render};
use crate::types::{TaskId, Timestamp};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{broadcast, oneshot};

/// While facts flow the view is rewritten at most this often (design §4).
const VIEW_INTERVAL: Duration = Duration::from_millis(50);
/// After a view could not be written the next try is this much later: a full disk is a state.
const VIEW_RETRY: Duration = Duration::from_secs(1);
/// Facts that a slow subscriber may be behind before it has to read the files.
const SUBSCRIBER_LAG: usize = 4_096;

/// What the view says of the one who keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ViewSettings {
    /// The daemon; null in the view when none.
    pub daemon: Option<DaemonInfo>,
}

type Reply = oneshot::Sender<Result<u64, LedgerError>>;

#[derive(Debug)]
enum Command {
    Append(Vec<NewFact>, Reply),
    FlushView(Reply),
    Ingest(Reply),
    NextTask(Option<TaskId>),
    Close(Reply),
}

/// Sends to the writer. Clones send to the same one; when all are gone it closes by itself.
#[derive(Debug, Clone)]
pub struct LedgerHandle {
    // Unbounded: every caller waits for the answer before it acts, so at most a few facts per run,
    // task and client are queued, and a bounded send could block the daemon's event loop.
    commands: Sender<Command>,
    facts: broadcast::Sender<Arc<Fact>>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// An answer that is on its way: the last sequence number once the facts are durable.
#[derive(Debug)]
#[must_use = "facts are durable only when this is done"]
pub struct Pending(oneshot::Receiver<Result<u64, LedgerError>>);

impl Pending {
    /// Blocks until the answer is there. Not for async code (it panics there): await instead.
    ///
    /// # Errors
    /// [`LedgerError::Disk`] when the disk refused, now or earlier; [`LedgerError::Closed`].
    pub fn wait(self) -> Result<u64, LedgerError> {
        self.0.blocking_recv().unwrap_or(Err(LedgerError::Closed))
    }
}

impl Future for Pending {
    type Output = Result<u64, LedgerError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|answer| answer.unwrap_or(Err(LedgerError::Closed)))
    }
}

impl LedgerHandle {
    /// Queues facts, which get consecutive sequence numbers. They are durable, applied to the view
    /// and published when the answer comes, and only then may anybody act on them (P3).
    ///
    /// The answer is the last one's sequence number. After an error they may be durable or not.
    pub fn append(&self, facts: Vec<NewFact>) -> Pending {
        self.send(|reply| Command::Append(facts, reply))
    }

    /// Rewrites the view now. A view that cannot be written is logged, not an error.
    pub fn flush_view(&self) -> Pending {
        self.send(Command::FlushView)
    }

    /// Takes in the inbox files whose process is done or dead.
    pub fn ingest_inbox(&self) -> Pending {
        self.send(Command::Ingest)
    }

    /// What the view shows as `next_task_id`; null until somebody says it.
    pub fn set_next_task(&self, task: Option<TaskId>) {
        // A closed writer shows nothing any more.
        drop(self.commands.send(Command::NextTask(task)));
    }

    /// Every fact from now on, each after it is durable. A receiver that lags by more than 4,096 is
    /// told so and reads the files from its last sequence number on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Fact>> {
        self.facts.subscribe()
    }

    /// Writes what is queued and the last view (without a daemon) and ends the thread. Blocks for
    /// that time. A second call does nothing.
    ///
    /// # Errors
    /// The first error of the disk, when there was one.
    pub fn close(&self) -> Result<(), LedgerError> {
        let answer = self.send(Command::Close);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(thread) = thread else {
            return Ok(());
        };
        if thread.join().is_err() {
            return Err(LedgerError::Closed);
        }
        // The thread is gone, so the answer is there or never will be.
        let mut answer = answer;
        match answer.0.try_recv() {
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Ok(()),
        }
    }

    fn send(&self, command: impl FnOnce(Reply) -> Command) -> Pending {
        let (reply, answer) = oneshot::channel();
        // With the writer gone the reply is dropped here, and the answer is `Closed`.
        drop(self.commands.send(command(reply)));
        Pending(answer)
    }
}

pub(super) fn wall_clock() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

pub(super) fn start(ledger: Ledger, settings: ViewSettings) -> LedgerHandle {
    let (commands, queue) = channel();
    let (facts, _) = broadcast::channel(SUBSCRIBER_LAG);
    let writer = Writer {
        context: ViewContext {
            daemon: settings.daemon,
            ..ViewContext::default()
        },
        ledger,
        queue,
        facts: facts.clone(),
        // A view that was not made from the loaded state is never kept.
        view_due: Some(Instant::now()),
        view_written: None,
        latched: None,
    };
    let thread = std::thread::Builder::new()
        .name("ledger".to_owned())
        .spawn(move || writer.run());
    // Without a thread the queue's end is dropped, and every answer is `Closed`.
    let thread = thread
        .inspect_err(|error| tracing::error!(%error, "cannot start the ledger's thread"))
        .ok();
    LedgerHandle {
        commands,
        facts,
        thread: Arc::new(Mutex::new(thread)),
    }
}

struct Writer {
    ledger: Ledger,
    queue: Receiver<Command>,
    facts: broadcast::Sender<Arc<Fact>>,
    context: ViewContext,
    view_due: Option<Instant>,
    view_written: Option<Instant>,
    /// The first error of the disk. Never retried: after a failed sync the kernel may report
    /// success for pages that it dropped.
    latched: Option<LedgerError>,
}

impl Writer {
    fn run(mut self) {
        let mut next = None;
        loop {
            let command = match next.take() {
                Some(command) => Ok(command),
                None => self.receive(),
            };
            match command {
                Ok(Command::Append(facts, reply)) => next = self.append(facts, reply),
                Ok(Command::FlushView(reply)) => {
                    self.write_view();
                    self.answer(reply);
                }
                Ok(Command::Ingest(reply)) => {
                    self.ingest();
                    self.answer(reply);
                }
                Ok(Command::NextTask(task)) => {
                    if self.context.next_task != task {
                        self.context.next_task = task;
                        self.view_changed();
                    }
                }
                Ok(Command::Close(reply)) => {
                    self.write_last_view();
                    self.answer(reply);
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.write_last_view(),
            }
            if self.view_due.is_some_and(|due| due <= Instant::now()) {
                self.write_view();
            }
        }
    }

    fn receive(&self) -> Result<Command, RecvTimeoutError> {
        match self.view_due {
            None => self
                .queue
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => self
                .queue
                .recv_timeout(due.saturating_duration_since(Instant::now())),
        }
    }

    fn answer(&self, reply: Reply) {
        let answer = match &self.latched {
            Some(error) => Err(error.clone()),
            None => Ok(self.ledger.log.chain.seq),
        };
        // Nobody has to wait for it.
        drop(reply.send(answer));
    }

    /// Writes these facts and all that are queued behind them; the first other command comes back.
    fn append(&mut self, facts: Vec<NewFact>, reply: Reply) -> Option<Command> {
        let mut batch = self.ledger.log.batch();
        let mut replies = Vec::new();
        push(&mut batch, facts, reply, &mut replies);
        let mut next = None;
        while !batch.is_full(&self.ledger.log.limits) {
            match self.queue.try_recv() {
                Ok(Command::Append(facts, reply)) => push(&mut batch, facts, reply, &mut replies),
                Ok(other) => {
                    next = Some(other);
                    break;
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        let result = match &self.latched {
            Some(error) => Err(error.clone()),
            None => self.ledger.log.commit(batch),
        };
        match result {
            Ok(facts) => {
                self.publish(facts);
                for (reply, seq) in replies {
                    drop(reply.send(Ok(seq)));
                }
                self.rotate_if_full();
            }
            Err(error) => {
                self.latch(&error);
                for (reply, _) in replies {
                    drop(reply.send(Err(error.clone())));
                }
            }
        }
        next
    }

    fn publish(&mut self, facts: Vec<Fact>) {
        if facts.is_empty() {
            return;
        }
        for fact in facts {
            self.ledger.state.apply(&fact);
            if self.facts.receiver_count() > 0 {
                drop(self.facts.send(Arc::new(fact)));
            }
        }
        self.view_changed();
    }

    fn latch(&mut self, error: &LedgerError) {
        if self.latched.is_none() {
            tracing::error!(%error, "the ledger takes no more facts");
            self.latched = Some(error.clone());
        }
    }

    fn rotate_if_full(&mut self) {
        if self.ledger.log.is_segment_full()
            && let Err(error) = self.ledger.log.rotate()
        {
            self.latch(&error);
        }
    }

    fn ingest(&mut self) {
        if self.latched.is_some() {
            return;
        }
        let mut taken = Vec::new();
        let result = self.ledger.log.ingest(&mut |facts| taken.extend(facts));
        self.publish(taken);
        match result {
            Ok(notes) => {
                let warnings: Vec<_> = notes.iter().filter(|note| note.is_loss()).collect();
                self.warn(&warnings);
            }
            Err(error) => self.latch(&error),
        }
    }

    fn warn(&mut self, notes: &[&RecoveryNote]) {
        let at = wall_clock();
        let warnings = notes.iter().map(|note| {
            let text = note.to_string();
            tracing::warn!("{text}");
            let body = super::fact::FactBody::Warning { text };
            (NewFact::new(at, body), None)
        });
        let mut batch = self.ledger.log.batch();
        let result = batch
            .push(warnings)
            .and_then(|_| self.ledger.log.commit(batch));
        match result {
            Ok(facts) => self.publish(facts),
            Err(error) => self.latch(&error),
        }
    }

    /// At once when the last view is old enough, else when it will be.
    fn view_changed(&mut self) {
        if self.view_due.is_none() {
            let now = Instant::now();
            let due = self.view_written.map_or(now, |last| last + VIEW_INTERVAL);
            self.view_due = Some(due.max(now));
        }
    }

    fn write_view(&mut self) {
        self.context.generated_at = wall_clock();
        self.context.segment = self.ledger.log.segment;
        let view = render(&self.ledger.state.view(&self.context));
        let path = self.ledger.log.state_dir.join(VIEW_FILE);
        let now = Instant::now();
        self.view_due = None;
        match self.ledger.log.disk.replace_cached(&path, &view) {
            Ok(()) => self.view_written = Some(now),
            // It is a cache: the old one stays, the facts are safe, and the next try may succeed.
            Err(error) => {
                tracing::warn!(%error, "cannot write the view");
                self.view_due = Some(now + VIEW_RETRY);
            }
        }
    }

    fn write_last_view(&mut self) {
        self.context.daemon = None;
        self.write_view();
    }
}

fn push(batch: &mut Batch, facts: Vec<NewFact>, reply: Reply, replies: &mut Vec<(Reply, u64)>) {
    match batch.push(facts.into_iter().map(|fact| (fact, None))) {
        Ok(seq) => replies.push((reply, seq)),
        Err(error) => drop(reply.send(Err(error))),
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
