//! A segment's name and the scan over its lines: where the chain holds, where it is torn, where
//! it is damaged. Pure: bytes in.

use super::codec::{Line, Sum, decode};
use super::error::LedgerError;
use std::path::{Path, PathBuf};

/// The folder of segments in the state directory.
pub(super) const LEDGER_DIR: &str = "ledger";
/// The folder of inbox files in [`LEDGER_DIR`].
pub(super) const INBOX_DIR: &str = "inbox";
/// The first segment's number.
pub(super) const FIRST_SEGMENT: u32 = 1;

/// `00000001.jsonl`.
pub(super) fn segment_path(ledger_dir: &Path, segment: u32) -> PathBuf {
    ledger_dir.join(format!("{segment:08}.jsonl"))
}

/// The number in a segment's name; none for other files.
pub(super) fn segment_number(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".jsonl")?;
    let plain = digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok())?
}

/// The numbers of the segments among the names in a folder: from 1, without a gap.
pub(super) fn segment_numbers(
    ledger_dir: &Path,
    names: &[String],
) -> Result<Vec<u32>, LedgerError> {
    let mut numbers: Vec<u32> = names
        .iter()
        .filter_map(|name| segment_number(name))
        .collect();
    numbers.sort_unstable();
    for (expected, found) in (FIRST_SEGMENT..).zip(&numbers) {
        if expected != *found {
            return Err(LedgerError::MissingSegment {
                path: segment_path(ledger_dir, expected),
            });
        }
    }
    Ok(numbers)
}

/// The end of the chain so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) seq: u64,
    pub(super) sum: Sum,
}

impl Chain {
    pub(super) const START: Self = Self {
        seq: 0,
        sum: Sum::FIRST,
    };
}

/// Whether a file may end in the middle of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// It was synced and followed by another one.
    Whole,
    /// It is the one that is written to.
    MayBeTorn,
}

/// Where lines stop being good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// At the end of the file.
    Clean,
    /// A write was not finished: from this byte on nothing was ever acknowledged.
    Torn {
        /// Where the good lines end.
        offset: u64,
    },
    /// Something changed the file.
    Damaged {
        /// From 1.
        line: u64,
        /// Where the line begins.
        offset: u64,
        /// What is wrong.
        why: String,
    },
}

/// Walks over a file's lines as long as they are good; `chain` ends at the last good one.
pub(super) fn scan(bytes: &[u8], chain: &mut Chain, tail: Tail, each: &mut dyn FnMut(Line)) -> End {
    let mut rest = bytes;
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let offset = (bytes.len() - rest.len()) as u64;
        let newline = rest.iter().position(|byte| *byte == b'\n');
        let (text, after) = match newline {
            Some(at) => (
                rest.get(..at).unwrap_or_default(),
                rest.get(at + 1..).unwrap_or_default(),
            ),
            None => (rest, &[][..]),
        };
        let why = match decode(text, Some(chain.sum)) {
            Ok(_) if newline.is_none() => "the line has no end".to_owned(),
            Ok(line) if line.fact.seq == chain.seq.saturating_add(1) => {
                *chain = Chain {
                    seq: line.fact.seq,
                    sum: line.sum,
                };
                each(line);
                rest = after;
                continue;
            }
            Ok(line) => format!(
                "the line has number {} where {} belongs",
                line.fact.seq,
                chain.seq.saturating_add(1)
            ),
            Err(bad) => bad.to_string(),
        };
        if tail == Tail::MayBeTorn && is_torn(rest) {
            return End::Torn { offset };
        }
        return End::Damaged {
            line: number,
            offset,
            why,
        };
    }
    End::Clean
}

/// Whether what begins with a bad line can be an unfinished write: its line does not end, or holds
/// NULs (blocks that were allocated and never written), and no fact follows. A line that ends and
/// holds none was written whole and changed later.
fn is_torn(rest: &[u8]) -> bool {
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
        return true;
    };
    let has_nul = rest.get(..end).is_some_and(|line| line.contains(&0));
    has_nul && !rest.split(|byte| *byte == b'\n').any(is_fact)
}

/// Whether a fact stands there, at the beginning or behind NULs, chained or not.
fn is_fact(text: &[u8]) -> bool {
    let start = text
        .iter()
        .rposition(|byte| *byte == 0)
        .map_or(0, |at| at + 1);
    text.get(start..)
        .is_some_and(|text| decode(text, None).is_ok())
}
