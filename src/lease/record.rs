//! The shapes of `leases.json` (config §7) and its bytes: 2-space indent, sorted keys, final newline.

use crate::types::{ClaimSet, LeaseId, RunId, TaskId, Timestamp};
use serde::{Deserialize, Serialize, Serializer};

/// The version this program reads and writes.
pub(super) const SCHEMA_VERSION: u64 = 1;

/// What a lease allows. Only write leases exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseMode {
    /// Changes the paths.
    Write,
    /// Reads them: recorded, never in the way.
    Read,
}

/// Whether a lease's owner is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseStatus {
    /// Its owner lives.
    Active,
    /// Its owner died, a runner still holds it, nobody has adopted it yet.
    Recovering,
}

/// Who claimed: for people, and to know one's own lease again. Liveness is the `.live` file's (P2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// The boot it belongs to: a lease never outlives it.
    pub boot_id: String,
    /// The machine's name.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// When that process started.
    #[serde(serialize_with = "whole_seconds")]
    pub started_at: Timestamp,
}

impl Holder {
    /// A process of this machine and boot.
    #[must_use]
    pub fn this_process(host: &str, boot_id: &str, pid: u32, started_at: Timestamp) -> Self {
        Self {
            boot_id: boot_id.to_owned(),
            host: host.to_owned(),
            pid,
            started_at,
        }
    }

    /// Whether both are the same process. The start time is compared as it is written.
    #[must_use]
    pub fn is_same_process(&self, other: &Self) -> bool {
        self.pid == other.pid
            && self.boot_id == other.boot_id
            && self.started_at.as_millis().div_euclid(1000)
                == other.started_at.as_millis().div_euclid(1000)
    }
}

/// One entry of `leases.json`: all paths of one claim, so that a crash leaves no half claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseRecord {
    /// When the task first claimed; a replaced claim keeps it.
    #[serde(serialize_with = "whole_seconds")]
    pub acquired_at: Timestamp,
    /// Fencing token: unique and rising over all leases of a state directory.
    pub epoch: u64,
    /// For people: when a claim without a living holder ends.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "whole_seconds_option"
    )]
    pub expires_at: Option<Timestamp>,
    /// When it ends, in milliseconds since boot. A living holder outlasts it (W5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_boot_ms: Option<u64>,
    /// Who claimed.
    pub holder: Holder,
    /// Names the `.live` file; never used again.
    pub lease_id: LeaseId,
    /// What it allows.
    pub mode: LeaseMode,
    /// The claimed paths.
    pub paths: ClaimSet,
    /// The runs that work under it.
    pub run_ids: Vec<RunId>,
    /// Whether its owner is at work.
    pub status: LeaseStatus,
    /// The task.
    pub task_id: TaskId,
}

/// The whole file as a writer reads it: an unknown key is refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeasesFile {
    #[expect(
        dead_code,
        reason = "checked to be a time, then replaced by the writer's own"
    )]
    pub(super) generated_at: Timestamp,
    pub(super) leases: Vec<LeaseRecord>,
    pub(super) next_epoch: u64,
    #[expect(dead_code, reason = "looked at before the rest is read")]
    pub(super) schema_version: u64,
}

/// A record's bytes at its place in the file.
pub(super) fn record_text(record: &LeaseRecord) -> serde_json::Result<String> {
    let pretty = serde_json::to_string_pretty(record)?;
    // A string's own newlines are escaped, so every line break is one of the layout.
    Ok(format!("    {}", pretty.replace('\n', "\n    ")))
}

/// Bytes of the file outside of its records, rounded up.
const FRAME_BYTES: usize = 256;

/// The file's bytes around the records' own.
pub(super) fn file_bytes<'a>(
    generated_at: Timestamp,
    next_epoch: u64,
    records: impl Iterator<Item = &'a str> + Clone,
) -> Vec<u8> {
    let len: usize = records.clone().map(|record| record.len() + 2).sum();
    let mut text = String::with_capacity(len + FRAME_BYTES);
    text.push_str("{\n  \"generated_at\": \"");
    text.push_str(&generated_at.seconds());
    text.push_str("\",\n  \"leases\": [");
    let mut some = false;
    for record in records {
        text.push_str(if some { ",\n" } else { "\n" });
        text.push_str(record);
        some = true;
    }
    let close = if some { "\n  " } else { "" };
    text.push_str(&format!(
        "{close}],\n  \"next_epoch\": {next_epoch},\n  \"schema_version\": {SCHEMA_VERSION}\n}}\n"
    ));
    text.into_bytes()
}

fn whole_seconds<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.seconds())
}

fn whole_seconds_option<S: Serializer>(
    at: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => whole_seconds(at, serializer),
        None => serializer.serialize_none(),
    }
}
