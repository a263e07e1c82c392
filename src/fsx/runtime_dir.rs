//! Where sockets live: a short private folder, since a socket's path may have 107 bytes only.

use super::error::{Context, FsError};
use super::files::create_dir_all;
use sha2::{Digest, Sha256};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folder for the sockets of one state directory, made if needed: under `XDG_RUNTIME_DIR` if that is
/// ours, else under `/tmp`; 0700, ours, no symbolic link.
///
/// # Errors
/// [`FsError::NotPrivate`] when somebody else made it, [`FsError::Io`] when it cannot be made.
pub fn runtime_dir(state_dir: &Path) -> Result<PathBuf, FsError> {
    let canonical = state_dir.canonicalize().context("resolve", state_dir)?;
    let digest = Sha256::digest(canonical.as_os_str().as_bytes());
    let hash: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
    let uid = nix::unistd::geteuid().as_raw();
    let private = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|p| {
            p.is_absolute()
                && p.symlink_metadata()
                    .is_ok_and(|m| m.is_dir() && m.uid() == uid)
        });
    let dir = match private {
        Some(base) => base.join(format!("flockd-{hash}")),
        None => Path::new("/tmp").join(format!("flockd-{uid}-{hash}")),
    };
    create_dir_all(&dir)?;
    let meta = dir.symlink_metadata().context("look at", &dir)?;
    let bad = |why: &str| {
        Err(FsError::NotPrivate {
            path: dir.clone(),
            why: why.to_owned(),
        })
    };
    if !meta.is_dir() {
        return bad("is not a folder");
    }
    if meta.uid() != uid {
        return bad("belongs to somebody else");
    }
    if meta.mode() & 0o077 != 0 {
        return bad("is open to others");
    }
    Ok(dir)
}
