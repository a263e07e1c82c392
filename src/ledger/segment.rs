//! The ledger's files in their order, and a walk over their lines that checks every one. Reads only.

use super::codec::{self, Line, Sum};
use super::error::LedgerError;
use crate::fsx::disk::Disk;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SUFFIX: &str = ".jsonl";
const NUMBER_DIGITS: usize = 8;

/// The folder of the segments.
pub(super) fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join("ledger")
}

/// `00000001.jsonl`.
pub(super) fn name(number: u64) -> String {
    format!("{number:0NUMBER_DIGITS$}{SUFFIX}")
}

fn number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    (digits.len() == NUMBER_DIGITS).then(|| digits.parse().ok())?
}

/// The end of the last segment that is not a whole fact: what a crash in the middle of a write leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) path: PathBuf,
    /// From 1.
    pub(super) line: u64,
    /// Where it begins.
    pub(super) offset: u64,
    /// Its length.
    pub(super) bytes: u64,
    /// Whether it has a newline: then it was written whole and changed later, or half of it is lost.
    pub(super) whole: bool,
    pub(super) detail: String,
}

/// Walks over all facts, checking numbers and sums. Ends before a torn tail, which it then tells.
pub(super) struct Walk {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    left: VecDeque<u64>,
    bytes: Vec<u8>,
    at: usize,
    line: u64,
    /// The segment that the last line came from; 0 before the first.
    pub(super) segment: u64,
    pub(super) seq: u64,
    pub(super) sum: Sum,
    pub(super) tail: Option<Tail>,
    failed: bool,
}

impl Walk {
    /// Over the ledger of a state directory; one that is not there has no facts.
    pub(super) fn new(state_dir: &Path, disk: Arc<dyn Disk>) -> Result<Self, LedgerError> {
        let dir = folder(state_dir);
        let left: VecDeque<u64> = disk.list(&dir)?.iter().filter_map(|n| number(n)).collect();
        for (expected, found) in (1..).zip(&left) {
            if expected != *found {
                return Err(LedgerError::Missing(dir.join(name(expected))));
            }
        }
        Ok(Self {
            disk,
            dir,
            left,
            bytes: Vec::new(),
            at: 0,
            line: 0,
            segment: 0,
            seq: 0,
            sum: Sum::default(),
            tail: None,
            failed: false,
        })
    }

    /// Bytes of the current segment that are whole facts.
    pub(super) fn good_len(&self) -> u64 {
        u64::try_from(self.at).unwrap_or(u64::MAX)
    }

    fn path(&self) -> PathBuf {
        self.dir.join(name(self.segment))
    }

    /// Steps over to the next segment; false after the last.
    fn turn(&mut self) -> Result<bool, LedgerError> {
        let Some(next) = self.left.pop_front() else {
            return Ok(false);
        };
        self.segment = next;
        let path = self.path();
        let Some(bytes) = self.disk.read(&path)? else {
            return Err(LedgerError::Missing(path));
        };
        (self.bytes, self.at, self.line) = (bytes, 0, 0);
        Ok(true)
    }

    fn step(&mut self) -> Result<Option<Line>, LedgerError> {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            if rest.is_empty() {
                if self.turn()? {
                    continue;
                }
                return Ok(None);
            }
            let end = rest.iter().position(|b| *b == b'\n');
            let text = end.and_then(|end| rest.get(..end));
            let decoded = match text {
                None => Err("it has no end".to_owned()),
                Some(text) => codec::decode(text, self.sum).and_then(|line| self.in_turn(line)),
            };
            match decoded {
                Ok(line) => {
                    self.at += end.map_or(0, |end| end + 1);
                    self.line += 1;
                    (self.seq, self.sum) = (line.fact.seq, line.sum);
                    return Ok(Some(line));
                }
                Err(detail) => return self.bad(detail, end).map(|()| None),
            }
        }
    }

    fn in_turn(&self, line: Line) -> Result<Line, String> {
        let expected = self.seq + 1;
        if line.fact.seq == expected {
            Ok(line)
        } else {
            let found = line.fact.seq;
            Err(format!("its seq is {found} where {expected} must follow"))
        }
    }

    /// A bad line is a torn tail when nothing intact follows it, and damage otherwise.
    fn bad(&mut self, detail: String, end: Option<usize>) -> Result<(), LedgerError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let after = end.and_then(|end| rest.get(end + 1..)).unwrap_or_default();
        let intact_follows = after.split_inclusive(|b| *b == b'\n').any(|line| {
            line.strip_suffix(b"\n")
                .is_some_and(codec::looks_like_a_fact)
        });
        let (path, line, offset) = (self.path(), self.line + 1, self.good_len());
        if intact_follows || !self.left.is_empty() {
            return Err(LedgerError::Damaged {
                path,
                line,
                offset,
                detail,
            });
        }
        self.tail = Some(Tail {
            path,
            line,
            offset,
            bytes: u64::try_from(rest.len()).unwrap_or(u64::MAX),
            whole: end.is_some(),
            detail,
        });
        Ok(())
    }
}

impl Iterator for Walk {
    type Item = Result<Line, LedgerError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.tail.is_some() {
            return None;
        }
        let next = self.step().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}
