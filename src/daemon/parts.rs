//! The daemon put together: every part with what it needs, and the loop run over them.

use super::claims::Claims;
use super::clock::{Clock, Ulids, wall};
use super::effector::{Effector, Work};
use super::input::Input;
use super::launch::Launcher;
use super::looper::Looper;
use super::progress::Progress;
use super::reconcile::{OpenRun, reconcile, reconcile_clients};
use super::report::Reporter;
use super::socket::{self, Server};
use super::watch::Watcher;
use super::worktrees::Worktrees;
use crate::budget::{BoundedSemaphore, SlotDir};
use crate::config::Config;
use crate::engine::{Core, Finish};
use crate::git::Repo;
use crate::lease::{Holder, LeaseManager};
use crate::ledger::{DaemonInfo, Ledger, LedgerState, ViewSettings};
use crate::runner::{Pool, PoolSettings};
use crate::types::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The assembled daemon.
pub(super) struct Parts {
    looper: Looper,
    effector: Effector,
    watcher: Watcher,
    server: Arc<Server>,
    listener: tokio::net::UnixListener,
    rx: mpsc::UnboundedReceiver<Input>,
    work_rx: mpsc::UnboundedReceiver<Work>,
    pub(super) progress: Arc<Progress>,
    open: Vec<OpenRun>,
    slots: SlotDir,
    config: Arc<Config>,
    runtime_dir: PathBuf,
}

impl Parts {
    pub(super) fn assemble(
        config: &Arc<Config>,
        repo: Arc<Repo>,
        ledger: Ledger,
        state: LedgerState,
    ) -> anyhow::Result<Self> {
        let state_dir = &config.state_dir;
        let runtime_dir = crate::fsx::runtime_dir(state_dir)?;
        let (clock, started_at) = (Clock::new(), wall());
        let (inputs, rx) = mpsc::unbounded_channel();
        let (work, work_rx) = mpsc::unbounded_channel();
        let slots = SlotDir::open(state_dir)?;
        slots.set_ceiling(config.loop_.global_concurrency)?;
        let hands = Hands {
            config,
            started_at,
            runtime_dir: &runtime_dir,
            inputs: &inputs,
        };
        let effector = hands.effector(clock, repo, &state)?;
        let open = open_runs(&state);
        let ledger = ledger.start(ViewSettings {
            daemon: Some(DaemonInfo {
                pid: std::process::id(),
                started_at,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
        });
        let looper = Looper {
            core: Core::new((**config).clone(), Box::new(Ulids), state),
            clock,
            ledger: ledger.clone(),
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
            ledger,
            inputs: inputs.clone(),
        });
        super::signals::listen(inputs)?;
        Ok(Self {
            looper,
            progress: Arc::clone(&effector.progress),
            effector,
            watcher,
            server,
            listener,
            rx,
            work_rx,
            open,
            slots,
            config: Arc::clone(config),
            runtime_dir,
        })
    }

    pub(super) async fn go(mut self) -> anyhow::Result<Finish> {
        let adopted = self.effector.pool.adopt_all().await?;
        let effects = self.looper.core.begin(self.looper.clock.now());
        self.looper.queue(effects);
        reconcile_clients(&mut self.looper, &mut self.open, &adopted, &self.slots);
        for input in self.watcher.read_all() {
            self.looper.input(input);
        }
        reconcile(
            &mut self.looper,
            &self.effector,
            std::mem::take(&mut self.open),
            adopted,
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
        socket::unbind(&self.config.state_dir, &self.runtime_dir);
        let finish = ended.map_err(anyhow::Error::msg)?;
        closed?;
        self.progress.summary(
            &finish,
            &super::report::summary(&self.looper.core, self.looper.clock.now()),
        );
        Ok(finish)
    }
}

/// What the parts that carry effects out are made from.
struct Hands<'a> {
    config: &'a Arc<Config>,
    started_at: Timestamp,
    runtime_dir: &'a Path,
    inputs: &'a mpsc::UnboundedSender<Input>,
}

impl Hands<'_> {
    fn effector(
        &self,
        clock: Clock,
        repo: Arc<Repo>,
        state: &LedgerState,
    ) -> anyhow::Result<Effector> {
        let (config, inputs) = (self.config, self.inputs);
        let state_dir = &config.state_dir;
        let settings = PoolSettings {
            state_dir: state_dir.clone(),
            runtime_dir: self.runtime_dir.to_owned(),
            exe: std::env::current_exe()?,
            prefix: "d".to_owned(),
        };
        let pool = Arc::new(Pool::new(settings, runner_events(inputs.clone())));
        let manager = Arc::new(LeaseManager::open(state_dir)?);
        manager.set_epoch_floor(state.epoch_max());
        for dead in manager.reclaim_dead()? {
            tracing::info!(lease = %dead.lease_id, task = %dead.task_id, "a dead holder's lease was removed");
        }
        let (host, boot) = (crate::proc::hostname(), crate::proc::boot_id());
        let holder = Holder::this_process(host, boot, std::process::id(), self.started_at);
        let base = config.loop_.base.clone();
        let claims = Claims::new(
            manager,
            Arc::clone(&repo),
            base,
            holder,
            state_dir.clone(),
            inputs.clone(),
        );
        let folder = config.loop_.worktree_dir.clone();
        Ok(Effector {
            clock,
            semaphore: BoundedSemaphore::new(config.loop_.global_concurrency),
            launcher: Arc::new(Launcher::new(
                Arc::clone(config),
                Arc::clone(&pool),
                inputs.clone(),
            )),
            pool,
            claims: Arc::new(claims),
            worktrees: Arc::new(Worktrees::new(
                repo,
                folder,
                state_dir.clone(),
                inputs.clone(),
            )),
            progress: Arc::new(Progress::new()),
            inputs: inputs.clone(),
            places: super::effector::Places::default(),
        })
    }
}

fn open_runs(state: &LedgerState) -> Vec<OpenRun> {
    state
        .open_runs()
        .map(|(run, r)| OpenRun {
            run: run.clone(),
            slots: r.run.slots,
            token: r.run.token.clone(),
            started: r.run.started.is_some(),
            of_client: r.run.worker == 0,
        })
        .collect()
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
