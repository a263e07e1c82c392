//! The state directory made ready and the singleton lock taken, before anything else.

use super::clock::wall;
use crate::fsx::FsError;
use crate::fsx::lock::Lock;
use std::path::Path;

/// Why a daemon does not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum BootError {
    /// Another one runs.
    #[error(
        "a flockd already runs on {state_dir}: {holder}; `flockd status` shows it, `flockd stop` ends it"
    )]
    Running {
        /// Where.
        state_dir: String,
        /// What its lock file says.
        holder: String,
    },
    /// The state directory cannot be used.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Made by a newer version, or damaged.
    #[error(transparent)]
    Ledger(#[from] crate::ledger::LedgerError),
}

/// Held for the daemon's life. The kernel frees it however the daemon ends; the text is for people.
#[derive(Debug)]
pub struct DaemonLock(#[expect(dead_code, reason = "held for its drop")] Lock);

/// Folders under the state directory.
const FOLDERS: [&str; 7] = [
    "ledger",
    "ledger/inbox",
    "leases",
    "slots",
    "runs",
    "log",
    "worktrees",
];

/// A client that asks whether a daemon lives holds the lock for a moment: that is not a daemon.
const LOCK_TRIES: u32 = 5;
const LOCK_TRY_EVERY: std::time::Duration = std::time::Duration::from_millis(20);

/// Makes the state directory ready and takes its lock.
pub(super) fn prepare(state_dir: &Path, worktree_dir: &Path) -> Result<DaemonLock, BootError> {
    crate::fsx::refuse_symlink(state_dir)?;
    crate::fsx::create_dir_all(state_dir)?;
    crate::fsx::check_lockable(state_dir)?;
    let lock = take(state_dir)?;
    for folder in FOLDERS {
        let path = state_dir.join(folder);
        if folder == "worktrees" && worktree_dir != path {
            continue;
        }
        crate::fsx::refuse_symlink(&path)?;
        crate::fsx::create_dir_all(&path)?;
    }
    crate::fsx::create_dir_all(worktree_dir)?;
    for folder in [".", "ledger", "leases", "slots"] {
        crate::fsx::sweep_temps(&state_dir.join(folder))?;
    }
    crate::ledger::ensure_version(state_dir)?;
    Ok(lock)
}

fn take(state_dir: &Path) -> Result<DaemonLock, BootError> {
    let path = state_dir.join("lock");
    for _ in 0..LOCK_TRIES {
        if let Some(lock) = Lock::try_exclusive(&path)? {
            let text = format!("pid {} since {}\n", std::process::id(), wall().seconds());
            lock.write_text(&text)?;
            return Ok(DaemonLock(lock));
        }
        std::thread::sleep(LOCK_TRY_EVERY);
    }
    Err(BootError::Running {
        state_dir: state_dir.display().to_string(),
        holder: std::fs::read_to_string(&path)
            .unwrap_or_default()
            .trim()
            .to_owned(),
    })
}

/// What the lock file says of the daemon that holds it; none when none does.
#[must_use]
pub fn running_daemon(state_dir: &Path) -> Option<String> {
    let path = state_dir.join("lock");
    if !path.exists() {
        return None;
    }
    match Lock::try_shared(&path) {
        Ok(None) => Some(
            std::fs::read_to_string(&path)
                .unwrap_or_default()
                .trim()
                .to_owned(),
        ),
        _ => None,
    }
}
