//! (skeleton) The hidden `runner` subcommand and a plain `run -- CMD`.

use crate::runner::{self, ForegroundSpec, RunInput, RunLimits, RunSpec};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the program.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match args.as_slice() {
        [verb, state_flag, state_dir, name_flag, name]
            if verb == "runner" && state_flag == "--state" && name_flag == "--name" =>
        {
            runner::serve(Path::new(state_dir), &name.to_string_lossy())
        }
        [verb, dashes, command @ ..] if verb == "run" && dashes == "--" => run(command),
        _ => ExitCode::SUCCESS,
    }
}

fn run(command: &[OsString]) -> ExitCode {
    let Some(state_dir) = std::env::var_os("FLOCKD_STATE_DIR").map(PathBuf::from) else {
        return ExitCode::from(2);
    };
    let id = ulid::Ulid::generate().to_string();
    let Ok(run_id) = crate::types::RunId::new(&id) else {
        return ExitCode::from(2);
    };
    let nested = runner::is_nested(&state_dir);
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    if !nested {
        env.push(("FLOCKD_TOKEN".into(), (&id).into()));
        env.push(("FLOCKD_RUN_ID".into(), (&id).into()));
    }
    let own = std::env::var("FLOCKD_GLOBAL_CONCURRENCY")
        .ok()
        .and_then(|m| m.parse().ok());
    let Ok(slots) = crate::budget::SlotDir::open(&state_dir) else {
        return ExitCode::from(1);
    };
    let run = RunSpec {
        run_id,
        task_id: None,
        worker: 1,
        stage: "run".into(),
        role: "run".into(),
        attempt: 1,
        argv: command
            .iter()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect(),
        cwd: std::env::current_dir().unwrap_or_default(),
        env: Vec::new(),
        input: RunInput::Null,
        limits: RunLimits {
            deadline_ms: 0,
            idle_ms: 0,
            grace_ms: 5_000,
            output_max: 0,
            output_stop: 0,
        },
        slots: 1,
        ceiling: runner::client_ceiling(&state_dir, &slots, own.unwrap_or(8)),
        lease_id: None,
        lease_epoch: None,
        token: id,
        created_at: crate::types::Timestamp::from_millis(0),
    };
    let spec = ForegroundSpec {
        state_dir,
        run,
        argv: command.to_vec(),
        env,
        nested,
    };
    match runner::foreground(spec, &mut |_| {}) {
        Ok(end) => ExitCode::from(end.exit_code),
        Err(_) => ExitCode::FAILURE,
    }
}
