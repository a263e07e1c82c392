//! The daemon's side: keeps runners, hands them runs, hears of their ends. Async; forks nothing, holds no pipe.

use super::exit::ExitReport;
use super::link::{self, LinkEnd, Linked};
use super::protocol::{Message, Request, StopHow};
use super::spec::RunSpec;
use crate::fsx::{self, FsError};
use crate::proc::{Identity, SpawnError, spawn_detached};
use crate::types::RunId;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

/// Runners kept without a run; more are let go, since an idle one costs only memory.
const IDLE_KEPT_MAX: usize = 64;

/// What a pool needs to know.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The state directory.
    pub state_dir: PathBuf,
    /// Where the sockets are ([`fsx::runtime_dir`]).
    pub runtime_dir: PathBuf,
    /// The program that has the `runner` subcommand: flockd itself.
    pub exe: PathBuf,
    /// Begins the names of this pool's runners. Adoption takes those with the same beginning, so each
    /// kind of owner has its own: the daemon `d`, a client its own unique one.
    pub prefix: String,
}

/// What happens to runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerEvent {
    /// No slot file is free right now.
    WaitingForSlot {
        /// Which.
        run_id: RunId,
    },
    /// The child exists.
    Started {
        /// Which.
        run_id: RunId,
        /// The child.
        identity: Identity,
        /// Slot files its runner holds.
        slots: Vec<u32>,
    },
    /// Nothing of the run is left; its slots are held until [`Pool::settled`].
    Exited {
        /// Which.
        run_id: RunId,
        /// How.
        report: ExitReport,
    },
    /// The runner is gone without a report. Its slots are free; what is left of the tree must be swept
    /// by its token, and `exit.json` may still have the end.
    RunnerDied {
        /// Which.
        run_id: RunId,
    },
}

/// A run found alive in a runner of an earlier daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    /// The run.
    pub run_id: RunId,
    /// Its child; none when it waits for slots.
    pub identity: Option<Identity>,
    /// Slot files its runner holds.
    pub slots: Vec<u32>,
    /// Its end, when it has ended and waits for [`Pool::settled`].
    pub exited: Option<ExitReport>,
}

/// Why a run could not be handed to a runner.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The runner's process cannot be started.
    #[error("no runner can be started: {0}")]
    Spawn(#[from] SpawnError),
    /// Its log file cannot be opened.
    #[error("no runner can be started: {0}")]
    Log(#[from] FsError),
    /// It does not answer.
    #[error("runner {name} does not answer: {why}; see log/runner.log in the state directory")]
    NoAnswer {
        /// Its name.
        name: String,
        /// What happened.
        why: String,
    },
    /// The run-time folder cannot be read.
    #[error("cannot look for runners in {}: {source}", dir.display())]
    Look {
        /// The folder.
        dir: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

#[derive(Debug)]
struct RunnerHandle {
    requests: UnboundedSender<Request>,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<(String, RunnerHandle)>,
    busy: HashMap<RunId, (String, RunnerHandle)>,
    started: u64,
    closed: bool,
}

/// The runners of one daemon. Clones share them.
#[derive(Debug, Clone)]
pub struct Pool {
    settings: Arc<PoolSettings>,
    // Unbounded: a run has at most four events, and the receiver is the daemon's own loop.
    events: UnboundedSender<RunnerEvent>,
    state: Arc<Mutex<State>>,
}

impl Pool {
    /// A pool without runners.
    #[must_use]
    pub fn new(settings: PoolSettings, events: UnboundedSender<RunnerEvent>) -> Self {
        Self {
            settings: Arc::new(settings),
            events,
            state: Arc::default(),
        }
    }

    /// Finds the living runners of an earlier daemon and takes them over. Their later events come as of
    /// any run. Sockets that nobody listens on are removed.
    ///
    /// # Errors
    /// [`PoolError::Look`] when the run-time folder cannot be read.
    pub async fn adopt_all(&self) -> Result<Vec<Adopted>, PoolError> {
        let mut adopted = Vec::new();
        for name in self.names_found()? {
            let socket = super::serve::socket_path(&self.settings.runtime_dir, &name);
            match link::connect(&socket, None).await {
                Ok(linked) => adopted.extend(self.keep_found(name, linked)),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    let _ = fsx::remove(&socket);
                }
                Err(error) => tracing::warn!(%name, %error, "runner not taken over"),
            }
        }
        Ok(adopted)
    }

    fn names_found(&self) -> Result<Vec<String>, PoolError> {
        let dir = &self.settings.runtime_dir;
        let look = |source| PoolError::Look {
            dir: dir.clone(),
            source,
        };
        let start = format!("runner-{}", self.settings.prefix);
        let mut names: Vec<String> = std::fs::read_dir(dir)
            .map_err(look)?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|file| file.starts_with(&start))
            .filter_map(|file| {
                Some(
                    file.strip_prefix("runner-")?
                        .strip_suffix(".sock")?
                        .to_owned(),
                )
            })
            .collect();
        names.sort();
        Ok(names)
    }

    fn keep_found(&self, name: String, linked: Linked) -> Option<Adopted> {
        let run = linked.run.clone();
        let handle = self.attach(&name, linked, run.as_ref().map(|run| run.run_id.clone()));
        let mut state = self.lock();
        let Some(run) = run else {
            state.idle.push((name, handle));
            return None;
        };
        state.busy.insert(run.run_id.clone(), (name, handle));
        Some(Adopted {
            run_id: run.run_id,
            identity: run.child,
            slots: run.slots,
            exited: run.exited,
        })
    }

    /// Hands a run to an idle runner, or to a new one. The run's folder with `spec.json` (and the prompt)
    /// is there and the intent is durable before this is called.
    ///
    /// # Errors
    /// [`PoolError`]: nothing was started then.
    pub async fn launch(&self, spec: RunSpec) -> Result<(), PoolError> {
        let run_id = spec.run_id.clone();
        let mut request = Request::Run(Box::new(spec));
        loop {
            let Some((name, handle)) = self.lock().idle.pop() else {
                break;
            };
            match self.hand_over(&run_id, name, handle, request) {
                None => return Ok(()),
                // That one died idle; its link ended before it could be taken off the list.
                Some(back) => request = back,
            }
        }
        let (name, linked) = self.start_runner().await?;
        let handle = self.attach(&name, linked, None);
        match self.hand_over(&run_id, name.clone(), handle, request) {
            None => Ok(()),
            Some(_) => Err(PoolError::NoAnswer {
                name,
                why: "it ended at once".into(),
            }),
        }
    }

    /// Registers the run before the request goes out, so that its end cannot come first.
    fn hand_over(
        &self,
        run_id: &RunId,
        name: String,
        handle: RunnerHandle,
        request: Request,
    ) -> Option<Request> {
        let mut state = self.lock();
        match handle.requests.send(request) {
            Ok(()) => {
                state.busy.insert(run_id.clone(), (name, handle));
                None
            }
            Err(back) => Some(back.0),
        }
    }

    /// Stops a run; answers whether one of this pool's runners has it.
    pub fn stop(&self, run_id: &RunId, how: StopHow) -> bool {
        let state = self.lock();
        state.busy.get(run_id).is_some_and(|(_, handle)| {
            handle
                .requests
                .send(Request::Stop {
                    run_id: run_id.clone(),
                    how,
                })
                .is_ok()
        })
    }

    /// The run's end is durable: its slots may go, and its runner takes the next run.
    pub fn settled(&self, run_id: &RunId) {
        let mut state = self.lock();
        let Some((name, handle)) = state.busy.remove(run_id) else {
            return;
        };
        let sent = handle
            .requests
            .send(Request::Settled {
                run_id: run_id.clone(),
            })
            .is_ok();
        if sent && !state.closed && state.idle.len() < IDLE_KEPT_MAX {
            state.idle.push((name, handle));
        }
        // Else the handle goes, the link closes its connection, and the runner leaves.
    }

    /// Runs that have a runner here and are not settled.
    #[must_use]
    pub fn open_runs(&self) -> Vec<RunId> {
        self.lock().busy.keys().cloned().collect()
    }

    /// Lets all runners go: idle ones leave, busy ones finish their runs alone.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.idle.clear();
        state.busy.clear();
    }

    async fn start_runner(&self) -> Result<(String, Linked), PoolError> {
        let number = {
            let mut state = self.lock();
            state.started += 1;
            state.started
        };
        // Unique over daemons of this boot: an earlier daemon's runner may still live under its name.
        let own = crate::proc::own_identity();
        let name = format!(
            "{}{}-{:x}-{number}",
            self.settings.prefix, own.pid, own.start_ticks
        );
        let argv: Vec<OsString> = vec![
            self.settings.exe.clone().into(),
            "runner".into(),
            "--state".into(),
            self.settings.state_dir.clone().into(),
            "--name".into(),
            name.clone().into(),
        ];
        let folder = self.settings.state_dir.join("log");
        fsx::create_dir_all(&folder)?;
        let log = fsx::open_output(&folder.join("runner.log"))?;
        let pid = spawn_detached(&argv, &log)?;
        let ended = link::reap_when_gone(pid);
        let socket = super::serve::socket_path(&self.settings.runtime_dir, &name);
        match link::connect(&socket, Some(ended)).await {
            Ok(linked) => Ok((name, linked)),
            Err(error) => Err(PoolError::NoAnswer {
                name,
                why: error.to_string(),
            }),
        }
    }

    fn attach(&self, name: &str, linked: Linked, run_id: Option<RunId>) -> RunnerHandle {
        let (requests, receiver) = tokio::sync::mpsc::unbounded_channel();
        let (pool, name) = (self.clone(), name.to_owned());
        tokio::spawn(async move {
            let deliver = |message| pool.deliver(message);
            let end = link::drive(linked, receiver, run_id, deliver).await;
            pool.link_ended(&name, end);
        });
        RunnerHandle { requests }
    }

    fn deliver(&self, message: Message) {
        let event = match message {
            Message::Hello { .. } => return,
            Message::Waiting { run_id } => RunnerEvent::WaitingForSlot { run_id },
            Message::Started {
                run_id,
                child,
                slots,
            } => RunnerEvent::Started {
                run_id,
                identity: child,
                slots,
            },
            Message::Exited { report } => RunnerEvent::Exited {
                run_id: report.run_id.clone(),
                report,
            },
        };
        // A daemon that is closing down does not listen any more; the runner settles by itself.
        let _ = self.events.send(event);
    }

    fn link_ended(&self, name: &str, end: LinkEnd) {
        let mut state = self.lock();
        state.idle.retain(|(idle, _)| idle != name);
        let LinkEnd::Died { unreported } = end else {
            return;
        };
        let runs: Vec<RunId> = state
            .busy
            .iter()
            .filter(|(_, (busy, _))| busy == name)
            .map(|(run_id, _)| run_id.clone())
            .collect();
        for run_id in runs {
            state.busy.remove(&run_id);
            if unreported.as_ref() == Some(&run_id) {
                let _ = self.events.send(RunnerEvent::RunnerDied { run_id });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Sections are a few map operations without a panic in them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
