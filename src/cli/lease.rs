//! `lease claim`, `lease release`, `lease list`: the claim section for scripts and agents.

use super::context::Context;
use super::failure::{Failure, Outcome};
use crate::types::{LeaseId, TaskId, parse_duration};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(super) enum LeaseCommand {
    /// Claim paths for a task; with a command the lease lives as long as it
    Claim(ClaimArgs),
    /// Give a lease back
    Release {
        /// The lease's id
        lease: LeaseId,
    },
    /// List the leases
    List,
}

#[derive(Debug, Args)]
pub(super) struct ClaimArgs {
    /// The task that claims
    #[arg(long)]
    pub(super) task: TaskId,
    /// Paths, folders or globs of the repository
    #[arg(required = true)]
    pub(super) paths: Vec<String>,
    /// How long a lease without a command lives [env: FLOCKD_LEASE_TTL_MINUTES] [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) ttl: Option<Duration>,
    /// The command that the lease lives as long as
    #[arg(last = true)]
    pub(super) command: Vec<OsString>,
}

/// Claims, releases or lists.
pub(super) fn lease(_context: &Context, _command: LeaseCommand) -> Outcome {
    Err(Failure::failed("leases are not in this build"))
}
