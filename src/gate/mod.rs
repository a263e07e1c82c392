//! The gate decides which calls of one batch may overlap: intent, then safety. Pure; it runs nothing.

mod batch;

pub use batch::{BatchGate, CallDecl, CallPhase, Reason};
