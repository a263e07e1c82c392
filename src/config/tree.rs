//! TOML text as a tree in which every key and value knows its line. Knows no keys.

use toml::de::{DeTable, DeValue};

/// A value and where it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) raw: Raw,
    pub(super) line: u32,
}

/// A value of any key.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Raw {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// A date or a number that no key takes; kept for the message.
    Other(String),
}

/// A key with its value; `line` is the key's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: u32,
    pub(super) node: Node,
}

impl Raw {
    /// What it is, for a message.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Bool(on) => on.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::Other(text) => text.clone(),
        }
    }
}

/// Reads a document; entries come in the order of the file.
///
/// # Errors
/// The line and what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Vec<Entry>, (u32, String)> {
    let lines = Lines::new(text);
    match DeTable::parse(text) {
        Ok(table) => Ok(entries(table.get_ref(), &lines)),
        Err(error) => {
            let line = error.span().map_or(1, |span| lines.of(span.start));
            let first = error
                .message()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            Err((line, format!("not TOML: {first}")))
        }
    }
}

/// Where lines start, to find the line of an offset.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn of(&self, offset: usize) -> u32 {
        let before = self.0.partition_point(|newline| *newline < offset);
        u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
    }
}

fn entries(table: &DeTable<'_>, lines: &Lines) -> Vec<Entry> {
    let mut found: Vec<(usize, Entry)> = table
        .iter()
        .map(|(key, value)| {
            let at = key.span().start;
            let entry = Entry {
                key: key.get_ref().to_string(),
                line: lines.of(at),
                node: Node {
                    raw: raw(value.get_ref(), lines),
                    line: lines.of(value.span().start),
                },
            };
            (at, entry)
        })
        .collect();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, entry)| entry).collect()
}

fn raw(value: &DeValue<'_>, lines: &Lines) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Raw::Other(number.to_string()), Raw::Integer),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or_else(|_| Raw::Other(number.to_string()), Raw::Float),
        DeValue::Boolean(on) => Raw::Bool(*on),
        DeValue::Datetime(when) => Raw::Other(when.to_string()),
        DeValue::Array(items) => Raw::List(
            items
                .iter()
                .map(|item| Node {
                    raw: raw(item.get_ref(), lines),
                    line: lines.of(item.span().start),
                })
                .collect(),
        ),
        DeValue::Table(table) => Raw::Table(entries(table, lines)),
    }
}
