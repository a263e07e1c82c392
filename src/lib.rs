//! `flockd` drives a flock of coding-agent CLIs over one git repository under one ceiling.
//!
//! The layers and what each may use are in `docs/architecture.md`; a test reads the
//! `use crate::` lines and fails on any other arrow.

pub mod agent;
pub mod api;
pub mod budget;
pub mod cli;
pub mod client;
pub mod config;
pub mod daemon;

pub mod engine;
pub mod fsx;
pub mod gate;
pub mod git;
pub mod lease;
pub mod ledger;
pub mod proc;
pub mod runner;
pub mod types;
