//! The ledger: facts, their durable log, and the state and the view that follow from them.

mod apply;
mod ask;
mod codec;
mod error;
mod fact;
mod inbox;
mod log;
mod ordered;
mod progress;
mod reader;
mod recovery;
mod segment;
mod state;
#[cfg(test)]
mod testing;
mod version;
mod view;
mod writer;

pub use ask::replay_read_only;
pub use error::LedgerError;
pub use fact::{Fact, FactBody, LoopSettings, NewFact};
pub use inbox::Inbox;
pub use log::LedgerLimits;
pub use progress::{
    InFlight, OpenRun, RunEnd, RunProgress, RunStart, StageFailure, WorkerCapture, WorkerProgress,
};
pub use reader::{FactReader, Verified, read_facts, verify};
pub use recovery::{Ledger, RecoveryNote};
pub use state::{BlockedInfo, Counts, DeferredInfo, LedgerState, WaitingInfo};
pub use version::ensure_version;
pub use view::{DaemonInfo, ViewContext, render};
pub use writer::{LedgerHandle, Pending, ViewSettings};
