//! Starts processes of flockd itself that outlive their starter: runners and the detached daemon.

use super::spawn::{ChildFiles, ChildSpec, Dispositions, Placement, SpawnError, spawn_child};
use super::sweep::TOKEN_VARIABLE;
use std::ffi::OsString;
use std::fs::File;

/// Starts a process in a session of its own with `/dev/null` as input and `log` as both outputs.
///
/// It gets the caller's environment without the variables of a run: a runner that carried a run's token
/// would be swept with it. The caller must wait for the pid when it ends, or end first.
///
/// # Errors
/// [`SpawnError`], as for any child.
pub fn spawn_detached(argv: &[OsString], log: &File) -> Result<u32, SpawnError> {
    let stdin = File::open("/dev/null").map_err(|error| SpawnError {
        kind: super::spawn::SpawnErrorKind::FdLimit,
        message: format!("/dev/null cannot be opened: {error}"),
    })?;
    let env: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| name != TOKEN_VARIABLE && name != "FLOCKD_RUN_ID")
        .collect();
    spawn_child(&ChildSpec {
        argv,
        env: &env,
        cwd: None,
        files: ChildFiles::Given {
            stdin: &stdin,
            stdout: log,
            stderr: log,
        },
        placement: Placement::OwnSession,
        dispositions: Dispositions::Default,
    })
}
