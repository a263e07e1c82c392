//! The claims of one task or lease. Owns the question whether two sets are disjoint (P5).

use super::{ClaimError, ClaimPath};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A set of claims in the order given, without duplicates; an empty one claims nothing.
///
/// A task without claims claims the whole repository: that is its reader's decision, see
/// [`ClaimSet::whole`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClaimSet(Vec<ClaimPath>);

impl ClaimSet {
    /// Reads a list of claims.
    ///
    /// # Errors
    /// [`ClaimError`] of the first text that is not a claim.
    pub fn parse<I, T>(texts: I) -> Result<Self, ClaimError>
    where
        I: IntoIterator<Item = T>,
        T: AsRef<str>,
    {
        texts
            .into_iter()
            .map(|text| ClaimPath::parse(text.as_ref()))
            .collect()
    }

    /// The claim of the whole repository.
    #[must_use]
    pub fn whole() -> Self {
        Self(vec![ClaimPath::whole()])
    }

    /// Whether the whole repository is claimed.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.0.iter().any(ClaimPath::is_whole)
    }

    /// The first pair of claims that may overlap, one of this set and one of the other.
    #[must_use]
    pub fn overlap_with(&self, other: &Self) -> Option<(ClaimPath, ClaimPath)> {
        self.overlapping(other)
            .map(|(mine, theirs)| (mine.clone(), theirs.clone()))
    }

    /// As [`ClaimSet::overlap_with`], borrowed: no allocation for pairs of plain paths.
    #[must_use]
    pub fn overlapping<'a>(&'a self, other: &'a Self) -> Option<(&'a ClaimPath, &'a ClaimPath)> {
        self.0.iter().find_map(|mine| {
            let theirs = other.0.iter().find(|theirs| mine.overlaps(theirs))?;
            Some((mine, theirs))
        })
    }

    /// Whether a changed file is inside one of the claims.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        self.0.iter().any(|claim| claim.covers(path))
    }

    /// The claims in order.
    pub fn iter(&self) -> std::slice::Iter<'_, ClaimPath> {
        self.0.iter()
    }

    /// How many claims there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is claimed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The canonical texts in order.
    #[must_use]
    pub fn to_strings(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}

impl FromIterator<ClaimPath> for ClaimSet {
    fn from_iter<I: IntoIterator<Item = ClaimPath>>(claims: I) -> Self {
        let mut set = Vec::new();
        for claim in claims {
            if !set.contains(&claim) {
                set.push(claim);
            }
        }
        Self(set)
    }
}

impl IntoIterator for ClaimSet {
    type Item = ClaimPath;
    type IntoIter = std::vec::IntoIter<ClaimPath>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a ClaimSet {
    type Item = &'a ClaimPath;
    type IntoIter = std::slice::Iter<'a, ClaimPath>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for ClaimSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, claim) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            claim.fmt(f)?;
        }
        Ok(())
    }
}
