//! The critical section: lock, read, and one atomic write. Owns how `leases.json` is read by writers.

use super::clock::Clock;
use super::error::LeaseError;
use super::record::{LeasesFile, SCHEMA_VERSION};
use super::table::{Moment, Table};
use crate::fsx::lock::Lock;
use crate::fsx::{self, FsError};
use serde::Deserialize;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

pub(super) fn leases_path(state_dir: &Path) -> PathBuf {
    state_dir.join("leases.json")
}

pub(super) fn lock_path(state_dir: &Path) -> PathBuf {
    state_dir.join("leases.json.lock")
}

/// The table as last read or written, and the file it is the content of.
#[derive(Debug, Default)]
pub(super) struct Cache {
    table: Option<Table>,
    version: Option<Version>,
    /// The file before that. Its last descriptor is closed one write later, when the disk is done with
    /// it: closing earlier waits for the disk.
    _replaced: Option<Version>,
}

/// One version of the file. Writers replace it, so another version is another inode; while this one
/// is open, its inode cannot be given to another file. Size and times tell an edit by hand.
#[derive(Debug)]
struct Version {
    file: File,
    seen: Seen,
}

type Seen = (u64, u64, u64, i64, i64, i64);

impl Version {
    fn open(path: &Path) -> Result<Option<Self>, LeaseError> {
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let file = fsx::open_input(path)?;
        let meta = file.metadata().map_err(FsError::io("look at", path))?;
        Ok(Some(Self {
            file,
            seen: seen(&meta),
        }))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, LeaseError> {
        let mut bytes = Vec::new();
        let mut file = &self.file;
        file.read_to_end(&mut bytes)
            .map_err(FsError::io("read", path))?;
        Ok(bytes)
    }

    fn is_current(&self, path: &Path) -> bool {
        path.symlink_metadata()
            .is_ok_and(|meta| seen(&meta) == self.seen)
    }
}

fn seen(meta: &Metadata) -> Seen {
    (
        meta.dev(),
        meta.ino(),
        meta.size(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime_nsec(),
    )
}

/// The held section. Dropping it without [`Section::commit`] changes no byte.
#[derive(Debug)]
pub(super) struct Section<'a> {
    state_dir: &'a Path,
    lock: Lock,
    cache: &'a mut Cache,
    /// The lock file names an earlier boot, or none.
    boot_is_new: bool,
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
        let known = cache.table.take();
        let current = cache
            .version
            .as_ref()
            .is_some_and(|version| version.is_current(&path));
        let mut table = match known.filter(|_| current) {
            Some(table) => table,
            None => {
                cache.version = Version::open(&path)?;
                match &cache.version {
                    None => Table::default(),
                    Some(version) => {
                        let earlier_boot = boot_is_new && !last_boot.is_empty();
                        read_table(&path, &version.read(&path)?, earlier_boot)?
                    }
                }
            }
        };
        table.raise_epoch(epoch_floor);
        Ok(Self {
            state_dir,
            lock,
            cache,
            boot_is_new,
            moment,
            table,
        })
    }

    /// Leaves without a write; the unchanged table is kept for the next section.
    pub(super) fn leave(self) {
        self.cache.table = Some(self.table);
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
        let path = leases_path(self.state_dir);
        fsx::replace_cached(&path, &self.table.bytes(self.moment.wall))?;
        *self.cache = Cache {
            table: Some(self.table),
            _replaced: self.cache.version.take(),
            version: Version::open(&path)?,
        };
        Ok(())
    }
}

fn read_table(path: &Path, bytes: &[u8], earlier_boot: bool) -> Result<Table, LeaseError> {
    match parse(path, bytes) {
        Err(LeaseError::Corrupt { why, .. }) if earlier_boot => {
            // Written without a sync before the machine went down. Its leases ended with that boot, so
            // nothing live is lost; the bytes are kept for people.
            set_aside(path, bytes, &why)?;
            Ok(Table::default())
        }
        parsed => parsed,
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
