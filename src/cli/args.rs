//! The grammar of the command line (design §7). No behaviour.

use super::{add, control, doctor, init, lease, ledger, logs, look, queue, run, settings};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Drives a flock of coding-agent CLIs over one git repository under one ceiling.
#[derive(Debug, Parser)]
#[command(
    name = "flockd",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 1 failed or a guard stopped it, 2 usage or invalid input, \
                  3 limit reached, 4 refused, 130 interrupted."
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(super) struct Global {
    /// Run as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(super) directory: Option<PathBuf>,
    /// Where the state is [env: FLOCKD_STATE_DIR]
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) state_dir: Option<PathBuf>,
    /// Override one value of flockd.toml for this command
    #[arg(long = "set", value_name = "KEY=VALUE", global = true)]
    pub(super) set: Vec<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Say more on standard error; twice for debugging
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(super) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write flockd.toml, tasks/ and ignore rules; find installed agents
    Init(init::InitArgs),
    /// Run the loop
    Start(control::StartArgs),
    /// Let what runs finish, then end the loop; --now stops it
    Stop(control::StopArgs),
    /// Claim and start nothing more until `resume`
    Pause,
    /// Undo `pause`
    Resume,
    /// Stop every child at once and hold the loop until `thaw`
    Estop,
    /// Undo `estop`
    Thaw,
    /// Show the daemon, the slots, the tasks and what runs
    Status(look::StatusArgs),
    /// Say what a task waits for
    Why(look::TaskArgs),
    /// List the tasks in the order they would be taken
    List(look::ListArgs),
    /// Show a task: its file, its state and its runs
    Show(look::TaskArgs),
    /// Print the output of a task's newest run
    Logs(logs::LogsArgs),
    /// Add tasks to the queue
    Add(add::AddArgs),
    /// Try a deferred, blocked, cancelled or completed task again
    Retry(queue::QueueArgs),
    /// Stop a task's children and take it out of the queue
    Cancel(queue::QueueArgs),
    /// Claim paths for scripts and agents
    #[command(subcommand)]
    Lease(lease::LeaseCommand),
    /// Run commands under the same ceiling
    Run(run::RunArgs),
    /// Print, verify or export the facts
    Ledger(ledger::LedgerArgs),
    /// Check the installation, the state and the tasks
    Doctor(doctor::DoctorArgs),
    /// Show the configuration with the source of every value
    #[command(subcommand)]
    Config(settings::ConfigCommand),
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The process that owns one child (started by the daemon)
    #[command(hide = true)]
    Runner(run::RunnerArgs),
}
