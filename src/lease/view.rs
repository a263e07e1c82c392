//! Looking at the leases without a lock. Tolerant: shows what can be read and says what cannot.

use super::record::LeaseRecord;
use super::section::{leases_path, parse};
use crate::fsx;
use std::path::Path;

/// A lease and whether somebody holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseView {
    /// The entry.
    pub record: LeaseRecord,
    /// Whether a process holds it, or its TTL has time left.
    pub alive: bool,
}

/// What a reader could make of `leases.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeasesRead {
    /// The entries that can be read, oldest first.
    pub leases: Vec<LeaseRecord>,
    /// What is wrong with the file, for people; writers refuse it.
    pub problem: Option<String>,
}

/// Reads `leases.json` without a lock (behaviours 97 and 100). A missing file is no leases.
#[must_use]
pub fn read_leases(state_dir: &Path) -> LeasesRead {
    let path = leases_path(state_dir);
    let bytes = match fsx::read(&path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return LeasesRead::default(),
        Err(error) => {
            return LeasesRead {
                leases: Vec::new(),
                problem: Some(error.to_string()),
            };
        }
    };
    match parse(&path, &bytes) {
        Ok(table) => LeasesRead {
            leases: table.records().cloned().collect(),
            problem: None,
        },
        Err(error) => LeasesRead {
            leases: readable(&bytes),
            problem: Some(error.to_string()),
        },
    }
}

/// The entries that are whole, of a file that is not. A bare list is accepted as well.
fn readable(bytes: &[u8]) -> Vec<LeaseRecord> {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else {
        return Vec::new();
    };
    let list = value.get("leases").unwrap_or(&value).as_array();
    list.into_iter()
        .flatten()
        .filter_map(|entry| serde_json::from_value(entry.clone()).ok())
        .collect()
}
