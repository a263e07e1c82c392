//! Plain values every layer speaks: ids, times, units, claims, reasons. Pure: no I/O, no clock.

mod claim;
mod ids;
mod reason;
mod secret;
mod time;
mod units;

pub use claim::{ClaimError, ClaimPath, ClaimSet};
pub use ids::{IdError, LeaseId, RunId, TaskId};
pub use reason::{Decision, Outcome, Verdict, WaitFor};
pub use secret::mask_secrets;
pub use time::{Now, Timestamp};
pub use units::{UnitError, format_duration, format_size, parse_duration, parse_size};
