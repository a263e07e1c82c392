//! Every file that flockd writes, replaces, removes, locks or watches; knows nothing of what is in them.

pub mod disk;
mod disk_crash;
mod disk_cut;
mod disk_fault;
mod error;
mod files;
mod guard;
pub mod lock;
mod replace;
mod runtime_dir;
pub mod watch;

pub use error::FsError;
pub use files::{
    create_dir_all, free_bytes, open_input, open_output, punch_hole, read, remove, set_private,
    sync_dir, sync_file, sync_file_system, truncate,
};
pub use guard::{check_lockable, refuse_symlink};
pub use lock::Lock;
pub use replace::{create_new_durable, replace_cached, replace_durable, sweep_temps};
pub use runtime_dir::runtime_dir;
pub use watch::{Change, Watch, WatchMask};
