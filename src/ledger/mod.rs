//! The ledger: facts, their durable log, the state that follows from them.

mod fact;
mod history;
mod state;

pub use fact::{Fact, FactBody, LoopSettings, NewFact};
pub use state::{Blocked, Captured, InFlight, LedgerState, RunProgress, WorkerProgress};
