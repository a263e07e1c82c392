//! Runs of the real runner, without a daemon: the pool, its processes, and what a run leaves behind.

use super::{PATIENCE, flockd};
use flockd::runner::{
    ExitReport, Pool, PoolSettings, RunInput, RunLimits, RunSpec, RunnerEvent, StopHow, run_dir,
};
use flockd::types::{RunId, Timestamp};
use std::path::{Path, PathBuf};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A state directory with a pool of its own.
pub(crate) struct Runs {
    folder: tempfile::TempDir,
    runtime_dir: PathBuf,
    runtime: tokio::runtime::Runtime,
    pool: Pool,
    events: UnboundedReceiver<RunnerEvent>,
    started: u32,
}

/// What a run left.
pub(crate) struct Ended {
    pub(crate) report: ExitReport,
    pub(crate) stdout: Vec<u8>,
}

impl Runs {
    /// An empty state directory; no runner is started yet.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let state_dir = folder.path().join("state");
        flockd::fsx::create_dir_all(&state_dir).unwrap();
        let runtime_dir = flockd::fsx::runtime_dir(&state_dir).unwrap();
        let settings = PoolSettings {
            state_dir,
            runtime_dir: runtime_dir.clone(),
            exe: flockd().to_owned(),
            prefix: "t".to_owned(),
        };
        let (sender, events) = unbounded_channel();
        let pool = Pool::new(settings, sender);
        Self {
            folder,
            runtime_dir,
            runtime,
            pool,
            events,
            started: 0,
        }
    }

    /// Limits that nothing of a test meets by itself.
    pub(crate) fn limits() -> RunLimits {
        RunLimits {
            deadline_ms: 60_000,
            idle_ms: 0,
            grace_ms: 500,
            output_max: 64 << 20,
            output_stop: 0,
        }
    }

    /// Runs a command to its end; with `stop` it is stopped as soon as its output is not empty.
    pub(crate) fn run(&mut self, argv: &[&str], limits: RunLimits, stop: Option<StopHow>) -> Ended {
        let spec = self.spec(argv, limits);
        let (run_id, state) = (spec.run_id.clone(), self.folder.path().join("state"));
        let dir: PathBuf = run_dir(&state, &run_id);
        flockd::fsx::create_dir_all(&dir).unwrap();
        flockd::fsx::replace_cached(&dir.join("spec.json"), spec.spec_json().as_bytes()).unwrap();
        let (pool, events) = (&self.pool, &mut self.events);
        let report = self.runtime.block_on(async {
            pool.launch(spec).await.unwrap();
            let ended = async {
                loop {
                    match events.recv().await.unwrap() {
                        RunnerEvent::Exited { report, .. } => return report,
                        RunnerEvent::RunnerDied { run_id } => panic!("the runner of {run_id} died"),
                        RunnerEvent::Started { run_id, .. } => {
                            if let Some(how) = stop {
                                wait_for_output(&dir).await;
                                assert!(pool.stop(&run_id, how));
                            }
                        }
                        RunnerEvent::WaitingForSlot { .. } => {}
                    }
                }
            };
            let report = tokio::time::timeout(PATIENCE, ended)
                .await
                .expect("the run ends");
            pool.settled(&run_id);
            report
        });
        let stdout = std::fs::read(dir.join("stdout.log")).unwrap_or_default();
        Ended { report, stdout }
    }

    fn spec(&mut self, argv: &[&str], limits: RunLimits) -> RunSpec {
        self.started += 1;
        let token = format!("test-{}-{}", std::process::id(), self.started);
        let path = std::env::var("PATH").unwrap_or_default();
        RunSpec {
            run_id: RunId::new(&format!("R{:04}", self.started)).unwrap(),
            task_id: None,
            worker: 1,
            stage: "test".to_owned(),
            role: "test".to_owned(),
            attempt: 1,
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            cwd: self.folder.path().to_owned(),
            env: vec![
                ("PATH".to_owned(), path),
                ("FLOCKD_TOKEN".to_owned(), token.clone()),
            ],
            input: RunInput::Null,
            limits,
            slots: 1,
            ceiling: 4,
            lease_id: None,
            lease_epoch: None,
            token,
            created_at: Timestamp::from_millis(0),
        }
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.pool.close();
        // The runners notice by themselves; their sockets' folder is this test's own.
        drop(std::fs::remove_dir_all(&self.runtime_dir));
    }
}

async fn wait_for_output(dir: &Path) {
    let file = dir.join("stdout.log");
    while std::fs::metadata(&file).map_or(0, |m| m.len()) == 0 {
        tokio::time::sleep(super::LOOK_EVERY).await;
    }
}
