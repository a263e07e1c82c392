//! `flockd start`: puts the parts together, runs the loop, and says how it ended.

use super::boot::{self, BootError};
use super::claims::Claims;
use super::clock::{Clock, Ulids};
use super::effector::Effector;
use super::launch::Launcher;
use super::looper::{Input, Looper};
use super::progress::Progress;
use super::reconcile::{OpenRun, reconcile};
use super::report::Reporter;
use super::socket::{self, Server};
use super::watch::Watcher;
use super::worktrees::Worktrees;
use crate::budget::{BoundedSemaphore, SlotDir};
use crate::config::Config;
use crate::engine::{Core, Finish, plan_order};
use crate::git::Repo;
use crate::lease::{Holder, LeaseManager};
use crate::ledger::{DaemonInfo, Ledger, LedgerState, ViewSettings};
use crate::runner::{Pool, PoolSettings};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

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
    let _log = super::progress::log_to(&config.state_dir);
    let (ledger, state, notes) =
        Ledger::open(&config.state_dir, Arc::new(crate::fsx::disk::RealDisk))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let finish = runtime.block_on(async {
        let parts = assemble(&config, repo, ledger, state)?;
        for note in notes {
            parts.progress.say(&note.to_string());
        }
        parts.go().await
    })?;
    drop(lock);
    // What still blocks (a git command of a loop that was killed) must not hold the exit back.
    runtime.shutdown_background();
    Ok(finish.exit_code)
}

/// The assembled daemon.
struct Parts {
    looper: Looper,
    effector: Effector,
    watcher: Watcher,
    server: Arc<Server>,
    listener: tokio::net::UnixListener,
    rx: mpsc::UnboundedReceiver<Input>,
    work_rx: mpsc::UnboundedReceiver<super::effector::Work>,
    progress: Arc<Progress>,
    open: Vec<OpenRun>,
    slots: SlotDir,
    config: Arc<Config>,
}

fn assemble(
    config: &Arc<Config>,
    repo: Arc<Repo>,
    ledger: Ledger,
    state: LedgerState,
) -> anyhow::Result<Parts> {
    let state_dir = &config.state_dir;
    let runtime_dir = crate::fsx::runtime_dir(state_dir)?;
    let (clock, started_at) = (Clock::new(), super::clock::wall());
    let (inputs, rx) = mpsc::unbounded_channel();
    let (work, work_rx) = mpsc::unbounded_channel();
    let progress = Arc::new(Progress::new());
    let slots = SlotDir::open(state_dir)?;
    slots.set_ceiling(config.loop_.global_concurrency)?;
    let manager = Arc::new(LeaseManager::open(state_dir)?);
    manager.set_epoch_floor(state.epoch_max());
    let pool = Arc::new(Pool::new(
        PoolSettings {
            state_dir: state_dir.clone(),
            runtime_dir: runtime_dir.clone(),
            exe: std::env::current_exe()?,
            prefix: "d".to_owned(),
        },
        runner_events(inputs.clone()),
    ));
    let launcher = Arc::new(Launcher::new(
        Arc::clone(config),
        Arc::clone(&pool),
        inputs.clone(),
    ));
    let holder = Holder::this_process(
        crate::proc::hostname(),
        crate::proc::boot_id(),
        std::process::id(),
        started_at,
    );
    let claims = Arc::new(Claims::new(
        manager,
        Arc::clone(&repo),
        config.loop_.base.clone(),
        holder,
        inputs.clone(),
    ));
    let worktrees = Arc::new(Worktrees::new(
        repo,
        config.loop_.worktree_dir.clone(),
        state_dir.clone(),
        inputs.clone(),
    ));
    let semaphore = BoundedSemaphore::new(config.loop_.global_concurrency);
    let effector = Effector::new(
        clock,
        semaphore,
        pool,
        launcher,
        claims,
        worktrees,
        Arc::clone(&progress),
        inputs.clone(),
    );
    let open = state
        .open_runs()
        .map(|(run, r)| OpenRun {
            run: run.clone(),
            slots: r.run.slots,
            token: r.run.token.clone(),
            started: r.run.started.is_some(),
            of_task: r.task.is_some(),
        })
        .collect();
    let handle = ledger.start(ViewSettings {
        daemon: Some(DaemonInfo {
            pid: std::process::id(),
            started_at,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }),
    });
    let looper = Looper {
        core: Core::new((**config).clone(), Box::new(Ulids), state),
        clock,
        ledger: handle.clone(),
        work,
        inputs: inputs.clone(),
        reporter: Reporter {
            config: Arc::clone(config),
            slots: slots.clone(),
            started_at,
            malformed: Vec::new(),
        },
        state_dir: state_dir.clone(),
        tokens: std::collections::HashMap::new(),
    };
    let listener = socket::bind(state_dir, &runtime_dir)?;
    let watcher = Watcher::new(Arc::clone(config), inputs.clone())?;
    let server = Arc::new(Server {
        state_dir: state_dir.clone(),
        ledger: handle,
        inputs: inputs.clone(),
    });
    super::signals::listen(inputs)?;
    Ok(Parts {
        looper,
        effector,
        watcher,
        server,
        listener,
        rx,
        work_rx,
        progress,
        open,
        slots,
        config: Arc::clone(config),
    })
}

/// Runner events go into the one queue of the loop.
fn runner_events(
    inputs: mpsc::UnboundedSender<Input>,
) -> mpsc::UnboundedSender<crate::runner::RunnerEvent> {
    let (tx, mut rx) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(event) = rx.recv().await {
            if inputs.send(Input::Runner(event)).is_err() {
                return;
            }
        }
    });
    tx
}

impl Parts {
    async fn go(mut self) -> anyhow::Result<Finish> {
        let adopted = self.effector.pool.adopt_all().await?;
        let effects = self.looper.core.begin(self.looper.clock.now());
        self.looper.queue(effects);
        for input in self.watcher.read_all() {
            self.looper.input(input);
        }
        reconcile(
            &mut self.looper,
            &self.effector,
            std::mem::take(&mut self.open),
            adopted,
            &self.slots,
        );
        let l = &self.config.loop_;
        self.progress.say(&format!(
            "flockd {} pid {}: X={} Y={} Z={} M={}, state in {}",
            env!("CARGO_PKG_VERSION"),
            std::process::id(),
            l.tasks,
            l.workers,
            l.roles,
            l.global_concurrency,
            self.config.state_dir.display()
        ));
        let pool = Arc::clone(&self.effector.pool);
        std::thread::spawn(move || self.watcher.run());
        tokio::spawn(Arc::clone(&self.server).serve(self.listener));
        tokio::spawn(self.effector.run(self.work_rx));
        let ended = self.looper.run(self.rx).await;
        pool.close();
        let closed = self.looper.ledger.close();
        let finish = ended.map_err(anyhow::Error::msg)?;
        closed?;
        self.progress.summary(
            &finish,
            &super::report::summary(&self.looper.core, self.looper.clock.now()),
        );
        Ok(finish)
    }
}
