//! `run`: commands under the ceiling; and the hidden `runner`.

use super::context::Context;
use super::failure::Outcome;
use crate::types::parse_duration;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Permits that one command costs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) weight: u32,
    /// Stop a command after this long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) timeout: Option<Duration>,
    /// One command per line of a file; `-` is standard input
    #[arg(long, value_name = "FILE|-", conflicts_with = "command")]
    pub(super) lines: Option<PathBuf>,
    /// The command
    #[arg(last = true, required_unless_present = "lines")]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct RunnerArgs {
    /// The state directory
    #[arg(long)]
    pub(super) state: PathBuf,
    /// The runner's name
    #[arg(long)]
    pub(super) name: String,
}

/// Runs one command, or one per line, under the same ceiling.
pub(super) fn run(context: &Context, args: &RunArgs) -> Outcome {
    match &args.lines {
        Some(source) => super::run_lines::run_lines(context, args, source),
        None => super::run_one::run_one(context, args),
    }
}
