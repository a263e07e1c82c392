//! Processes: identity, spawn, groups, trees, signals, waiting. The only module that starts one; knows no run.

pub mod command;
mod detach;
mod identity;
mod limits;
mod reap;
mod signal;
mod spawn;
mod sweep;
mod tree;

pub use detach::spawn_detached;
pub use identity::{
    Identity, ProcessStat, boot_id, boot_millis, hostname, identity_of, own_identity, own_uid,
    stat_of,
};
pub use limits::{close_inherited, raise_fd_limit};
pub use reap::{
    Arrived, ChildUsage, ExitStatus, Reaped, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM,
    SignalQueue, SignalSet, become_subreaper, children_usage, reap, reap_pid, wait_readable,
    without_stop,
};
pub use signal::{Sent, open_process, signal, signal_group};
pub use spawn::{
    ChildFiles, ChildSpec, Dispositions, Placement, SpawnError, SpawnErrorKind, spawn_child,
};
pub use sweep::{SweepReport, TOKEN_VARIABLE, carriers, sweep_token};
pub use tree::{all_processes, descendants, peak_rss_kib, tree_cpu_millis};
