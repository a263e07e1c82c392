//! A disk that refuses chosen operations, for tests of what happens then; knows nothing of facts.

use super::FsError;
use super::disk::{Disk, DiskFile, DiskLock, DiskOp};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Which operation is refused, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Counts only these; every operation when none.
    pub op: Option<DiskOp>,
    /// The first refused one of them, from 1.
    pub nth: u64,
    /// The answer, such as 28 (ENOSPC) or 5 (EIO).
    pub errno: i32,
    /// Whether all that follow are refused as well. Otherwise the disk is healthy again, as a kernel
    /// is that drops dirty pages after a failed sync.
    pub for_good: bool,
}

/// A disk that refuses by plan and counts what it was asked for.
#[derive(Debug, Clone)]
pub struct FaultDisk {
    inner: Arc<dyn Disk>,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Debug, Default)]
struct Plan {
    fault: Option<Fault>,
    seen: u64,
    counts: std::collections::HashMap<DiskOp, u64>,
    bytes: u64,
}

impl FaultDisk {
    /// A disk that refuses nothing yet.
    #[must_use]
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        Self {
            inner,
            plan: Arc::default(),
        }
    }

    /// Plans a fault, counted from now; none heals the disk.
    pub fn plan(&self, fault: Option<Fault>) {
        let mut plan = self.lock();
        plan.fault = fault;
        plan.seen = 0;
    }

    /// How many operations of a kind were asked for so far.
    #[must_use]
    pub fn count(&self, op: DiskOp) -> u64 {
        self.lock().counts.get(&op).copied().unwrap_or(0)
    }

    /// How many bytes were appended or replaced so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, op: DiskOp, path: &Path) -> Result<(), FsError> {
        let mut plan = self.lock();
        *plan.counts.entry(op).or_default() += 1;
        let Some(fault) = plan.fault else {
            return Ok(());
        };
        if fault.op.is_some_and(|wanted| wanted != op) {
            return Ok(());
        }
        plan.seen += 1;
        let refused = plan.seen == fault.nth || (fault.for_good && plan.seen > fault.nth);
        if refused {
            let cause = io::Error::from_raw_os_error(fault.errno);
            return Err(FsError::io("use (by plan)", path)(cause));
        }
        Ok(())
    }

    fn wrap(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(FaultFile {
            disk: self.clone(),
            path: path.to_owned(),
            file,
        })
    }
}

#[derive(Debug)]
struct FaultFile {
    disk: FaultDisk,
    path: PathBuf,
    file: Box<dyn DiskFile>,
}

impl DiskFile for FaultFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), FsError> {
        if let Err(error) = self.disk.ask(DiskOp::Append, &self.path) {
            // A refused write can have written a part, as on a full disk.
            self.file
                .append(bytes.get(..bytes.len() / 2).unwrap_or_default())?;
            return Err(error);
        }
        self.disk.lock().bytes += bytes.len() as u64;
        self.file.append(bytes)
    }

    fn sync_data(&mut self) -> Result<(), FsError> {
        self.disk.ask(DiskOp::SyncData, &self.path)?;
        self.file.sync_data()
    }
}

impl Disk for FaultDisk {
    fn create_dir(&self, path: &Path) -> Result<(), FsError> {
        self.ask(DiskOp::CreateDir, path)?;
        self.inner.create_dir(path)
    }

    fn create_new(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError> {
        self.ask(DiskOp::Create, path)?;
        Ok(self.wrap(path, self.inner.create_new(path)?))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError> {
        Ok(self.wrap(path, self.inner.open_append(path)?))
    }

    fn create_locked(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError> {
        self.ask(DiskOp::Create, path)?;
        Ok(self.wrap(path, self.inner.create_locked(path)?))
    }

    fn try_lock(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>, FsError> {
        self.inner.try_lock(path)
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, FsError> {
        self.inner.read(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>, FsError> {
        self.inner.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), FsError> {
        self.ask(DiskOp::SyncDir, dir)?;
        self.inner.sync_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FsError> {
        self.ask(DiskOp::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<(), FsError> {
        self.ask(DiskOp::Truncate, path)?;
        self.inner.truncate(path, len)
    }

    fn remove(&self, path: &Path) -> Result<(), FsError> {
        self.ask(DiskOp::Remove, path)?;
        self.inner.remove(path)
    }

    fn set_readonly(&self, path: &Path) -> Result<(), FsError> {
        self.ask(DiskOp::SetReadonly, path)?;
        self.inner.set_readonly(path)
    }

    fn replace_cached(&self, path: &Path, bytes: &[u8]) -> Result<(), FsError> {
        self.ask(DiskOp::Rename, path)?;
        self.lock().bytes += bytes.len() as u64;
        self.inner.replace_cached(path, bytes)
    }
}
