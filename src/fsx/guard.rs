//! What flockd refuses to keep state on: symbolic links, network file systems, locks that lie.

use super::error::{Context, FsError};
use super::lock::Lock;
use nix::sys::statfs::{FsType, statfs};
use std::path::Path;

/// Magic numbers of file systems whose flock is remote, emulated or missing (style §4.1, trap 9).
const NETWORK: [(i64, &str); 10] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x5346_414F, "AFS"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x00C3_6400, "Ceph"),
];

/// Set to `1` to keep state on such a file system all the same, at one's own risk.
const OVERRIDE: &str = "FLOCKD_ALLOW_NETWORK_FS";

/// Refuses a path that is a symbolic link; one that is not there is fine.
///
/// # Errors
/// [`FsError::Symlink`].
pub fn refuse_symlink(path: &Path) -> Result<(), FsError> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_symlink() => Err(FsError::Symlink(path.to_owned())),
        _ => Ok(()),
    }
}

/// Refuses a folder whose locks cannot be trusted: by the file system's type, then by trying. A lock
/// that is busy is not a lying one (behaviour 99).
///
/// # Errors
/// [`FsError::Lockless`], or [`FsError::Io`] when the probe cannot be made.
pub fn check_lockable(dir: &Path) -> Result<(), FsError> {
    let FsType(magic) = statfs(dir)
        .context("look at the file system of", dir)?
        .filesystem_type();
    let network = NETWORK.iter().find(|(m, _)| *m == magic);
    if let Some((_, name)) = network
        && std::env::var(OVERRIDE).as_deref() != Ok("1")
    {
        return Err(FsError::Lockless {
            path: dir.to_owned(),
            why: format!("{name}; {OVERRIDE}=1 overrides this"),
        });
    }
    let probe = dir.join("lock.probe");
    let Some(first) = Lock::try_exclusive(&probe)? else {
        return Ok(());
    };
    match Lock::try_exclusive(&probe)? {
        None => {
            drop(first);
            Ok(())
        }
        Some(_) => Err(FsError::Lockless {
            path: dir.to_owned(),
            why: "two holders of one exclusive lock".to_owned(),
        }),
    }
}
