//! Leases: who may touch which paths now. Owns `leases.json` and the `.live` files; knows nothing of
//! tasks' meaning, of git, or of processes other than that one holds a file's lock.
//!
//! Lock order: `leases.json.lock`, then a lease's `.live`. Nothing is waited for under the former.

mod clock;
mod error;
mod hold;
mod live;
mod record;
mod section;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod view;

pub use clock::{Clock, SystemClock};
pub use error::LeaseError;
pub use hold::{LeaseHold, hold_shared};
pub use record::{Holder, LeaseMode, LeaseRecord, LeaseStatus};
pub use store::{Claimed, LeaseManager, Released};
pub use table::ClaimRequest;
pub use view::{LeaseView, LeasesRead, read_leases};
