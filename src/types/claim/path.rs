//! One canonical claim. Owns its text and the two questions asked of it; the parsing and the
//! matching of globs are next door.

use super::parse;
use super::pattern::Pattern;
use super::segment::same_name;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

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

/// One canonical claim: a path or a glob, relative to the top of the repository.
///
/// * A plain path claims the file of that name and, since it may be a folder, all below it. A
///   trailing `/` says that it is a folder; `.` is the whole repository.
/// * A glob has `*` and `?` (neither crosses `/`), `[a-z]`, `[!a]`, `{a,b}` and `**` as a whole
///   segment. It claims what it matches and, as a match may be a folder, all below that; but a glob
///   whose last segment ends in a literal extension (`*.rs`) claims only the files it matches.
/// * `\` takes the next character literally. A segment with `[...]` also stands for itself, so
///   `app/[id]/page.tsx` needs no escapes.
///
/// Whether two claims overlap is decided conservatively (P5): names that differ only in ASCII case
/// are the same name, since file systems may fold case. What a claim *covers* is exact in case.
/// Not guaranteed: folding beyond ASCII, Unicode normalisation, symbolic links.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClaimPath {
    text: Box<str>,
    /// One pattern per alternative of the braces; empty for a plain path.
    patterns: Box<[Pattern]>,
}

impl ClaimPath {
    /// Reads and canonicalises a claim: `./`, `/./` and doubled slashes go.
    ///
    /// # Errors
    /// [`ClaimError`] for an empty text, an absolute path, `..`, `.git` and below, a control
    /// character, and a malformed glob.
    pub fn parse(text: &str) -> Result<Self, ClaimError> {
        let parsed = parse::parse(text).map_err(|why| ClaimError::Invalid {
            claim: text.to_owned(),
            why,
        })?;
        Ok(Self {
            text: parsed.text.into_boxed_str(),
            patterns: parsed.patterns.into_boxed_slice(),
        })
    }

    /// The whole repository.
    #[must_use]
    pub fn whole() -> Self {
        Self {
            text: Box::from(parse::WHOLE),
            patterns: Box::default(),
        }
    }

    /// The canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it claims the whole repository.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        &*self.text == parse::WHOLE
    }

    /// Whether some path could be claimed by both. Unsure is yes; a no is certain, save for the
    /// exceptions named at the type. Symmetric and reflexive (behaviours 31, 98).
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.is_whole() || other.is_whole() {
            return true;
        }
        match (self.is_plain(), other.is_plain()) {
            (true, true) => plain_overlap(self.folder_text(), other.folder_text()),
            (true, false) => other.meets_plain(self),
            (false, true) => self.meets_plain(other),
            (false, false) => self
                .patterns
                .iter()
                .any(|mine| other.patterns.iter().any(|theirs| mine.overlaps(theirs))),
        }
    }

    /// Whether a changed file, named relative to the top of the repository, is inside the claim.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        if self.is_whole() {
            return true;
        }
        if self.is_plain() {
            let rest = path.strip_prefix(self.folder_text());
            return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        }
        let names: Vec<&str> = path.split('/').collect();
        self.patterns.iter().any(|pattern| pattern.covers(&names))
    }

    fn is_plain(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The text without the mark of a folder.
    fn folder_text(&self) -> &str {
        self.text.strip_suffix('/').unwrap_or(&self.text)
    }

    fn meets_plain(&self, plain: &Self) -> bool {
        let mut names: Option<Vec<&str>> = None;
        self.patterns.iter().any(|pattern| {
            // Most pairs part at their first segment; those need no list of names.
            pattern.may_start_as(first_segment(&plain.text)) && {
                let names = names.get_or_insert_with(|| plain.folder_text().split('/').collect());
                pattern.overlaps_plain(names)
            }
        })
    }
}

fn first_segment(text: &str) -> &str {
    text.split('/').next().unwrap_or(text)
}

/// Equal, or one an ancestor of the other on a segment boundary, ASCII case folded.
fn plain_overlap(left: &str, right: &str) -> bool {
    let (short, long) = if left.len() <= right.len() {
        (left.as_bytes(), right.as_bytes())
    } else {
        (right.as_bytes(), left.as_bytes())
    };
    let (head, tail) = long.split_at(short.len());
    same_name(head, short) && matches!(tail.first(), None | Some(b'/'))
}

impl fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ClaimPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl PartialEq for ClaimPath {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ClaimPath {}

impl Hash for ClaimPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl PartialOrd for ClaimPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ClaimPath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl std::str::FromStr for ClaimPath {
    type Err = ClaimError;
    fn from_str(text: &str) -> Result<Self, ClaimError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for ClaimPath {
    type Error = ClaimError;
    fn try_from(text: String) -> Result<Self, ClaimError> {
        Self::parse(&text)
    }
}

impl From<ClaimPath> for String {
    fn from(path: ClaimPath) -> Self {
        path.text.into()
    }
}
