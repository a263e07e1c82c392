//! What a key may hold and the checked value. Knows kinds, not keys.

use super::nearest::nearest;
use super::tree::{Node, Raw};
use crate::types::{format_duration, format_size, parse_duration, parse_size};
use std::time::Duration;

/// What a key may hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// X, Y, Z, M and the like: an integer; zero or less means 1, never unlimited.
    Cap,
    /// An integer from 1.
    Positive,
    /// An integer from 0.
    Count,
    /// Any integer.
    Integer,
    /// An integer from 1; 0, `infinite` and `unlimited` mean no end.
    Target,
    Bool,
    Duration,
    Size,
    /// Dollars, from 0.
    Money,
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of texts that are not empty.
    List,
    /// `all`, `any` or an integer from 1.
    Require,
}

/// A checked value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Integer(i64),
    Infinite,
    Bool(bool),
    Duration(Duration),
    Size(u64),
    Money(f64),
    Text(String),
    List(Vec<String>),
}

/// A checked value, and what was adjusted to make it one.
pub(super) type Checked = Result<(Value, Option<String>), String>;

/// The largest integer of a setting: it has to fit where it is used.
const INTEGER_MAX: i64 = u32::MAX as i64;

impl Kind {
    /// What belongs there, for messages and the schema.
    pub(super) fn expects(self) -> String {
        match self {
            Self::Cap | Self::Positive => "a whole number, 1 or more".to_owned(),
            Self::Count => "a whole number, 0 or more".to_owned(),
            Self::Integer => "a whole number".to_owned(),
            Self::Target => "a whole number, or \"infinite\"".to_owned(),
            Self::Bool => "true or false".to_owned(),
            Self::Duration => "a duration as in \"90s\", \"10m\", \"2h\"".to_owned(),
            Self::Size => "a size as in \"64MiB\"".to_owned(),
            Self::Money => "an amount in dollars, 0 or more".to_owned(),
            Self::Text => "a text in quotes".to_owned(),
            Self::Word(words) => format!("one of {}", quoted(words)),
            Self::List => "a list of texts as in [\"a\", \"b\"]".to_owned(),
            Self::Require => "\"all\", \"any\" or a whole number, 1 or more".to_owned(),
        }
    }

    /// Checks a value from a file or a `--set` flag.
    pub(super) fn check(self, raw: &Raw) -> Checked {
        let wrong = || {
            Err(format!(
                "{} is not right here: write {}",
                raw.describe(),
                self.expects()
            ))
        };
        match (self, raw) {
            (Self::Cap, Raw::Integer(n)) if *n <= 0 => Ok((
                Value::Integer(1),
                Some(format!("{n} means 1: a ceiling is never unlimited")),
            )),
            (Self::Cap | Self::Positive, Raw::Integer(n)) if (1..=INTEGER_MAX).contains(n) => {
                plain(Value::Integer(*n))
            }
            (Self::Count, Raw::Integer(n)) if (0..=INTEGER_MAX).contains(n) => {
                plain(Value::Integer(*n))
            }
            (Self::Integer, Raw::Integer(n)) => plain(Value::Integer(*n)),
            (Self::Target, Raw::Integer(0)) => plain(Value::Infinite),
            (Self::Target, Raw::Integer(n)) if (1..=INTEGER_MAX).contains(n) => {
                plain(Value::Integer(*n))
            }
            (Self::Target, Raw::Text(text)) if means_infinite(text) => plain(Value::Infinite),
            (Self::Bool, Raw::Bool(on)) => plain(Value::Bool(*on)),
            (Self::Duration, Raw::Text(text)) => parse_duration(text)
                .map_or_else(|e| Err(e.to_string()), |d| plain(Value::Duration(d))),
            (Self::Duration, Raw::Integer(0)) => plain(Value::Duration(Duration::ZERO)),
            (Self::Size, Raw::Text(text)) => {
                parse_size(text).map_or_else(|e| Err(e.to_string()), |b| plain(Value::Size(b)))
            }
            (Self::Size, Raw::Integer(n)) => {
                u64::try_from(*n).map_or_else(|_| wrong(), |b| plain(Value::Size(b)))
            }
            (Self::Money, Raw::Float(n)) if n.is_finite() && *n >= 0.0 => plain(Value::Money(*n)),
            (Self::Money, Raw::Integer(n)) if (0..=INTEGER_MAX).contains(n) => {
                plain(Value::Money(u32::try_from(*n).map_or(0.0, f64::from)))
            }
            (Self::Text, Raw::Text(text)) => plain(Value::Text(text.clone())),
            (Self::Word(words), Raw::Text(text)) => word(words, text),
            (Self::List, Raw::List(items)) => list(items),
            (Self::Require, Raw::Text(text)) => word(&["all", "any"], text),
            (Self::Require, Raw::Integer(n)) if (1..=INTEGER_MAX).contains(n) => {
                plain(Value::Integer(*n))
            }
            _ => wrong(),
        }
    }

    /// Checks the text of an environment variable, or of a flag that takes a plain word.
    pub(super) fn check_text(self, text: &str) -> Checked {
        let trimmed = text.trim();
        let raw = match self {
            Self::Cap | Self::Positive | Self::Count | Self::Integer => integer(trimmed),
            Self::Target | Self::Require | Self::Duration | Self::Size => integer_or_text(trimmed),
            Self::Money => trimmed
                .parse()
                .map_or_else(|_| Raw::Text(text.to_owned()), Raw::Float),
            Self::Bool => truth(trimmed).map_or_else(|| Raw::Text(text.to_owned()), Raw::Bool),
            Self::Text => Raw::Text(text.to_owned()),
            Self::Word(_) => Raw::Text(trimmed.to_owned()),
            Self::List => return list_from_text(trimmed),
        };
        self.check(&raw)
    }
}

fn plain(value: Value) -> Checked {
    Ok((value, None))
}

fn integer(text: &str) -> Raw {
    text.parse()
        .map_or_else(|_| Raw::Text(text.to_owned()), Raw::Integer)
}

fn integer_or_text(text: &str) -> Raw {
    integer(text)
}

/// `infinite`, `unlimited` and 0, in any case and with space around.
fn means_infinite(text: &str) -> bool {
    matches!(
        text.trim().to_ascii_lowercase().as_str(),
        "0" | "infinite" | "unlimited"
    )
}

/// What the environment calls true and false.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn word(words: &'static [&'static str], text: &str) -> Checked {
    if words.contains(&text) {
        return plain(Value::Text(text.to_owned()));
    }
    let hint = nearest(text, words.iter().copied())
        .map_or_else(String::new, |near| format!(", did you mean {near:?}?"));
    Err(format!("{text:?} is not one of {}{hint}", quoted(words)))
}

fn list(items: &[Node]) -> Checked {
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        match &item.raw {
            Raw::Text(text) if !text.trim().is_empty() => texts.push(text.clone()),
            Raw::Text(_) => return Err("an entry of the list is empty: remove it".to_owned()),
            other => {
                return Err(format!(
                    "{} in the list is not a text: put it in quotes",
                    other.describe()
                ));
            }
        }
    }
    plain(Value::List(texts))
}

/// `["a", "b c"]`, or words with commas between.
fn list_from_text(text: &str) -> Checked {
    if text.starts_with('[') {
        let document = format!("v = {text}");
        let entries = super::tree::parse(&document).map_err(|(_, message)| message)?;
        return match entries.into_iter().next() {
            Some(entry) => Kind::List.check(&entry.node.raw),
            None => Err("not a list".to_owned()),
        };
    }
    let items = text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty());
    plain(Value::List(items.map(str::to_owned).collect()))
}

fn quoted(words: &[&str]) -> String {
    words
        .iter()
        .map(|w| format!("{w:?}"))
        .collect::<Vec<_>>()
        .join(", ")
}

impl Value {
    /// As `config show --json` has it.
    pub(super) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Integer(n) => (*n).into(),
            Self::Infinite => "infinite".into(),
            Self::Bool(on) => (*on).into(),
            Self::Duration(d) => format_duration(*d).into(),
            Self::Size(bytes) => format_size(*bytes).into(),
            Self::Money(n) => (*n).into(),
            Self::Text(text) => text.clone().into(),
            Self::List(items) => items.clone().into(),
        }
    }
}
