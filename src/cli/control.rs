//! `start`, `stop`, `pause`, `resume`, `estop`, `thaw`.

use super::context::{Context, flag};
use super::disk;
use super::failure::{Failure, Outcome};
use super::output::{line, say};
use crate::api::{ErrorCode, Reply, Request};
use crate::client::{Client, ClientError};
use crate::config::{FlagValue, Loaded};
use clap::Args;
use std::path::Path;

#[derive(Debug, Clone, Args)]
pub(super) struct StartArgs {
    /// Start the loop in the background and return when it is up
    #[arg(long)]
    pub(super) detach: bool,
    /// X: tasks in flight
    #[arg(short = 'x', value_name = "N", allow_hyphen_values = true)]
    pub(super) tasks: Option<String>,
    /// Y: workers per task
    #[arg(short = 'y', value_name = "N", allow_hyphen_values = true)]
    pub(super) workers: Option<String>,
    /// Z: roles of one stage at once
    #[arg(short = 'z', value_name = "N", allow_hyphen_values = true)]
    pub(super) roles: Option<String>,
    /// M: child processes alive at once
    #[arg(short = 'm', value_name = "N", allow_hyphen_values = true)]
    pub(super) global_concurrency: Option<String>,
    /// Stop after so many completions
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) max_completed: Option<String>,
    /// Stop after so many claims
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) max_attempts: Option<String>,
    /// No target: go on until the queue is empty
    #[arg(long)]
    pub(super) infinite: bool,
    /// Show what would be claimed and run, and do nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl StartArgs {
    pub(super) fn flags(&self) -> Vec<FlagValue> {
        let values = [
            ("-x", "loop.tasks", &self.tasks),
            ("-y", "loop.workers", &self.workers),
            ("-z", "loop.roles", &self.roles),
            ("-m", "loop.global_concurrency", &self.global_concurrency),
            ("--max-completed", "loop.max_completed", &self.max_completed),
            ("--max-attempts", "loop.max_attempts", &self.max_attempts),
        ];
        let mut flags: Vec<FlagValue> = values
            .into_iter()
            .filter_map(|(name, key, value)| Some(flag(name, key, value.as_deref()?)))
            .collect();
        if self.infinite {
            flags.push(flag("--infinite", "loop.infinite", "true"));
        }
        flags
    }
}

#[derive(Debug, Args)]
pub(super) struct StopArgs {
    /// Stop the running children too
    #[arg(long)]
    now: bool,
    /// Return when the daemon has ended
    #[arg(long)]
    wait: bool,
}

/// Runs the loop.
pub(super) fn start(context: Context, args: &StartArgs) -> Outcome {
    let context = context.with_flags(args.flags());
    if std::env::var_os("FLOCKD_RUN_ID").is_some() {
        return Err(Failure::refused(
            "this is a run of flockd: it cannot start a loop of its own (use `flockd add`)",
        ));
    }
    let loaded = context.load()?;
    if let Some(reason) = loaded.config.cannot_start() {
        return Err(Failure::invalid(reason));
    }
    start_daemon(&context, loaded, args)
}

/// The one call into the daemon.
fn start_daemon(context: &Context, loaded: Loaded, args: &StartArgs) -> Outcome {
    let detach_argv = if args.detach {
        Some(argv_in_front()?)
    } else {
        None
    };
    Ok(crate::daemon::start(crate::daemon::StartRequest {
        config: loaded.config,
        root: context.root.clone(),
        dry_run: args.dry_run,
        detach_argv,
    }))
}

/// This command line without `--detach`: what the background process runs.
fn argv_in_front() -> Result<Vec<std::ffi::OsString>, Failure> {
    let exe = std::env::current_exe().map_err(Failure::failed)?;
    let rest = std::env::args_os().skip(1).filter(|arg| arg != "--detach");
    Ok(std::iter::once(exe.into_os_string()).chain(rest).collect())
}

/// Asks the daemon to end.
pub(super) fn stop(context: &Context, args: &StopArgs) -> Outcome {
    let state_dir = context.state_dir();
    let mut client = match Client::connect(&state_dir) {
        Ok(client) => client,
        Err(ClientError::NoDaemon) => {
            say("no daemon is running");
            return Ok(0);
        }
        Err(error) => return Err(error.into()),
    };
    match client.request(&Request::Stop { now: args.now }) {
        Ok(Reply::Done { message }) => line(&message)?,
        Ok(_) => {}
        // It ends by itself: what was asked for is happening.
        Err(ClientError::Refused {
            code: ErrorCode::Unavailable,
            message,
        }) => say(message),
        Err(ClientError::Closed) => say("the daemon has just ended"),
        Err(error) => return Err(error.into()),
    }
    if args.wait {
        client.wait_closed()?;
    }
    Ok(0)
}

/// Which marker, put up or taken down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Pause,
    Resume,
    Estop,
    Thaw,
}

impl Mark {
    const fn file(self) -> &'static str {
        match self {
            Self::Pause | Self::Resume => "PAUSED",
            Self::Estop | Self::Thaw => "ESTOP",
        }
    }

    const fn request(self) -> Request {
        match self {
            Self::Pause => Request::Pause,
            Self::Resume => Request::Resume,
            Self::Estop => Request::Estop,
            Self::Thaw => Request::Thaw,
        }
    }

    const fn said(self) -> &'static str {
        match self {
            Self::Pause => "paused: nothing more is claimed or started until `flockd resume`",
            Self::Resume => "resumed",
            Self::Estop => {
                "emergency stop: children are stopped, nothing starts until `flockd thaw`"
            }
            Self::Thaw => "thawed",
        }
    }
}

/// Puts the marker up or down, daemon or not: the file is what counts, a running daemon sees it. The
/// daemon is told too, so that the command returns when it has acted.
pub(super) fn mark(context: &Context, mark: Mark) -> Outcome {
    let state_dir = context.state_dir();
    write_marker(&state_dir, mark)?;
    match Client::connect(&state_dir).and_then(|mut client| client.request(&mark.request())) {
        Ok(Reply::Done { message }) => line(&message)?,
        Ok(_) => line(mark.said())?,
        Err(ClientError::NoDaemon) => {
            line(mark.said())?;
            say("no daemon is running; the next one will see it");
        }
        Err(error) => {
            line(mark.said())?;
            say(format!(
                "{error}; it will see the file {}",
                state_dir.join(mark.file()).display()
            ));
        }
    }
    Ok(0)
}

fn write_marker(state_dir: &Path, mark: Mark) -> Result<(), Failure> {
    let marker = state_dir.join(mark.file());
    match mark {
        Mark::Pause | Mark::Estop => disk::mark(&marker),
        Mark::Resume | Mark::Thaw => disk::unmark(&marker),
    }
}
