//! Reading facts beside a living writer, without a lock and without waiting for it.

use super::codec::{Sum, decode};
use super::error::LedgerError;
use super::fact::Fact;
use super::log::ledger_dir;
use super::segment::{FIRST_SEGMENT, segment_numbers, segment_path};
use crate::fsx::{self, disk::Disk, disk::RealDisk};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes read at once.
const CHUNK: usize = 1 << 18;
/// Longer lines are not looked for when the first line of a segment is read.
const FIRST_LINE_MAX: u64 = 1 << 20;

/// Facts in order, from the files. Ends at the last whole line; a later reader gets the rest.
///
/// Not guaranteed: that a fact just written is durable already.
#[derive(Debug)]
pub struct FactReader {
    dir: PathBuf,
    segment: u32,
    /// Of the segment: where the next chunk begins.
    offset: u64,
    /// Read and not handed out.
    buffer: Vec<u8>,
    /// How much of the buffer is handed out.
    taken: usize,
    line: u64,
    /// The chain's end; none when the first line is taken at its word.
    sum: Option<Sum>,
    seq: Option<u64>,
    since: u64,
    done: bool,
    torn: bool,
}

/// What a whole ledger holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// How many facts.
    pub facts: u64,
    /// How many segments.
    pub segments: u32,
    /// The last sequence number; 0 when there is none.
    pub last_seq: u64,
    /// Whether the last segment ends in an unfinished write, as it may while a writer lives.
    pub torn_tail: bool,
}

/// The facts after a sequence number. Reads only the segments that can hold them.
///
/// # Errors
/// Each item: [`LedgerError::Damaged`] (then the last one), or the disk's refusal.
pub fn read_facts(state_dir: &Path, since: u64) -> FactReader {
    FactReader::new(state_dir, since)
}

/// Checks every line of every segment.
///
/// # Errors
/// The first damage: [`LedgerError::Damaged`] or [`LedgerError::MissingSegment`]; or the disk's
/// refusal.
pub fn verify(state_dir: &Path) -> Result<Verified, LedgerError> {
    let dir = ledger_dir(state_dir);
    let segments = segment_numbers(&dir, &RealDisk.list(&dir)?)?;
    let mut reader = FactReader::at(&dir, FIRST_SEGMENT, 0);
    reader.sum = Some(Sum::FIRST);
    reader.seq = Some(0);
    let mut facts = 0;
    for fact in reader.by_ref() {
        fact?;
        facts += 1;
    }
    Ok(Verified {
        facts,
        segments: u32::try_from(segments.len()).unwrap_or(u32::MAX),
        last_seq: reader.seq.unwrap_or(0),
        torn_tail: reader.torn,
    })
}

impl FactReader {
    fn new(state_dir: &Path, since: u64) -> Self {
        let dir = ledger_dir(state_dir);
        let newest_first = RealDisk
            .list(&dir)
            .ok()
            .and_then(|names| segment_numbers(&dir, &names).ok())
            .unwrap_or_default()
            .into_iter()
            .rev();
        // An unreadable or gappy folder is met again from the first segment on, as an error.
        let start = newest_first
            .take_while(|number| *number > FIRST_SEGMENT)
            .find(|number| {
                first_seq(&segment_path(&dir, *number)).is_some_and(|first| first <= since + 1)
            });
        let mut reader = Self::at(&dir, start.unwrap_or(FIRST_SEGMENT), since);
        if start.is_none() {
            reader.sum = Some(Sum::FIRST);
            reader.seq = Some(0);
        }
        reader
    }

    fn at(dir: &Path, segment: u32, since: u64) -> Self {
        Self {
            dir: dir.to_owned(),
            segment,
            offset: 0,
            buffer: Vec::new(),
            taken: 0,
            line: 0,
            sum: None,
            seq: None,
            since,
            done: false,
            torn: false,
        }
    }

    /// The next whole line; none at the end of what is there.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, LedgerError> {
        loop {
            let rest = self.buffer.get(self.taken..).unwrap_or_default();
            if let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest.get(..at).unwrap_or_default().to_vec();
                self.taken += at + 1;
                self.line += 1;
                return Ok(Some(line));
            }
            let left = rest.len();
            self.buffer.drain(..self.taken.min(self.buffer.len()));
            self.taken = 0;
            // Looked for before the read: the writer finishes a segment before it begins the next.
            let next = segment_path(&self.dir, self.segment.saturating_add(1));
            let is_last = std::fs::symlink_metadata(&next).is_err();
            if self.read_chunk()? > 0 {
                continue;
            }
            if is_last {
                self.torn = left > 0;
                return Ok(None);
            }
            if left > 0 {
                self.line += 1;
                return Err(self.damaged(self.file_offset(), "the line has no end".to_owned()));
            }
            self.segment = self.segment.saturating_add(1);
            self.offset = 0;
            self.line = 0;
        }
    }

    fn read_chunk(&mut self) -> Result<usize, LedgerError> {
        let path = segment_path(&self.dir, self.segment);
        let mut file = match fsx::open_input(&path) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let mut read = || -> std::io::Result<usize> {
            file.seek(SeekFrom::Start(self.offset))?;
            (&mut file).take(CHUNK as u64).read_to_end(&mut self.buffer)
        };
        let read = read().map_err(fsx::FsError::io("read", &path))?;
        self.offset += read as u64;
        Ok(read)
    }

    /// Where the next line begins.
    fn file_offset(&self) -> u64 {
        let unread = self.buffer.len().saturating_sub(self.taken) as u64;
        self.offset.saturating_sub(unread)
    }

    fn damaged(&self, offset: u64, why: String) -> LedgerError {
        LedgerError::Damaged {
            path: segment_path(&self.dir, self.segment),
            line: self.line,
            offset,
            why,
        }
    }

    fn next_fact(&mut self) -> Result<Option<Fact>, LedgerError> {
        let Some(line) = self.next_line()? else {
            return Ok(None);
        };
        let start = self.file_offset().saturating_sub(line.len() as u64 + 1);
        let decoded = match decode(&line, self.sum) {
            Ok(decoded) => decoded,
            // Blocks that are allocated and not written yet: the end of what is there.
            Err(_) if line.contains(&0) && self.is_last_segment() => {
                self.torn = true;
                return Ok(None);
            }
            Err(bad) => return Err(self.damaged(start, bad.to_string())),
        };
        let expected = self.seq.map(|seq| seq + 1);
        if expected.is_some_and(|expected| expected != decoded.fact.seq) {
            let why = format!("the line has number {}", decoded.fact.seq);
            return Err(self.damaged(start, why));
        }
        self.sum = Some(decoded.sum);
        self.seq = Some(decoded.fact.seq);
        Ok(Some(decoded.fact))
    }

    fn is_last_segment(&self) -> bool {
        let next = segment_path(&self.dir, self.segment.saturating_add(1));
        std::fs::symlink_metadata(next).is_err()
    }
}

impl Iterator for FactReader {
    type Item = Result<Fact, LedgerError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            match self.next_fact() {
                Ok(Some(fact)) if fact.seq > self.since => return Some(Ok(fact)),
                Ok(Some(_)) => {}
                Ok(None) => self.done = true,
                Err(error) => {
                    self.done = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

fn first_seq(path: &Path) -> Option<u64> {
    let mut text = Vec::new();
    let file = fsx::open_input(path).ok()?;
    let mut buffered = std::io::BufReader::new(file.take(FIRST_LINE_MAX));
    std::io::BufRead::read_until(&mut buffered, b'\n', &mut text).ok()?;
    decode(text.strip_suffix(b"\n")?, None)
        .ok()
        .map(|line| line.fact.seq)
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
