//! The command line: parses, calls the parts, prints. The composition root; no other part uses it.

mod add;
mod args;
mod context;
mod control;
mod disk;
mod doctor;
mod doctor_checks;
mod facts;
mod failure;
mod init;
mod lease;
mod ledger;
mod line_input;
mod logs;
mod look;
mod offline;
mod offline_status;
mod output;
mod program;
mod progress;
mod queue;
mod run;
mod run_lines;
mod run_one;
mod runs;
mod settings;
#[cfg(test)]
mod tests;

pub use program::main;
