//! Turns changes of files into events: task files, marker files, leases. By inotify, never by polling.

use super::input::Input;
use crate::config::{Config, misfit, scan_tasks};
use crate::engine::{Event, Markers};
use crate::fsx::FsError;
use crate::fsx::watch::{Change, Watch, WatchMask};
use crate::types::TaskId;
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Marker files under the state directory.
pub(crate) const ESTOP: &str = "ESTOP";
/// Holds dispatch.
pub(crate) const PAUSED: &str = "PAUSED";
/// The kill switch, live.
pub(crate) const PARALLELISM_KILL: &str = "PARALLELISM_KILL";

/// What is watched, and what was seen last.
pub(super) struct Watcher {
    watch: Watch,
    state_dir: PathBuf,
    config: Arc<Config>,
    known: BTreeSet<TaskId>,
    inputs: mpsc::UnboundedSender<Input>,
}

impl Watcher {
    /// Starts watching, then reads everything once: a change in between is seen twice, never missed.
    pub(super) fn new(
        config: Arc<Config>,
        inputs: mpsc::UnboundedSender<Input>,
    ) -> Result<Self, FsError> {
        let state_dir = config.state_dir.clone();
        let mut watch = Watch::new()?;
        watch.add(&state_dir, WatchMask::ENTRIES)?;
        watch.add(&state_dir.join("leases"), WatchMask::CLOSES)?;
        watch.add(&config.task_dir, WatchMask::ENTRIES)?;
        Ok(Self {
            watch,
            state_dir,
            config,
            known: BTreeSet::new(),
            inputs,
        })
    }

    /// All markers and task files as they are now.
    pub(super) fn read_all(&mut self) -> Vec<Input> {
        let mut inputs = vec![self.read_markers()];
        inputs.extend(self.read_tasks());
        inputs
    }

    /// Reports changes until the loop is gone. On a thread of its own, asleep in the kernel.
    pub(super) fn run(mut self) {
        while !self.inputs.is_closed() {
            if let Err(error) = crate::proc::wait_readable(&[self.watch.as_fd()], None) {
                tracing::error!(%error, "changes of files are not seen any more; start the loop again");
                return;
            }
            match self.watch.read() {
                Ok(changes) => self.report(&changes),
                Err(error) => tracing::warn!(%error, "watching files"),
            }
        }
    }

    fn report(&mut self, changes: &[Change]) {
        let overflow = changes.iter().any(|c| c.overflow);
        let in_dir = |dir: &Path| overflow || changes.iter().any(|c| c.dir == dir);
        let named = |name: &str| {
            overflow
                || changes.iter().any(|c| {
                    c.dir == self.state_dir && c.name.as_deref().is_some_and(|n| n == name)
                })
        };
        let markers = [ESTOP, PAUSED, PARALLELISM_KILL].iter().any(|m| named(m));
        let leases = named("leases.json") || in_dir(&self.state_dir.join("leases"));
        let tasks = in_dir(&self.config.task_dir);
        let mut inputs = Vec::new();
        if markers {
            inputs.push(self.read_markers());
        }
        if leases {
            inputs.push(Input::Event(Event::LeasesChanged));
        }
        if tasks {
            inputs.extend(self.read_tasks());
        }
        for input in inputs {
            drop(self.inputs.send(input));
        }
    }

    fn read_markers(&self) -> Input {
        let there = |name: &str| self.state_dir.join(name).symlink_metadata().is_ok();
        let markers = Markers {
            estop: there(ESTOP),
            paused: there(PAUSED),
            parallelism_kill: there(PARALLELISM_KILL),
        };
        Input::Event(Event::Markers(markers))
    }

    /// A task that asks for a stage or an agent that is not configured is as malformed as one with a typo.
    fn read_tasks(&mut self) -> [Input; 2] {
        let folder = &self.config.task_dir;
        let (mut tasks, mut malformed) = (Vec::new(), Vec::new());
        match scan_tasks(folder) {
            Ok(scan) => {
                malformed = scan.malformed;
                for task in scan.tasks {
                    match misfit(&task, &self.config, folder) {
                        Some(error) => malformed.push(error),
                        None => tasks.push(task),
                    }
                }
            }
            Err(error) => {
                tracing::error!(folder = %folder.display(), %error, "the task folder cannot be read");
            }
        }
        let found: BTreeSet<TaskId> = tasks.iter().map(|t| t.id.clone()).collect();
        let removed = self.known.difference(&found).cloned().collect();
        self.known = found;
        let malformed = malformed
            .into_iter()
            .map(|e| (e.file.clone(), e.to_string()))
            .collect();
        [
            Input::Malformed(malformed),
            Input::Event(Event::TasksChanged {
                upserts: tasks,
                removed,
            }),
        ]
    }
}
