//! What several test files share: where the programs are, and waiting for a condition with a bound.

mod looping;
pub(crate) mod processes;
mod runs;
mod sandbox;

pub(crate) use looping::{Ended, Looping, text};
pub(crate) use runs::Runs;
pub(crate) use sandbox::{Sandbox, copy_of_repository};

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a condition may take before a test gives up: long enough for a busy 2-core machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The repository's root.
pub(crate) fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The built scripted agent.
pub(crate) fn fake_agent() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_fake-agent"))
}

/// The built program.
pub(crate) fn flockd() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_flockd"))
}

/// Waits until `look` gives a value; panics with `what` after [`PATIENCE`].
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}
