//! `config show`: every value with its place; secrets masked.

use super::keys::{self, NAMED, SECTIONS, STAGE};
use super::merge::{Merged, built_in};
use super::place::Place;
use super::value::Value;
use serde::Serialize;

/// One row of `config show`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownValue {
    /// The dotted key.
    pub key: String,
    /// The value in use, as a file would have it.
    pub value: serde_json::Value,
    /// `default`, `file:line`, the variable's name or the flag.
    pub source: Place,
    /// `default`, `user`, `project`, `local`, `environment`, `flag`.
    pub layer: &'static str,
}

/// Fixed sections first, in the order of the table, then agents, roles and stages.
pub(super) fn values(merged: &Merged) -> Vec<ShownValue> {
    let mut shown = Vec::new();
    for section in SECTIONS {
        for key in section.keys {
            let dotted = keys::dotted(section.name, key.name);
            if let Some(leaf) = merged.leaves.get(&dotted) {
                shown.push(row(dotted, &leaf.value, leaf.place.clone()));
            }
        }
    }
    for (named, keys) in NAMED {
        let prefix = format!("{named}.");
        for table in merged
            .tables
            .keys()
            .filter(|table| table.starts_with(&prefix))
        {
            for key in *keys {
                let dotted = format!("{table}.{}", key.name);
                match merged.leaves.get(&dotted) {
                    Some(leaf) => shown.push(row(dotted, &leaf.value, leaf.place.clone())),
                    None => shown.extend(built_in(key).map(|v| row(dotted, &v, Place::Default))),
                }
            }
        }
    }
    for (index, stage) in merged.stages.iter().enumerate() {
        for key in STAGE {
            if let Some(leaf) = stage.leaves.get(key.name) {
                let dotted = format!("stages[{index}].{}", key.name);
                shown.push(row(dotted, &leaf.value, leaf.place.clone()));
            }
        }
    }
    shown
}

fn row(key: String, value: &Value, source: Place) -> ShownValue {
    let value = match value {
        Value::Text(url) if key == "store.url" => masked_url(url).into(),
        other => other.to_json(),
    };
    ShownValue {
        layer: source.layer(),
        key,
        value,
        source,
    }
}

/// `postgres://user:***@host/db`: the password never leaves the process.
pub(super) fn masked_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let Some((login, host)) = rest.rsplit_once('@') else {
        return url.to_owned();
    };
    match login.split_once(':') {
        Some((user, _)) => format!("{scheme}://{user}:***@{host}"),
        None => url.to_owned(),
    }
}
