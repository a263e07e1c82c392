//! The critical section: lock, read, and one atomic write. Owns how `leases.json` is read by writers.

use super::clock::Clock;
use super::error::LeaseError;
use super::record::{LeasesFile, SCHEMA_VERSION};
use super::table::{Moment, Table};
use crate::fsx;
use crate::fsx::lock::Lock;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

pub(super) fn leases_path(state_dir: &Path) -> PathBuf {
    state_dir.join("leases.json")
}

pub(super) fn lock_path(state_dir: &Path) -> PathBuf {
    state_dir.join("leases.json.lock")
}

/// The table as last read or written, with its bytes: when the file has the same bytes, it need not
/// be parsed again.
#[derive(Debug, Default)]
pub(super) struct Cache {
    bytes: Vec<u8>,
    table: Option<Table>,
}

/// The held section. Dropping it without [`Section::commit`] changes no byte.
#[derive(Debug)]
pub(super) struct Section<'a> {
    state_dir: &'a Path,
    lock: Lock,
    cache: &'a mut Cache,
    /// The lock file names an earlier boot, or none.
    boot_is_new: bool,
    /// The cache's bytes are the file's.
    cache_is_current: bool,
    pub(super) moment: Rc<Moment>,
    pub(super) table: Table,
}

impl<'a> Section<'a> {
    /// Takes the lock and reads the file.
    ///
    /// # Errors
    /// [`LeaseError::Corrupt`] and [`LeaseError::Newer`] leave the file as it is.
    pub(super) fn enter(
        state_dir: &'a Path,
        clock: &Arc<dyn Clock>,
        epoch_floor: u64,
        cache: &'a mut Cache,
    ) -> Result<Self, LeaseError> {
        let lock = Lock::exclusive(&lock_path(state_dir))?;
        let moment = Rc::new(Moment::now(clock));
        let last_boot = lock.read_text()?;
        let last_boot = last_boot.trim();
        let boot_is_new = last_boot != moment.boot_id;
        let path = leases_path(state_dir);
        let bytes = fsx::read(&path)?;
        let mut cache_is_current = false;
        let mut table = match (bytes, cache.table.take()) {
            (None, _) => Table::default(),
            (Some(bytes), Some(table)) if bytes == cache.bytes => {
                cache_is_current = true;
                table
            }
            (Some(bytes), _) => match parse(&path, &bytes) {
                Err(LeaseError::Corrupt { why, .. }) if boot_is_new && !last_boot.is_empty() => {
                    // Written without a sync before the machine went down. Its leases ended with that
                    // boot, so nothing live is lost; the bytes are kept for people.
                    set_aside(&path, &bytes, &why)?;
                    Table::default()
                }
                parsed => {
                    let table = parsed?;
                    cache.bytes = bytes;
                    cache_is_current = true;
                    table
                }
            },
        };
        table.raise_epoch(epoch_floor);
        Ok(Self {
            state_dir,
            lock,
            cache,
            boot_is_new,
            cache_is_current,
            moment,
            table,
        })
    }

    /// Leaves without a write; the unchanged table is kept for the next section.
    pub(super) fn leave(self) {
        self.cache.table = self.cache_is_current.then_some(self.table);
    }

    /// Writes the table, atomically and not durably: a lease ends with the boot anyway.
    ///
    /// # Errors
    /// [`LeaseError::File`]; the old file is intact.
    pub(super) fn commit(self) -> Result<(), LeaseError> {
        if self.boot_is_new {
            // Durable, so that after a power cut the file is known to be of an earlier boot.
            self.lock
                .write_text(&format!("{}\n", self.moment.boot_id))?;
            fsx::sync_file(&lock_path(self.state_dir))?;
        }
        let bytes = self.table.bytes(self.moment.wall);
        fsx::replace_cached(&leases_path(self.state_dir), &bytes)?;
        *self.cache = Cache {
            bytes,
            table: Some(self.table),
        };
        Ok(())
    }
}

/// Reads the file strictly.
///
/// # Errors
/// [`LeaseError::Corrupt`], [`LeaseError::Newer`].
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Table, LeaseError> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u64,
    }
    let corrupt = |error: serde_json::Error| LeaseError::Corrupt {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let version: Version = serde_json::from_slice(bytes).map_err(corrupt)?;
    if version.schema_version > SCHEMA_VERSION {
        return Err(LeaseError::Newer {
            path: path.to_owned(),
            found: version.schema_version,
            known: SCHEMA_VERSION,
        });
    }
    let file: LeasesFile = serde_json::from_slice(bytes).map_err(corrupt)?;
    Table::new(file).map_err(corrupt)
}

fn set_aside(path: &Path, bytes: &[u8], why: &str) -> Result<(), LeaseError> {
    let kept = path.with_extension("json.damaged");
    fsx::replace_durable(&kept, bytes)?;
    tracing::warn!(kept = %kept.display(), why, "leases.json of an earlier boot is damaged and set aside");
    Ok(())
}
