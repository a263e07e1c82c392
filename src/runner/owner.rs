//! Whether the client that owns a run lives (it holds the lock of that run's `spec.json`), and the end of what
//! dead ones left. Knows no daemon.

use super::active::sweep_left_over;
use super::exit::run_dir;
use super::spec::RunSpec;
use crate::budget::SlotDir;
use crate::fsx::lock::Lock;
use crate::fsx::{self, FsError};
use crate::types::RunId;
use std::path::{Path, PathBuf};

/// Held by a client (`flockd run`, `flockd lease claim -- CMD`) as long as its run is its own business,
/// also while the run waits for a slot. The kernel lets go of it however the client ends (P2).
#[derive(Debug)]
pub struct ClientHold(#[expect(dead_code, reason = "held for its drop")] Lock);

/// Makes the run's folder with its `spec.json`, and holds it. Call it before the intent is recorded.
///
/// # Errors
/// What the disk refuses; nothing is held then.
pub fn hold_as_client(state_dir: &Path, spec: &RunSpec) -> Result<ClientHold, FsError> {
    fsx::create_dir_all(&run_dir(state_dir, &spec.run_id))?;
    let file = spec_path(state_dir, &spec.run_id);
    fsx::replace_cached(&file, spec.spec_json().as_bytes())?;
    Ok(ClientHold(Lock::exclusive(&file)?))
}

/// Whether a client holds the run. A daemon's run is held by nobody in this way.
#[must_use]
pub fn client_lives(state_dir: &Path, run: &RunId) -> bool {
    let file = spec_path(state_dir, run);
    file.is_file() && matches!(Lock::try_shared(&file), Ok(None))
}

/// Ends the processes of runs whose slots nobody holds any more. Whoever takes paths from a dead holder
/// calls it before using them: the holder's command may have outlived it (P5). Answers how many slots
/// became clean.
///
/// # Errors
/// [`FsError`] when the slots cannot be looked at.
pub fn sweep_dead_slots(state_dir: &Path) -> Result<u32, FsError> {
    SlotDir::open(state_dir)?.sweep_dead(&mut sweep_left_over)
}

fn spec_path(state_dir: &Path, run: &RunId) -> PathBuf {
    run_dir(state_dir, run).join("spec.json")
}
