//! Everything that can reach the daemon's loop: one closed list.

use crate::api::{Reply, Request};
use crate::engine::{Event, Finish};
use crate::ledger::LedgerError;
use crate::runner::{ExitReport, RunnerEvent};
use crate::types::RunId;
use std::path::PathBuf;
use tokio::sync::oneshot;

/// Everything that reaches the loop.
pub(super) enum Input {
    /// For the core.
    Event(Event),
    /// From a runner.
    Runner(RunnerEvent),
    /// A dead runner's tree is gone; with the end that it could still write.
    Swept(RunId, Option<Box<ExitReport>>),
    /// From a client; the answer waits for what is durable.
    Request(Request, oneshot::Sender<Reply>),
    /// Task files that are not valid, for `list` and `status`.
    Malformed(Vec<(PathBuf, String)>),
    /// The ledger is latched.
    LedgerFailed(LedgerError),
    /// The loop's last word is durable.
    Finished(Finish),
}
