//! The ledger: facts, their durable log with one writer, and the state that follows from them. Knows
//! nothing of the loop that records them.

mod append;
mod ask;
mod codec;
mod error;
mod fact;
mod handle;
mod inbox;
mod ordered;
mod pending;
mod progress;
mod reader;
mod recovery;
mod segment;
mod state;
mod version;
mod view;
mod writer;

pub use error::LedgerError;
pub use fact::{Fact, FactBody, LoopSettings, NewFact};
pub use handle::LedgerHandle;
pub use inbox::Inbox;
pub use pending::Pending;
pub use progress::{Blocked, Captured, InFlight, RunProgress, WorkerProgress};
pub use reader::{Verified, read_facts, verify};
pub use recovery::{Ledger, Note, replay};
pub use state::LedgerState;
pub use version::ensure_version;
pub use view::DaemonInfo;
