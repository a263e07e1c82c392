//! What flockd refuses to work on: symbolic links, network file systems, locks that lie.

use super::{FsError, Lock};
use nix::sys::statfs::statfs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Set to `1` to allow a state directory on a network file system.
const ALLOW_NETWORK_FS: &str = "FLOCKD_ALLOW_NETWORK_FS";

/// Magic numbers of statfs(2) and `linux/magic.h`.
const NETWORK_FS: [(i64, &str); 9] = [
    (0x6969, "nfs"),
    (0x517B, "smb"),
    (0xFF53_4D42, "cifs"),
    (0xFE53_4D42, "smb2"),
    (0x5346_414F, "afs"),
    (0x7375_7245, "coda"),
    (0x0102_1997, "9p"),
    (0x00C3_6400, "ceph"),
    (0x0BD0_0BD0, "lustre"),
];

/// FUSE serves local disks and remote ones; the mount table has the difference.
const FUSE: i64 = 0x6573_5546;
const NETWORK_FUSE: [&str; 6] = [
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.glusterfs",
    "fuse.gcsfuse",
    "fuse.davfs",
];

/// Fails when the path itself is a symbolic link; links on the way to it are followed.
///
/// # Errors
/// [`FsError::Symlink`]; [`FsError::Io`] when the path cannot be looked at. A missing path is fine.
pub fn refuse_symlink(path: &Path) -> Result<(), FsError> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_symlink() => Err(FsError::Symlink {
            path: path.to_owned(),
        }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(FsError::io("look at", path)(error)),
    }
}

/// Makes sure that file locks under a folder tell who is alive (P2).
///
/// Refuses network file systems by type (`FLOCKD_ALLOW_NETWORK_FS=1` overrides that) and folders
/// in which a second lock of a locked file is granted (nothing overrides that). Leaves the file
/// `.lockable` in the folder.
///
/// # Errors
/// [`FsError::NetworkFs`], [`FsError::LocksLie`], or the system's refusal.
pub fn check_lockable(dir: &Path) -> Result<(), FsError> {
    let allowed = std::env::var_os(ALLOW_NETWORK_FS).is_some_and(|value| value == "1");
    if !allowed && let Some(kind) = network_fs(dir)? {
        return Err(FsError::NetworkFs {
            path: dir.to_owned(),
            kind,
        });
    }
    let probe = dir.join(".lockable");
    // Held by somebody else means that locks exclude; nothing more is to be shown.
    let Some(first) = Lock::try_exclusive(&probe)? else {
        return Ok(());
    };
    let second = Lock::try_exclusive(&probe)?;
    drop(first);
    match second {
        None => Ok(()),
        Some(_) => Err(FsError::LocksLie {
            path: dir.to_owned(),
        }),
    }
}

fn network_fs(dir: &Path) -> Result<Option<String>, FsError> {
    let stat = statfs(dir).map_err(FsError::errno("look up the file system of", dir))?;
    // The kernel's field is 32 bits of magic; its sign extension differs between machines.
    let magic = stat.filesystem_type().0 & 0xFFFF_FFFF;
    if magic == FUSE {
        return fuse_kind(dir);
    }
    Ok(NETWORK_FS
        .iter()
        .find(|(known, _)| *known == magic)
        .map(|(_, name)| (*name).to_owned()))
}

fn fuse_kind(dir: &Path) -> Result<Option<String>, FsError> {
    let meta = std::fs::metadata(dir).map_err(FsError::io("look at", dir))?;
    let device = format!(
        "{}:{}",
        nix::sys::stat::major(meta.dev()),
        nix::sys::stat::minor(meta.dev())
    );
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    Ok(mounts
        .lines()
        .filter(|line| line.split(' ').nth(2) == Some(&device))
        .filter_map(|line| line.split(" - ").nth(1)?.split(' ').next())
        .find(|kind| NETWORK_FUSE.contains(kind))
        .map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_folder_is_lockable_and_a_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        check_lockable(dir.path()).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(matches!(
            refuse_symlink(&link),
            Err(FsError::Symlink { .. })
        ));
        refuse_symlink(&dir.path().join("missing")).unwrap();
    }

    #[test]
    fn a_pseudo_file_system_is_no_network() {
        assert_eq!(network_fs(Path::new("/proc")).unwrap(), None);
    }
}
