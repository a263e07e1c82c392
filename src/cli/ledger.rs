//! `ledger`: prints, follows, verifies and exports the facts.

use super::context::Context;
use super::failure::{Failure, Outcome};
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct LedgerArgs {
    /// Go on with new facts as they become durable
    #[arg(long)]
    pub(super) follow: bool,
    /// Only facts after this sequence number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) since: u64,
    #[command(subcommand)]
    pub(super) command: Option<LedgerCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// Check every line and the chain of sums
    Verify,
    /// Print the view and all facts as one JSON document
    Export,
}

/// Prints, verifies or exports.
pub(super) fn ledger(_context: &Context, _args: &LedgerArgs) -> Outcome {
    Err(Failure::failed("the ledger is not in this build"))
}
