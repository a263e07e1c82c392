//! The one ceiling: a fair semaphore inside the daemon, slot files over all processes. Knows no child.

mod semaphore;
#[cfg(test)]
mod semaphore_tests;
mod slots;
#[cfg(test)]
mod slots_tests;
mod waiter;

pub use semaphore::{AcquireError, BoundedSemaphore, Permit};
pub use slots::{SlotDir, SlotGuard, SlotText};
pub use waiter::SlotWaiter;
