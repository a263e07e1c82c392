//! The short, private folder for sockets: a socket's path cannot be longer than about 107 bytes.

use super::{FsError, create_dir_all};
use nix::unistd::Uid;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes of the state directory's hash in the folder's name; 16 hex characters.
const HASH_BYTES: usize = 8;

/// The folder for the sockets of one state directory, created with mode 0700 when missing.
///
/// `$XDG_RUNTIME_DIR/flockd-<hash>` when that variable names a folder of ours, else
/// `/tmp/flockd-<uid>-<hash>`. The same state directory gives the same folder, also by another
/// path to it. Not durable: it may be gone after a boot.
///
/// # Errors
/// [`FsError::RuntimeDir`] when the folder is a link, somebody else's, or open to others.
pub fn runtime_dir(state_dir: &Path) -> Result<PathBuf, FsError> {
    let xdg = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime_dir_in(state_dir, xdg.as_deref(), Path::new("/tmp"))
}

fn runtime_dir_in(state_dir: &Path, xdg: Option<&Path>, shared: &Path) -> Result<PathBuf, FsError> {
    let canonical = state_dir
        .canonicalize()
        .map_err(FsError::io("resolve", state_dir))?;
    let mut hash = String::with_capacity(HASH_BYTES * 2);
    for byte in Sha256::digest(canonical.as_os_str().as_bytes())
        .iter()
        .take(HASH_BYTES)
    {
        write!(hash, "{byte:02x}").expect("a string takes every text");
    }
    let uid = Uid::effective();
    let dir = match xdg.filter(|dir| is_ours(dir, uid)) {
        Some(dir) => dir.join(format!("flockd-{hash}")),
        None => shared.join(format!("flockd-{uid}-{hash}")),
    };
    create_dir_all(&dir)?;
    check(&dir, uid)?;
    Ok(dir)
}

fn is_ours(dir: &Path, uid: Uid) -> bool {
    dir.is_absolute()
        && std::fs::metadata(dir).is_ok_and(|meta| meta.is_dir() && meta.uid() == uid.as_raw())
}

fn check(dir: &Path, uid: Uid) -> Result<(), FsError> {
    let refuse = |why| {
        Err(FsError::RuntimeDir {
            path: dir.to_owned(),
            why,
        })
    };
    let meta = std::fs::symlink_metadata(dir).map_err(FsError::io("look at", dir))?;
    if !meta.is_dir() {
        return refuse("is no folder");
    }
    if meta.uid() != uid.as_raw() {
        return refuse("belongs to another user");
    }
    if meta.permissions().mode() & 0o077 != 0 {
        return refuse("is open to other users");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    #[test]
    fn one_state_directory_has_one_private_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (state, other) = (dir.path().join("state"), dir.path().join("other"));
        std::fs::create_dir(&state).unwrap();
        std::fs::create_dir(&other).unwrap();
        let xdg = dir.path().join("xdg");
        std::fs::create_dir(&xdg).unwrap();
        let first = runtime_dir_in(&state, Some(&xdg), dir.path()).unwrap();
        assert!(first.starts_with(&xdg));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&state, &link).unwrap();
        assert_eq!(
            runtime_dir_in(&link, Some(&xdg), dir.path()).unwrap(),
            first
        );
        assert_ne!(
            runtime_dir_in(&other, Some(&xdg), dir.path()).unwrap(),
            first
        );
        let shared = runtime_dir_in(&state, Some(&dir.path().join("none")), dir.path()).unwrap();
        assert_eq!(shared.parent(), Some(dir.path()));
        std::fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(
            runtime_dir_in(&state, None, dir.path()),
            Err(FsError::RuntimeDir { .. })
        ));
    }

    #[test]
    fn a_link_in_the_shared_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let shared = runtime_dir_in(dir.path(), None, dir.path()).unwrap();
        std::fs::remove_dir(&shared).unwrap();
        std::os::unix::fs::symlink(dir.path(), &shared).unwrap();
        assert!(runtime_dir_in(dir.path(), None, dir.path()).is_err());
    }
}
