//! Paths as claims: canonical repository-relative paths and globs, and whether two may overlap.
//! Pure: knows nothing of the file system, so symbolic links are the caller's to resolve.

mod parse;
mod path;
mod pattern;
mod segment;
mod set;
#[cfg(test)]
mod tests;

pub use path::{ClaimError, ClaimPath};
pub use set::ClaimSet;
