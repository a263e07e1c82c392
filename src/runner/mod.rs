//! The per-child process: takes slots, owns the child's tree, enforces bounds, writes the end. No ledger.

mod active;
mod bounds;
mod connection;
mod exit;
mod protocol;
mod run;
mod serve;
mod settle;
mod spec;
mod start;
mod tree_end;

pub use exit::{ExitReport, outcome_of, read_exit, run_dir};
pub use protocol::{CurrentRun, Message, PROTOCOL, Request, StopHow, decode, encode};
pub use run::StopReason;
pub use serve::{serve, socket_path};
pub use spec::{RunInput, RunLimits, RunSpec};
