//! `make bench`: measures on this machine, side by side in one run, and prints ratios.
//!
//! Absolute figures move from machine to machine and from minute to minute; ratios of neighbours do
//! less so. Each figure is the median of interleaved rounds. The aims are those of a quiet machine.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench stops where something fails, and its baselines are the plain system calls"
)]

mod baseline;
mod leases;
mod ledger;
mod runs;
mod table;

use std::process::ExitCode;
use table::Table;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, _, state, _, name] = arguments.as_slice()
        && verb == "runner"
    {
        // The pool under measurement starts this program as its runner.
        return flockd::runner::serve(std::path::Path::new(state), name);
    }
    let folder = tempfile::Builder::new()
        .prefix("flockd-bench-")
        .tempdir_in(".")
        .unwrap();
    let mut table = Table::new();
    ledger::measure(folder.path(), &mut table);
    leases::measure(folder.path(), &mut table);
    runs::measure(folder.path(), &mut table);
    table.print();
    ExitCode::SUCCESS
}
