//! `doctor`.

use super::context::Context;
use super::failure::{Failure, Outcome};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Repair what can be repaired without losing anything
    #[arg(long)]
    pub(super) fix: bool,
}

/// Checks.
pub(super) fn doctor(_context: &Context, _args: &DoctorArgs) -> Outcome {
    Err(Failure::failed("doctor is not in this build"))
}
