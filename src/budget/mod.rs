//! The one ceiling: a fair semaphore inside the daemon, slot files over all processes. Knows no child.

mod semaphore;
#[cfg(test)]
mod semaphore_tests;

pub use semaphore::{AcquireError, BoundedSemaphore, Permit};
