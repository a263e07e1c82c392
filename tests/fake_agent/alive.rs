//! How many agents are alive at once, counted by themselves: each holds a lock until it ends.

use crate::Failure;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::Path;

/// Stands for this process being alive; the kernel ends it with the process.
pub(crate) struct Alive {
    _locked: File,
}

impl Alive {
    /// Registers in `folder` and appends the number of living agents, itself included, to `seen`.
    #[expect(
        clippy::disallowed_methods,
        reason = "the agent's own registry, not flockd's state"
    )]
    pub(crate) fn register(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder)?;
        let mut open = OpenOptions::new();
        open.create(true).append(true);
        let own = open.open(folder.join(format!("{}.alive", std::process::id())))?;
        own.lock()?;
        let mut living = 0;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "alive") {
                // A shared attempt fails only while the owner lives; counters do not disturb each other.
                living += u32::from(matches!(
                    File::open(&path)?.try_lock_shared(),
                    Err(TryLockError::WouldBlock)
                ));
            }
        }
        open.open(folder.join("seen"))?
            .write_all(format!("{living}\n").as_bytes())?;
        Ok(Self { _locked: own })
    }
}
