//! The daemon: one loop that turns the world into events and carries out effects.
//!
//! It owns the singleton lock, the ledger's writer, the runners' pool, the permits and the leases of
//! the tasks in flight. It must not decide anything: that is the engine's part.
//!
//! What can fail, and what then happens:
//! - another daemon holds the lock: exit 4, naming it;
//! - the ledger cannot be written: nothing more is acted on, exit 1; children go on under their
//!   runners, and the next daemon takes them over;
//! - `kill -9` at any point: the kernel frees the singleton lock and the leases' live locks that only
//!   this process held; runners keep theirs; the next start reconciles (`reconcile`);
//! - a runner dies: its tree is swept by token before its slot is used again, the run is `lost`;
//! - a client misbehaves: its connection is closed, nothing else.

mod boot;
mod claims;
mod clock;
mod detach;
mod effector;
mod facts;
mod input;
mod launch;
mod looper;
mod parts;
mod progress;
mod reconcile;
mod report;
mod signals;
mod socket;
mod start;
mod watch;
mod worktrees;

pub use boot::{DaemonLock, running_daemon};
pub use start::{StartRequest, start};
