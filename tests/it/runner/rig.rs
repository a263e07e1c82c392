//! A state directory with a pool of real runners, driven from a test.

use crate::common::{PATIENCE, eventually, flockd};
use flockd::proc::{Identity, carriers};
use flockd::runner::{
    ExitReport, Pool, PoolSettings, RunInput, RunLimits, RunSpec, RunnerEvent, run_dir,
};
use flockd::types::{RunId, Timestamp};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub(crate) struct Rig {
    pub(crate) home: Arc<Home>,
    pub(crate) pool: Pool,
    events: UnboundedReceiver<RunnerEvent>,
    // Dropped by hand: a runtime with tasks in it must not wait for them.
    runtime: Option<Runtime>,
}

/// Outlives a pool, so that a second one can find what the first left.
pub(crate) struct Home {
    folder: tempfile::TempDir,
    runtime_dir: PathBuf,
    next: AtomicU32,
}

impl Home {
    pub(crate) fn new() -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("state")).unwrap();
        let runtime_dir = flockd::fsx::runtime_dir(&folder.path().join("state")).unwrap();
        Arc::new(Self {
            folder,
            runtime_dir,
            next: AtomicU32::new(1),
        })
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state").canonicalize().unwrap()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.runtime_dir);
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::at(&Home::new())
    }

    /// A daemon's view of a state directory: a new pool.
    pub(crate) fn at(home: &Arc<Home>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (sender, events) = unbounded_channel();
        let settings = PoolSettings {
            state_dir: home.state(),
            runtime_dir: home.runtime_dir.clone(),
            exe: flockd().to_owned(),
            prefix: "d".into(),
        };
        let pool = Pool::new(settings, sender);
        Self {
            home: Arc::clone(home),
            pool,
            events,
            runtime: Some(runtime),
        }
    }

    /// A run of a shell script, with its folder made as the daemon makes it.
    pub(crate) fn script(&self, script: &str) -> RunSpec {
        let spec = self.spec(&["sh", "-c", script]);
        std::fs::write(self.dir(&spec.run_id).join("spec.json"), spec.spec_json()).unwrap();
        spec
    }

    pub(crate) fn spec(&self, argv: &[&str]) -> RunSpec {
        let number = self.home.next.fetch_add(1, Ordering::SeqCst);
        let run_id = RunId::new(&format!("R{number:03}")).unwrap();
        let unique = self.home.state().display().to_string();
        let token = format!("test-token-{}-{number}", unique.replace('/', "-"));
        std::fs::create_dir_all(self.dir(&run_id)).unwrap();
        let path = std::env::var("PATH").unwrap();
        let env = [("PATH", path.as_str()), ("FLOCKD_TOKEN", token.as_str())];
        RunSpec {
            run_id,
            task_id: None,
            worker: 1,
            stage: "stage".into(),
            role: "role".into(),
            attempt: 1,
            argv: argv.iter().map(|&arg| arg.to_owned()).collect(),
            cwd: "/".into(),
            env: env
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            input: RunInput::Null,
            limits: RunLimits {
                deadline_ms: 0,
                idle_ms: 0,
                grace_ms: 1_000,
                output_max: 64 << 20,
                output_stop: 0,
            },
            slots: 1,
            ceiling: 8,
            lease_id: None,
            lease_epoch: None,
            token,
            created_at: Timestamp::from_millis(0),
        }
    }

    pub(crate) fn dir(&self, run_id: &RunId) -> PathBuf {
        run_dir(&self.home.state(), run_id)
    }

    pub(crate) fn launch(&self, spec: &RunSpec) {
        self.runtime()
            .block_on(self.pool.launch(spec.clone()))
            .unwrap();
    }

    pub(crate) fn adopt(&self) -> Vec<flockd::runner::Adopted> {
        self.runtime().block_on(self.pool.adopt_all()).unwrap()
    }

    pub(crate) fn event(&mut self) -> RunnerEvent {
        let next = async { tokio::time::timeout(PATIENCE, self.events.recv()).await };
        self.runtime
            .as_ref()
            .unwrap()
            .block_on(next)
            .expect("an event in time")
            .expect("the pool lives")
    }

    /// The child of a run that starts now.
    pub(crate) fn started(&mut self) -> Identity {
        loop {
            if let RunnerEvent::Started { identity, .. } = self.event() {
                return identity;
            }
        }
    }

    /// The end of the next run that ends; not settled.
    pub(crate) fn exited(&mut self) -> ExitReport {
        loop {
            match self.event() {
                RunnerEvent::Exited { report, .. } => return report,
                RunnerEvent::RunnerDied { run_id } => panic!("the runner of {run_id} died"),
                _ => {}
            }
        }
    }

    /// Runs to the end and settles it.
    pub(crate) fn run(&mut self, spec: &RunSpec) -> ExitReport {
        self.launch(spec);
        let report = self.exited();
        assert_eq!(report.run_id, spec.run_id);
        self.pool.settled(&spec.run_id);
        report
    }

    pub(crate) fn stdout(&self, spec: &RunSpec) -> String {
        std::fs::read_to_string(self.dir(&spec.run_id).join("stdout.log")).unwrap_or_default()
    }

    /// The daemon is gone: its connections close, nothing more is settled.
    pub(crate) fn die(mut self) -> Arc<Home> {
        self.runtime.take().unwrap().shutdown_background();
        Arc::clone(&self.home)
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }

    pub(crate) fn wait_for_stdout(&self, spec: &RunSpec, text: &str) {
        eventually(&format!("{text:?} in stdout"), || {
            self.stdout(spec).contains(text).then_some(())
        });
    }
}

/// Living processes of a run.
pub(crate) fn members(spec: &RunSpec) -> usize {
    carriers(&spec.token).len()
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.pool.close();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
