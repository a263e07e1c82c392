//! One fact as one line, and the chain of checksums over the lines. Knows nothing of files.
//!
//! `{"seq":1,"at":"…","kind":"…","task":"…","run":"…","data":{…},"from":"…","sum":"…"}`: `task` and
//! `run` are left out when there is none; `from` only on facts that came through the inbox. `sum` is
//! the first 16 hex digits of the SHA-256 over the previous sum's text (16 zeros for the first line)
//! and the line up to `,"sum":`, so that a changed, missing or moved line is found.

use super::fact::{Fact, FactBody, NewFact};
use crate::types::{RunId, TaskId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt::Write;

/// Bytes of the digest that a sum shows, two hex digits each.
const SUM_BYTES: usize = 8;
const SUM_HEX: usize = SUM_BYTES * 2;
const SUM_KEY: &str = ",\"sum\":\"";
/// `,"sum":"` + the digits + `"}`.
const TAIL: usize = SUM_KEY.len() + SUM_HEX + 2;

/// Every kind this version knows.
const KINDS: &[&str] = &[
    "loop_started",
    "loop_stopped",
    "task_added",
    "task_claimed",
    "task_waiting",
    "run_intended",
    "run_started",
    "run_exited",
    "stage_passed",
    "stage_failed",
    "worker_captured",
    "task_completed",
    "task_deferred",
    "task_blocked",
    "task_needs_selection",
    "task_cancelled",
    "task_retried",
    "lease_claimed",
    "lease_released",
    "lease_reclaimed",
    "claim_violated",
    "guard_tripped",
    "warning",
];

/// The checksum of the last line: what the next one continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum([u8; SUM_HEX]);

impl Default for Sum {
    fn default() -> Self {
        Self([b'0'; SUM_HEX])
    }
}

impl Sum {
    fn next(self, head: &[u8]) -> Self {
        let digest = Sha256::new()
            .chain_update(self.0)
            .chain_update(head)
            .finalize();
        let mut text = [b'0'; SUM_HEX];
        for (pair, byte) in text.chunks_exact_mut(2).zip(digest.iter()) {
            for (digit, half) in pair.iter_mut().zip([byte >> 4, byte & 0xf]) {
                *digit = if half < 10 {
                    b'0' + half
                } else {
                    b'a' + half - 10
                };
            }
        }
        Self(text)
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// A decoded line.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) fact: Fact,
    /// The inbox file and the place in it that the fact came from.
    pub(super) from: Option<Origin>,
    pub(super) sum: Sum,
}

/// Where an ingested fact came from: what keeps it from being ingested twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// The inbox file's stem.
    pub(super) file: String,
    /// The fact's number in it, from 1.
    pub(super) seq: u64,
}

#[derive(Serialize)]
struct Head<'a> {
    seq: u64,
    at: Timestamp,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a RunId>,
    data: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

#[derive(Deserialize)]
struct RawLine<'a> {
    seq: u64,
    at: Timestamp,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    task: Option<TaskId>,
    run: Option<RunId>,
    #[serde(borrow)]
    data: &'a RawValue,
    from: Option<String>,
}

/// Kind and data of a body, the data as JSON text.
fn parts(body: &FactBody) -> serde_json::Result<(String, Box<RawValue>)> {
    #[derive(Deserialize)]
    struct Parts {
        kind: String,
        data: Box<RawValue>,
    }
    if let FactBody::Unknown { kind, data } = body {
        return Ok((kind.clone(), serde_json::value::to_raw_value(data)?));
    }
    let Parts { kind, data } = serde_json::from_str(&serde_json::to_string(body)?)?;
    Ok((kind, data))
}

/// Appends a fact's line, newline included, and gives its sum. On an error nothing is appended.
pub(super) fn encode(
    fact: &NewFact,
    seq: u64,
    from: Option<&Origin>,
    previous: Sum,
    out: &mut Vec<u8>,
) -> serde_json::Result<Sum> {
    let (kind, data) = parts(&fact.body)?;
    let mut line = serde_json::to_string(&Head {
        seq,
        at: fact.at,
        kind: &kind,
        task: fact.task.as_ref(),
        run: fact.run.as_ref(),
        data: &data,
        from: from.map(|o| format!("{}:{}", o.file, o.seq)),
    })?;
    line.pop();
    let sum = previous.next(line.as_bytes());
    // Writing to a String cannot fail.
    let _ = writeln!(line, "{SUM_KEY}{}\"}}", sum.as_str());
    out.extend_from_slice(line.as_bytes());
    Ok(sum)
}

/// Decodes a line without its newline and checks its sum; the error says what is wrong, for people.
pub(super) fn decode(line: &[u8], previous: Sum) -> Result<Line, String> {
    let Some((head, tail)) = line
        .len()
        .checked_sub(TAIL)
        .and_then(|at| line.split_at_checked(at))
    else {
        return Err("it is too short for a fact".to_owned());
    };
    let written = tail
        .strip_prefix(SUM_KEY.as_bytes())
        .and_then(|rest| rest.strip_suffix(b"\"}"))
        .ok_or("it does not end with a checksum")?;
    let sum = previous.next(head);
    if sum.0 != written {
        return Err(
            "its checksum does not match: it was changed, or a line before it is missing"
                .to_owned(),
        );
    }
    let raw: RawLine<'_> =
        serde_json::from_slice(line).map_err(|e| format!("it is not a fact: {e}"))?;
    let from = match raw.from {
        None => None,
        Some(text) => Some(origin(&text).ok_or("its `from` is not FILE:NUMBER")?),
    };
    Ok(Line {
        fact: Fact {
            seq: raw.seq,
            at: raw.at,
            task: raw.task,
            run: raw.run,
            body: body(&raw.kind, raw.data)?,
        },
        from,
        sum,
    })
}

fn origin(text: &str) -> Option<Origin> {
    let (file, seq) = text.rsplit_once(':')?;
    Some(Origin {
        file: file.to_owned(),
        seq: seq.parse().ok()?,
    })
}

fn body(kind: &str, data: &RawValue) -> Result<FactBody, String> {
    let error = |e: serde_json::Error| format!("its data is not that of {kind:?}: {e}");
    if KINDS.contains(&kind) {
        let text = format!("{{\"kind\":\"{kind}\",\"data\":{}}}", data.get());
        serde_json::from_str(&text).map_err(error)
    } else {
        Ok(FactBody::Unknown {
            kind: kind.to_owned(),
            data: serde_json::from_str(data.get()).map_err(error)?,
        })
    }
}

/// Whether a line without its newline has a fact's shape, its sum aside: to tell damage from a torn end.
pub(super) fn looks_like_a_fact(line: &[u8]) -> bool {
    let tail = line.len().checked_sub(TAIL).and_then(|at| line.get(at..));
    tail.is_some_and(|t| t.starts_with(SUM_KEY.as_bytes()))
        && serde_json::from_slice::<RawLine<'_>>(line).is_ok()
}

impl Fact {
    /// The fact as clients see it: the keys of its line without the checksum.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut object = serde_json::Map::new();
        object.insert("seq".to_owned(), self.seq.into());
        object.insert("at".to_owned(), self.at.millis().into());
        if let Ok((kind, data)) = parts(&self.body) {
            object.insert("kind".to_owned(), kind.into());
            let data = serde_json::from_str(data.get()).unwrap_or_default();
            object.insert("data".to_owned(), data);
        }
        if let Some(task) = &self.task {
            object.insert("task".to_owned(), task.as_str().into());
        }
        if let Some(run) = &self.run {
            object.insert("run".to_owned(), run.as_str().into());
        }
        object.into()
    }
}

#[cfg(test)]
pub(super) fn known_kinds() -> &'static [&'static str] {
    KINDS
}
