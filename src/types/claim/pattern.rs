//! A glob without braces: a list of segments. Owns whether it meets another list of segments.

use super::segment::{Case, Segment, same_name};

/// One alternative of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    segments: Box<[Segment]>,
    reach: Reach,
}

/// How far a claim goes below what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// What it names may be a folder: all below belongs to it.
    Below,
    /// It names files.
    Files,
}

impl Pattern {
    /// `folder`: it was written with a trailing slash.
    pub(super) fn new(segments: Vec<Segment>, folder: bool) -> Self {
        let names_files = segments.last().is_some_and(Segment::names_files);
        Self {
            segments: segments.into_boxed_slice(),
            reach: if names_files && !folder {
                Reach::Files
            } else {
                Reach::Below
            },
        }
    }

    /// A cheap first look: false only when it cannot match a path that starts with this name.
    pub(super) fn may_start_as(&self, name: &str) -> bool {
        match self.segments.first().and_then(Segment::literal) {
            Some(own) => same_name(own.as_bytes(), name.as_bytes()),
            None => true,
        }
    }

    /// Whether a file is claimed, exact in case.
    pub(super) fn covers(&self, names: &[&str]) -> bool {
        meets(self.side(), Side::path(names, Reach::Files), &|i, j| {
            self.segment_matches(i, names, j, Case::Exact)
        })
    }

    /// Whether it may claim what a plain path or something below it names.
    pub(super) fn overlaps_plain(&self, names: &[&str]) -> bool {
        meets(self.side(), Side::path(names, Reach::Below), &|i, j| {
            self.segment_matches(i, names, j, Case::Folded)
        })
    }

    /// Whether both may claim one path.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        meets(
            self.side(),
            other.side(),
            &|i, j| match (self.segments.get(i), other.segments.get(j)) {
                (Some(mine), Some(theirs)) => mine.meets(theirs),
                _ => false,
            },
        )
    }

    fn segment_matches(&self, i: usize, names: &[&str], j: usize, case: Case) -> bool {
        match (self.segments.get(i), names.get(j)) {
            (Some(segment), Some(name)) => segment.matches(name, case),
            _ => false,
        }
    }

    fn side(&self) -> Side<'_> {
        Side {
            len: self.segments.len(),
            segments: &self.segments,
            reach: self.reach,
        }
    }
}

/// What the product below needs to know of one of its two lists.
#[derive(Clone, Copy)]
struct Side<'a> {
    len: usize,
    /// Empty for a list of names, which has no `**`.
    segments: &'a [Segment],
    reach: Reach,
}

impl Side<'_> {
    fn path(names: &[&str], reach: Reach) -> Self {
        Self {
            len: names.len(),
            segments: &[],
            reach,
        }
    }

    fn is_any_depth(&self, at: usize) -> bool {
        self.segments.get(at).is_some_and(Segment::is_any_depth)
    }
}

/// Whether some path is named by both lists: the product of the two automata, from their ends.
fn meets(left: Side<'_>, right: Side<'_>, segments_meet: &dyn Fn(usize, usize) -> bool) -> bool {
    let mut below: Vec<bool> = Vec::new();
    for i in (0..=left.len).rev() {
        let mut row = vec![false; right.len + 1];
        for j in (0..=right.len).rev() {
            let right_next = row.get(j + 1).copied().unwrap_or(false);
            let left_next = below.get(j).copied().unwrap_or(false);
            let both_next = below.get(j + 1).copied().unwrap_or(false);
            let meets = match (i == left.len, j == right.len) {
                (true, true) => true,
                // One list is through: it reaches what is left of the other, or that is nothing.
                (true, false) => {
                    left.reach == Reach::Below || (right.is_any_depth(j) && right_next)
                }
                (false, true) => right.reach == Reach::Below || (left.is_any_depth(i) && left_next),
                (false, false) if left.is_any_depth(i) || right.is_any_depth(j) => {
                    // `**` ends here, or swallows the segment that the other side has next.
                    left_next || right_next
                }
                (false, false) => both_next && segments_meet(i, j),
            };
            if let Some(cell) = row.get_mut(j) {
                *cell = meets;
            }
        }
        below = row;
    }
    below.first().copied().unwrap_or(false)
}
