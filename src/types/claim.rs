//! Paths as claims: canonical repository-relative paths and globs, and whether two may overlap.
//! (skeleton; the owner of this file replaces the bodies)

/// Why a text is not a claim.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Leaves the repository, is absolute or is malformed.
    #[error("claim {claim:?} {why}")]
    Invalid {
        /// The offending text.
        claim: String,
        /// What is wrong with it and what to write instead.
        why: String,
    },
}

/// One canonical claim: a file, a folder (covers everything below) or a glob.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimPath(String);

/// A set of claims; the whole repository when it claims `.`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimSet(Vec<ClaimPath>);
