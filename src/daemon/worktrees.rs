//! Worktrees of the tasks in flight: made one at a time, kept as commit and patch, removed when clean.

use super::input::Input;
use crate::config::TaskSpec;
use crate::engine::{EdgeError, Event, WorkKept, WorktreeReady};
use crate::git::{GitError, Removed, Repo, Worktree, WorktreeRequest};
use crate::types::{RunId, TaskId};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// The daemon's side of git.
pub(super) struct Worktrees {
    repo: Arc<Repo>,
    dir: PathBuf,
    state_dir: PathBuf,
    /// The small I/O class: git changes shared files of the repository, one command at a time (W34).
    one_at_a_time: Arc<Mutex<()>>,
    inputs: mpsc::UnboundedSender<Input>,
}

impl Worktrees {
    pub(super) fn new(
        repo: Arc<Repo>,
        dir: PathBuf,
        state_dir: PathBuf,
        inputs: mpsc::UnboundedSender<Input>,
    ) -> Self {
        Self {
            repo,
            dir,
            state_dir,
            one_at_a_time: Arc::default(),
            inputs,
        }
    }

    /// Makes or finds a worktree; answers with [`Event::WorktreeDone`].
    pub(super) fn prepare(self: &Arc<Self>, task: TaskId, worker: u32, base: String, reuse: bool) {
        let this = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let request = WorktreeRequest {
                task: task.clone(),
                worker,
                base,
                dir: this.dir.clone(),
                reuse,
            };
            let made = {
                let _one = this
                    .one_at_a_time
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                this.repo.prepare_worktree(&request)
            };
            let result = made
                .map(|w| WorktreeReady {
                    path: w.path,
                    branch: w.branch,
                    moved_aside: w.moved_aside,
                })
                .map_err(|e| edge_error("worktree", &e));
            drop(this.inputs.send(Input::Event(Event::WorktreeDone {
                task,
                worker,
                result,
            })));
        });
    }

    /// Keeps a worker's work, then removes its worktree unless something in it would be lost; answers with
    /// [`Event::CaptureDone`]. The patch is durable before anything is removed.
    pub(super) fn capture(
        self: &Arc<Self>,
        task: Arc<TaskSpec>,
        worker: u32,
        base: String,
        ready: WorktreeReady,
        run: Option<RunId>,
        passed: bool,
    ) {
        let this = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let result = this.keep(&task, worker, &base, ready, run.as_ref(), passed);
            let task = task.id.clone();
            drop(this.inputs.send(Input::Event(Event::CaptureDone {
                task,
                worker,
                result,
            })));
        });
    }

    fn keep(
        &self,
        task: &TaskSpec,
        worker: u32,
        base: &str,
        ready: WorktreeReady,
        run: Option<&RunId>,
        passed: bool,
    ) -> Result<WorkKept, EdgeError> {
        let worktree = Worktree {
            path: ready.path,
            branch: ready.branch,
            moved_aside: Vec::new(),
        };
        let state = if passed { "" } else { " (did not pass)" };
        let message = format!(
            "{}: {}{state}\n\nflockd worker {worker}",
            task.id, task.title
        );
        let _one = self
            .one_at_a_time
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let captured = self
            .repo
            .capture(&worktree, base, &message)
            .map_err(|e| edge_error("keeping the work", &e))?;
        let patch = match (captured.patch.is_empty(), run) {
            (false, Some(run)) => Some(self.write_patch(run, &captured.patch)?),
            _ => None,
        };
        let outside_claim = captured
            .changed_files
            .iter()
            .filter(|file| !task.claims.covers(file))
            .cloned()
            .collect();
        let mut notes = captured.notes;
        // A result keeps its branch even when the agent put its commits on another one too.
        let removed = if captured.commit == base {
            self.repo.remove_worktree(&worktree)
        } else {
            self.repo.remove_tree(&worktree)
        };
        match removed {
            Ok(Removed::Yes) => {}
            Ok(Removed::KeptDirty) => notes.push(format!(
                "worktree kept, it is not clean: {}",
                worktree.path.display()
            )),
            Err(error) => notes.push(format!("worktree kept: {error}")),
        }
        Ok(WorkKept {
            commit: captured.commit,
            patch,
            changed_files: captured.changed_files,
            outside_claim,
            notes,
        })
    }

    fn write_patch(&self, run: &RunId, patch: &[u8]) -> Result<String, EdgeError> {
        let relative = Path::new("runs").join(run.as_str()).join("patch.diff");
        let path = self.state_dir.join(&relative);
        let folder = path.parent().unwrap_or(&self.state_dir);
        crate::fsx::create_dir_all(folder)
            .and_then(|()| crate::fsx::replace_durable(&path, patch))
            .map_err(|e| EdgeError {
                systemic: true,
                detail: format!("patch: {e}"),
            })?;
        Ok(relative.display().to_string())
    }
}

fn edge_error(what: &str, error: &GitError) -> EdgeError {
    EdgeError {
        systemic: error.is_systemic(),
        detail: format!("{what}: {error}"),
    }
}
