//! Configuration and task files: reading, merging with the source of every value, checking, and
//! errors with file, line and key. Knows nothing of what a loop does with them.

mod env;
#[cfg(test)]
mod error_tests;
mod init;
mod keys;
mod load;
mod merge;
mod model;
mod nearest;
mod place;
mod resolve;
mod root;
mod schema;
mod show;
mod task_dir;
mod task_file;
#[cfg(test)]
mod task_tests;
#[cfg(test)]
mod tests;
mod tree;
mod validate;
mod value;

pub use env::Environment;
pub use init::{InitFile, KnownAgent, ignore_rules, init_files, installed_agents};
pub use load::{FlagValue, LOCAL_FILE, LoadRequest, Loaded, PROJECT_FILE, load, state_dir_of};
pub use model::{
    AgentConfig, AgentKind, BudgetConfig, Config, GateConfig, GateMode, GuardsConfig, LimitsConfig,
    LoopConfig, Require, RoleConcurrency, RoleConfig, RoleInterrupt, RoleSideEffect, ShipConfig,
    ShipMode, StageConfig, StoreConfig, StoreKind, TaskSpec, TaskState,
};
pub use place::{ConfigError, FileLine, Place, Problem};
pub use root::{RootError, project_root};
pub use schema::schema;
pub use show::ShownValue;
pub use task_dir::{TaskDir, is_task_file, misfit, scan_tasks, task_files};
pub use task_file::{
    TASK_FILE_BYTES_MAX, TaskDraft, TaskFileError, parse_task, read_task, render_task,
};
