//! A disk in memory that loses power at a chosen operation and shows what could be left of it.
//! Two images: what programs see and what is on the platter. Content gets there by a sync of the
//! file, a name (created, renamed, removed) by a sync of its folder.

use super::FsError;
use super::disk::{Cut, DataKept, Disk, DiskFile, DiskLock, DiskOp, NamesKept, Survival};
use nix::errno::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Dir,
    File(u64),
}

#[derive(Debug, Clone, Default)]
struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    readonly: bool,
}

#[derive(Debug, Default)]
struct Image {
    inodes: BTreeMap<u64, Inode>,
    live: BTreeMap<PathBuf, Node>,
    durable: BTreeMap<PathBuf, Node>,
    locks: BTreeSet<u64>,
    next_inode: u64,
    ops: Vec<DiskOp>,
    cut: Option<Cut>,
    off: bool,
}

/// The disk. Clones are the same disk.
#[derive(Debug, Clone)]
pub struct CrashDisk(Arc<Mutex<Image>>);

fn errno(path: &Path, errno: Errno) -> FsError {
    FsError::errno("use (on the crash disk)", path)(errno)
}

impl CrashDisk {
    /// An empty disk with one durable folder.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        let mut image = Image::default();
        image.live.insert(root.to_owned(), Node::Dir);
        image.durable.insert(root.to_owned(), Node::Dir);
        Self(Arc::new(Mutex::new(image)))
    }

    /// Plans the loss of power, counted from the disk's first operation.
    pub fn cut(&self, cut: Cut) {
        self.image().cut = Some(cut);
    }

    /// The operations so far, the refused one included.
    #[must_use]
    pub fn ops(&self) -> Vec<DiskOp> {
        self.image().ops.clone()
    }

    /// Whether the power is gone: everything fails with EIO.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.image().off
    }

    /// A new, healthy disk with what is left of this one. All of it is durable, no lock is held.
    #[must_use]
    pub fn restart(&self, survival: Survival) -> Self {
        let image = self.image();
        let names = match survival.names {
            NamesKept::Synced => &image.durable,
            NamesKept::All => &image.live,
        };
        let roots = |path: &Path| {
            !path
                .parent()
                .is_some_and(|dir| image.live.contains_key(dir))
        };
        let mut left = Image {
            next_inode: image.next_inode,
            ..Image::default()
        };
        // Sorted by path: a folder comes before what is in it, and without it that is lost too.
        for (path, node) in names {
            let reachable = roots(path)
                || path
                    .parent()
                    .is_some_and(|dir| left.live.get(dir) == Some(&Node::Dir));
            if !reachable {
                continue;
            }
            left.live.insert(path.clone(), *node);
            if let Node::File(id) = node
                && let Some(inode) = image.inodes.get(id)
            {
                let bytes = surviving(inode, survival.data);
                left.inodes.insert(
                    *id,
                    Inode {
                        live: bytes.clone(),
                        durable: bytes,
                        readonly: inode.readonly,
                    },
                );
            }
        }
        left.durable = left.live.clone();
        Self(Arc::new(Mutex::new(left)))
    }

    /// The process died and the machine did not: what programs saw is all there, and what no sync
    /// covered can still be lost. Locks are free, the planned cut is forgotten.
    pub fn kill_process(&self) {
        let mut image = self.image();
        image.locks.clear();
        image.cut = None;
        image.off = false;
    }

    fn image(&self) -> MutexGuard<'_, Image> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, path: &Path, inode: u64, locked: bool) -> Box<dyn DiskFile> {
        Box::new(CrashFile {
            disk: self.clone(),
            path: path.to_owned(),
            inode,
            locked,
        })
    }
}

fn surviving(inode: &Inode, data: DataKept) -> Vec<u8> {
    let appended = inode.live.strip_prefix(inode.durable.as_slice());
    let with = |tail: &[u8]| [inode.durable.as_slice(), tail].concat();
    match (data, appended) {
        (DataKept::Synced, _) => inode.durable.clone(),
        (DataKept::All, _) | (_, None) => inode.live.clone(),
        (DataKept::Torn(len), Some(tail)) => with(tail.get(..len).unwrap_or(tail)),
        (DataKept::Zeroed, Some(tail)) => with(&vec![0; tail.len()]),
    }
}

impl Image {
    /// Counts an operation and refuses it when the power is gone.
    fn step(&mut self, op: DiskOp, path: &Path) -> Result<(), FsError> {
        if self.off {
            return Err(errno(path, Errno::EIO));
        }
        self.ops.push(op);
        if self.cut.is_some_and(|cut| cut.at == self.ops.len()) {
            self.off = true;
            return Err(errno(path, Errno::EIO));
        }
        Ok(())
    }

    fn file(&self, path: &Path) -> Result<u64, FsError> {
        match self.live.get(path) {
            Some(Node::File(id)) => Ok(*id),
            Some(Node::Dir) => Err(errno(path, Errno::EISDIR)),
            None => Err(errno(path, Errno::ENOENT)),
        }
    }

    fn create(&mut self, path: &Path) -> Result<u64, FsError> {
        self.step(DiskOp::Create, path)?;
        if self.live.contains_key(path) {
            return Err(errno(path, Errno::EEXIST));
        }
        if !path.parent().is_some_and(|dir| self.live.contains_key(dir)) {
            return Err(errno(path, Errno::ENOENT));
        }
        let id = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(id, Inode::default());
        self.live.insert(path.to_owned(), Node::File(id));
        Ok(id)
    }

    fn append(&mut self, inode: u64, path: &Path, bytes: &[u8]) -> Result<(), FsError> {
        let was_off = self.off;
        let result = self.step(DiskOp::Append, path);
        let written = match (&result, self.cut) {
            (Ok(()), _) => bytes,
            (Err(_), Some(cut)) if !was_off => bytes.get(..cut.torn).unwrap_or(bytes),
            (Err(_), _) => &[],
        };
        if let Some(inode) = self.inodes.get_mut(&inode) {
            inode.live.extend_from_slice(written);
        }
        result
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Result<(), FsError> {
        self.step(DiskOp::Rename, from)?;
        let node = self
            .live
            .remove(from)
            .ok_or_else(|| errno(from, Errno::ENOENT))?;
        self.live.insert(to.to_owned(), node);
        Ok(())
    }
}

#[derive(Debug)]
struct CrashFile {
    disk: CrashDisk,
    path: PathBuf,
    inode: u64,
    locked: bool,
}

impl DiskFile for CrashFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), FsError> {
        self.disk.image().append(self.inode, &self.path, bytes)
    }

    fn sync_data(&mut self) -> Result<(), FsError> {
        let mut image = self.disk.image();
        image.step(DiskOp::SyncData, &self.path)?;
        if let Some(inode) = image.inodes.get_mut(&self.inode) {
            inode.durable = inode.live.clone();
        }
        Ok(())
    }
}

impl DiskLock for CrashFile {}

impl Drop for CrashFile {
    fn drop(&mut self) {
        if self.locked {
            self.disk.image().locks.remove(&self.inode);
        }
    }
}

impl Disk for CrashDisk {
    fn create_dir(&self, path: &Path) -> Result<(), FsError> {
        let mut image = self.image();
        if image.live.contains_key(path) {
            return Ok(());
        }
        image.step(DiskOp::CreateDir, path)?;
        image.live.insert(path.to_owned(), Node::Dir);
        Ok(())
    }

    fn create_new(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError> {
        let inode = self.image().create(path)?;
        Ok(self.handle(path, inode, false))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError> {
        let image = self.image();
        let inode = image.file(path)?;
        if image.inodes.get(&inode).is_some_and(|inode| inode.readonly) {
            return Err(errno(path, Errno::EACCES));
        }
        Ok(self.handle(path, inode, false))
    }

    fn create_locked(&self, path: &Path) -> Result<Box<dyn DiskFile>, FsError> {
        let mut image = self.image();
        let inode = image.create(path)?;
        image.locks.insert(inode);
        Ok(self.handle(path, inode, true))
    }

    fn try_lock(&self, path: &Path) -> Result<Option<Box<dyn DiskLock>>, FsError> {
        let mut image = self.image();
        let inode = image.file(path)?;
        let taken = image.locks.insert(inode);
        Ok(taken.then(|| {
            Box::new(CrashFile {
                disk: self.clone(),
                path: path.to_owned(),
                inode,
                locked: true,
            }) as Box<dyn DiskLock>
        }))
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, FsError> {
        let image = self.image();
        match image.live.get(path) {
            None => Ok(None),
            Some(Node::Dir) => Err(errno(path, Errno::EISDIR)),
            Some(Node::File(id)) => Ok(image.inodes.get(id).map(|inode| inode.live.clone())),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>, FsError> {
        let image = self.image();
        Ok(image
            .live
            .keys()
            .filter(|path| path.parent() == Some(dir))
            .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
            .collect())
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), FsError> {
        let mut image = self.image();
        image.step(DiskOp::SyncDir, dir)?;
        let inside = |path: &Path| path.parent() == Some(dir);
        image.durable.retain(|path, _| !inside(path));
        let names: Vec<(PathBuf, Node)> = image
            .live
            .iter()
            .filter(|(path, _)| inside(path))
            .map(|(path, node)| (path.clone(), *node))
            .collect();
        image.durable.extend(names);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FsError> {
        self.image().rename(from, to)
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<(), FsError> {
        let mut image = self.image();
        let id = image.file(path)?;
        image.step(DiskOp::Truncate, path)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if let Some(inode) = image.inodes.get_mut(&id) {
            inode.live.truncate(len);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<(), FsError> {
        let mut image = self.image();
        image.step(DiskOp::Remove, path)?;
        image.live.remove(path);
        Ok(())
    }

    fn set_readonly(&self, path: &Path) -> Result<(), FsError> {
        let mut image = self.image();
        let id = image.file(path)?;
        image.step(DiskOp::SetReadonly, path)?;
        if let Some(inode) = image.inodes.get_mut(&id) {
            inode.readonly = true;
        }
        Ok(())
    }

    fn replace_cached(&self, path: &Path, bytes: &[u8]) -> Result<(), FsError> {
        let mut image = self.image();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let temp = path.with_file_name(format!(".{name}.c{:07}.tmp", image.next_inode));
        let inode = image.create(&temp)?;
        image.append(inode, &temp, bytes)?;
        image.rename(&temp, path)
    }
}
