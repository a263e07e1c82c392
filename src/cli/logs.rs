//! `logs`: a run's output, followed by events until the run is over.

use super::context::Context;
use super::failure::{Failure, Outcome};
use super::output;
use super::runs::{self, RunRecord};
use crate::fsx;
use crate::fsx::watch::{Watch, WatchMask};
use crate::proc::wait_readable;
use crate::types::{RunId, TaskId};
use clap::Args;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the end of a run is looked for although no notice came: a network file system gives none.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    /// The task's id
    #[arg(required_unless_present = "run")]
    task: Option<TaskId>,
    /// Go on until the run is over
    #[arg(short = 'f', long)]
    follow: bool,
    /// Standard error instead of standard output
    #[arg(long)]
    stderr: bool,
    /// This run instead of the newest
    #[arg(long, value_name = "ID")]
    run: Option<RunId>,
}

/// Prints a run's output.
pub(super) fn logs(context: &Context, args: &LogsArgs) -> Outcome {
    let state_dir = context.state_dir();
    let folder = folder_of(&state_dir, args)?;
    let log = folder.join(if args.stderr {
        "stderr.log"
    } else {
        "stdout.log"
    });
    let mut out = output::stdout();
    if !args.follow {
        if let Some(mut file) = open(&log)? {
            std::io::copy(&mut file, &mut out)?;
        }
        out.flush()?;
        return Ok(0);
    }
    follow(&folder, &log, &mut out)?;
    Ok(0)
}

fn folder_of(state_dir: &Path, args: &LogsArgs) -> Result<PathBuf, Failure> {
    if let Some(run) = &args.run {
        let folder = state_dir.join("runs").join(run.as_str());
        return if folder.is_dir() {
            Ok(folder)
        } else {
            Err(Failure::invalid(format!(
                "no run {run}: `flockd show TASK` lists a task's runs"
            )))
        };
    }
    let task = args
        .task
        .as_ref()
        .ok_or_else(|| Failure::invalid("name a task or --run ID"))?;
    runs::newest_of_task(state_dir, task)
        .map(|run| run.folder)
        .ok_or_else(|| {
            Failure::invalid(format!(
                "task {task} has had no run: `flockd why {task}` says why"
            ))
        })
}

fn open(log: &Path) -> Result<Option<File>, Failure> {
    match fsx::open_input(log) {
        Ok(file) => Ok(Some(file)),
        Err(_) if !log.exists() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Copies what is there and what comes, until the run's end is recorded. The end is looked for before
/// the last read, so nothing that was written before it is missed.
fn follow(folder: &Path, log: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let mut watch = Watch::new()?;
    watch.add(folder, WatchMask::WRITES)?;
    let mut file = None;
    loop {
        let over = RunRecord::is_over(folder);
        if file.is_none() {
            file = open(log)?;
        }
        if let Some(file) = &mut file {
            copy_new(file, out)?;
        }
        if over {
            return Ok(());
        }
        wait_readable(&[watch.as_fd()], Some(LOOK_AGAIN))?;
        watch.read()?;
    }
}

fn copy_new(file: &mut File, out: &mut impl Write) -> Result<(), Failure> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            out.flush()?;
            return Ok(());
        }
        out.write_all(buffer.get(..count).unwrap_or_default())?;
    }
}
