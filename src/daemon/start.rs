//! `flockd start`: puts the parts together, runs the loop, and says how it ended.

use super::boot::{self, BootError};
use super::parts::Parts;
use crate::config::Config;
use crate::engine::plan_order;
use crate::git::Repo;
use crate::ledger::Ledger;
use std::path::PathBuf;
use std::sync::Arc;

/// What `flockd start` was asked for.
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// Resolved, with flags and environment applied.
    pub config: Config,
    /// The repository's top folder.
    pub root: PathBuf,
    /// Print the order of claims and start nothing.
    pub dry_run: bool,
    /// This command line without `--detach`, to go on in the background; none: foreground.
    pub detach_argv: Option<Vec<std::ffi::OsString>>,
}

/// Runs the loop to its end; the exit code is that of design §7.
#[must_use]
#[expect(clippy::print_stderr, reason = "a command's own output")]
pub fn start(request: StartRequest) -> u8 {
    if let Some(outer) = std::env::var_os("FLOCKD_RUN_ID") {
        eprintln!(
            "flockd: a run ({}) must not start a loop of its own: refused",
            outer.to_string_lossy()
        );
        return 4;
    }
    if let Some(argv) = &request.detach_argv {
        return super::detach::detach(&request.config.state_dir, argv);
    }
    let ended = if request.dry_run {
        dry_run(&request).map(|()| 0)
    } else {
        run(request)
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            eprintln!("flockd: {error:#}");
            let refused = error
                .downcast_ref::<BootError>()
                .is_some_and(|e| matches!(e, BootError::Running { .. }));
            if refused { 4 } else { 1 }
        }
    }
}

#[expect(clippy::print_stdout, reason = "a command's own output")]
fn dry_run(request: &StartRequest) -> anyhow::Result<()> {
    let scan = crate::config::scan_tasks(&request.config.task_dir)?;
    let state = crate::ledger::replay_read_only(&request.config.state_dir)?;
    let (planned, left) = plan_order(&scan.tasks, &|id| state.is_completed(id));
    for id in &planned {
        println!("would claim {id}");
    }
    for id in &left {
        println!("would wait {id}: it comes after a task that is not completed");
    }
    for bad in &scan.malformed {
        println!("malformed {bad}");
    }
    Ok(())
}

fn run(request: StartRequest) -> anyhow::Result<u8> {
    let config = Arc::new(request.config);
    crate::proc::raise_fd_limit();
    let repo = Arc::new(Repo::open(&request.root)?);
    let lock = boot::prepare(&config.state_dir, &config.loop_.worktree_dir)?;
    // Watched from the start: the first task may be added while the loop runs.
    crate::fsx::create_dir_all(&config.task_dir)?;
    let _log = super::progress::log_to(&config.state_dir);
    let (ledger, state, notes) =
        Ledger::open(&config.state_dir, Arc::new(crate::fsx::disk::RealDisk))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let finish = runtime.block_on(async {
        let parts = Parts::assemble(&config, repo, ledger, state)?;
        for note in notes {
            match &note {
                // As it should be: nothing that a person must read.
                crate::ledger::RecoveryNote::Ingested { .. } => tracing::info!("{note}"),
                _ => parts.progress.say(&note.to_string()),
            }
        }
        parts.go().await
    })?;
    drop(lock);
    // What still blocks (a git command of a loop that was killed) must not hold the exit back.
    runtime.shutdown_background();
    Ok(finish.exit_code)
}
