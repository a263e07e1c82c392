//! (skeleton) The ledger: facts, their durable log, the state that follows from them.

mod fact;

pub use fact::{Fact, FactBody, LoopSettings, NewFact};
