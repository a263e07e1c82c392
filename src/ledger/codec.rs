//! One fact as one line, with a checksum that chains to the line before. Pure: bytes in, bytes out.
//!
//! `sum` is the first 16 hex characters of SHA-256 over the previous line's `sum` and this line up
//! to its own `,"sum":`. An edited, removed, repeated or swapped line breaks the chain.

use super::error::LedgerError;
use super::fact::{Fact, FactBody};
use crate::types::{RunId, TaskId, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::io::Write;

/// Length of a checksum's text.
const SUM_LEN: usize = 16;
const SUM_KEY: &[u8] = b",\"sum\":\"";
const SUM_END: &[u8] = b"\"}";
/// Length of `,"sum":"0123456789abcdef"}`.
const TRAILER_LEN: usize = SUM_KEY.len() + SUM_LEN + SUM_END.len();

/// The text of a line's checksum; what the next line's begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum([u8; SUM_LEN]);

impl Sum {
    /// What the first line of a ledger chains to.
    pub(super) const FIRST: Self = Self([b'0'; SUM_LEN]);

    fn of(previous: Self, content: &[u8]) -> Self {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let digest = Sha256::new()
            .chain_update(previous.0)
            .chain_update(content)
            .finalize();
        let mut text = [b'0'; SUM_LEN];
        for (pair, byte) in text.chunks_exact_mut(2).zip(digest.iter()) {
            if let [high, low] = pair {
                *high = HEX.get(usize::from(byte >> 4)).copied().unwrap_or(b'0');
                *low = HEX.get(usize::from(byte & 15)).copied().unwrap_or(b'0');
            }
        }
        Self(text)
    }
}

impl std::fmt::Debug for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// Where an ingested fact comes from: the inbox file and its sequence number there. Kept in the
/// line, so that an inbox file that survives a crash is not taken twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// The inbox file's stem.
    pub(super) inbox: String,
    /// The fact's sequence number in it.
    pub(super) seq: u64,
}

/// A decoded line.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) fact: Fact,
    pub(super) source: Option<Source>,
    pub(super) sum: Sum,
}

/// Why a line is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadLine {
    #[error("the line is no fact")]
    Shape,
    #[error("the line's checksum is wrong: it or the line before it was changed")]
    Sum,
}

/// Appends a fact's line, newline included, to a buffer; the line's checksum comes back.
pub(super) fn encode(
    fact: &Fact,
    source: Option<&Source>,
    previous: Sum,
    out: &mut Vec<u8>,
) -> Result<Sum, LedgerError> {
    let start = out.len();
    let result = encode_content(fact, source, out);
    if let Err(error) = result {
        out.truncate(start);
        return Err(LedgerError::Encode(error.to_string()));
    }
    let sum = Sum::of(previous, out.get(start..).unwrap_or_default());
    out.extend_from_slice(SUM_KEY);
    out.extend_from_slice(&sum.0);
    out.extend_from_slice(SUM_END);
    out.push(b'\n');
    Ok(sum)
}

impl Fact {
    /// The fact as clients see it: its line without the checksum.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut content = Vec::new();
        if encode_content(self, None, &mut content).is_err() {
            return serde_json::Value::Null;
        }
        content.push(b'}');
        serde_json::from_slice(&content).unwrap_or_default()
    }
}

/// The line up to its `,"sum":`.
fn encode_content(
    fact: &Fact,
    source: Option<&Source>,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    const DATA_KEY: &[u8] = b",\"data\":";
    let io = serde_json::Error::io;
    write!(
        out,
        "{{\"seq\":{},\"at\":\"{}\",",
        fact.seq,
        fact.at.millis()
    )
    .map_err(io)?;
    // `{"kind":"run_exited","data":{…}}`, taken apart to put the ids between the two.
    let body = match &fact.body {
        FactBody::Unknown { kind, data } => {
            let mut body = b"{\"kind\":".to_vec();
            serde_json::to_writer(&mut body, kind)?;
            body.extend_from_slice(DATA_KEY);
            serde_json::to_writer(&mut body, data)?;
            body.push(b'}');
            body
        }
        known => serde_json::to_vec(known)?,
    };
    let cut = body
        .windows(DATA_KEY.len())
        .position(|window| window == DATA_KEY)
        .unwrap_or(body.len());
    let (kind, data) = body.split_at(cut);
    out.extend_from_slice(kind.strip_prefix(b"{").unwrap_or(kind));
    if let Some(task) = &fact.task {
        write!(out, ",\"task\":\"{task}\"").map_err(io)?;
    }
    if let Some(run) = &fact.run {
        write!(out, ",\"run\":\"{run}\"").map_err(io)?;
    }
    if let Some(source) = source {
        write!(out, ",\"src\":\"{}:{}\"", source.inbox, source.seq).map_err(io)?;
    }
    out.extend_from_slice(data.strip_suffix(b"}").unwrap_or(data));
    Ok(())
}

#[derive(Deserialize)]
struct Frame<'a> {
    seq: u64,
    #[serde(borrow)]
    at: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    task: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    run: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    src: Option<Cow<'a, str>>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Reads a line (without its newline). With a previous sum the chain is checked; without one the
/// line is taken at its word, for readers that begin in the middle.
pub(super) fn decode(line: &[u8], previous: Option<Sum>) -> Result<Line, BadLine> {
    let cut = line.len().checked_sub(TRAILER_LEN).ok_or(BadLine::Shape)?;
    let (content, trailer) = line.split_at(cut);
    let sum = trailer
        .strip_prefix(SUM_KEY)
        .and_then(|rest| rest.strip_suffix(SUM_END))
        .and_then(|text| <[u8; SUM_LEN]>::try_from(text).ok())
        .map(Sum)
        .ok_or(BadLine::Shape)?;
    if previous.is_some_and(|previous| Sum::of(previous, content) != sum) {
        return Err(BadLine::Sum);
    }
    // Checked for UTF-8 once, not string by string.
    let text = std::str::from_utf8(line).map_err(|_| BadLine::Shape)?;
    let frame: Frame<'_> = serde_json::from_str(text).map_err(|_| BadLine::Shape)?;
    let at: Timestamp = frame.at.parse().map_err(|_| BadLine::Shape)?;
    let task = frame.task.as_deref().map(TaskId::new);
    let run = frame.run.as_deref().map(RunId::new);
    let ids_known = !matches!(task, Some(Err(_))) && !matches!(run, Some(Err(_)));
    // The bytes are as they were written. What this version cannot read, an older or newer one
    // wrote: it is kept and not acted on.
    let body = ids_known
        .then(|| decode_body(&frame.kind, frame.data))
        .flatten()
        .unwrap_or_else(|| FactBody::Unknown {
            kind: frame.kind.clone().into_owned(),
            data: serde_json::from_str(frame.data.get()).unwrap_or_default(),
        });
    Ok(Line {
        fact: Fact {
            seq: frame.seq,
            at,
            task: task.and_then(Result::ok),
            run: run.and_then(Result::ok),
            body,
        },
        source: frame.src.as_deref().and_then(parse_source),
        sum,
    })
}

fn parse_source(text: &str) -> Option<Source> {
    let (inbox, seq) = text.rsplit_once(':')?;
    Some(Source {
        inbox: inbox.to_owned(),
        seq: seq.parse().ok()?,
    })
}

/// The data is parsed once, as what the kind says it is.
fn decode_body(kind: &str, data: &RawValue) -> Option<FactBody> {
    FactBody::deserialize(Tagged {
        kind: Some(kind),
        data: Some(data),
    })
    .ok()
}

/// The two entries of an adjacently tagged enum, without text around them.
struct Tagged<'a> {
    kind: Option<&'a str>,
    data: Option<&'a RawValue>,
}

impl<'de> serde::Deserializer<'de> for Tagged<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: serde::de::Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_map(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

impl<'de> serde::de::MapAccess<'de> for Tagged<'de> {
    type Error = serde_json::Error;

    fn next_key_seed<K: serde::de::DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        let key = match (self.kind, self.data) {
            (Some(_), _) => "kind",
            (None, Some(_)) => "data",
            (None, None) => return Ok(None),
        };
        seed.deserialize(serde::de::value::BorrowedStrDeserializer::new(key))
            .map(Some)
    }

    fn next_value_seed<V: serde::de::DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        if let Some(kind) = self.kind.take() {
            return seed.deserialize(serde::de::value::BorrowedStrDeserializer::new(kind));
        }
        let data = self.data.take().unwrap_or(RawValue::NULL);
        seed.deserialize(&mut serde_json::Deserializer::from_str(data.get()))
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
