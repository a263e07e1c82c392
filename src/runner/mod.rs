//! The per-child process: takes slots, owns the child's tree, enforces bounds, writes the end. No ledger.

mod active;
mod bounds;
mod connection;
mod exit;
mod foreground;
mod link;
mod owner;
mod pool;
mod protocol;
mod run;
mod serve;
mod settle;
mod spec;
mod start;
mod tree_end;

pub use exit::{ExitReport, outcome_of, read_exit, run_dir};
pub use foreground::{
    ForegroundEnd, ForegroundError, ForegroundEvent, ForegroundSpec, client_ceiling, foreground,
    is_nested,
};
pub use owner::{ClientHold, client_lives, hold_as_client, sweep_dead_slots};
pub use pool::{Adopted, Pool, PoolError, PoolSettings, RunnerEvent};
pub use protocol::{CurrentRun, Message, PROTOCOL, Request, StopHow, decode, encode};
pub use run::StopReason;
pub use serve::{serve, socket_path};
pub use spec::{RunInput, RunLimits, RunSpec};
