//! The loop's brain: a pure machine from events to effects. It does no I/O and reads no clock.
//!
//! ```text
//! task:   queued ─claim─► in flight ─► completed | deferred | blocked | needs selection | cancelled
//! worker: preparing ─► staging (calls) ─► capturing ─► done
//! call:   pending ─► awaiting slot ─► launched ─► running ─► done
//!            ▲              │stop          └──────┬──────┘
//!            └── back-off ◄─┴── infrastructure ◄──┘
//! ```
//!
//! Every change that must survive is a fact; the core applies a fact to its book in the same moment
//! in which it asks for it to be recorded, with the function that replay uses. Effects of an event
//! wait until the facts of that event are durable (P3). ADR 0007 and ADR 0010 say why.

mod claiming;
mod core;
mod decide;
mod ending;
mod event;
mod finish;
mod flight;
mod report;
mod resume;
mod runs;
mod select;
#[cfg(test)]
mod tests;
mod why;

pub use core::{Core, IdSource, Out};
pub use event::{
    ClaimRefusal, Conflict, EdgeError, Effect, Event, Finish, Granted, Markers, RunEnd, RunPlan,
    StopLevel, StopSource, TimerKey, WorkKept, WorktreeReady,
};
pub use flight::CallStateName;
pub use report::{Progress, RunRow};
pub use select::plan_order;
pub use why::{Standing, Why};
