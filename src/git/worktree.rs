//! Worktrees of workers: made, found again after a crash, moved aside, removed when nothing can be lost.
//!
//! ```text
//! reuse  worktree on our branch → as it is · branch alone → attached · neither → made
//! fresh  dirty or own commits → moved aside and told · clean without → removed · then made
//! ```

use super::command::{Git, GitError};
use super::repo::Repo;
use crate::types::TaskId;
use std::path::{Path, PathBuf};

/// Names tried for a leftover or a fresh worktree: more than anybody leaves behind.
const NAMES_MAX: u32 = 1_000;

/// A worktree to make or to find.
#[derive(Debug, Clone)]
pub struct WorktreeRequest {
    /// The task.
    pub task: TaskId,
    /// The worker, from 1.
    pub worker: u32,
    /// The commit it starts from.
    pub base: String,
    /// The folder of all worktrees.
    pub dir: PathBuf,
    /// Go on in what a crash left; else start afresh.
    pub reuse: bool,
}

/// A worker's worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Where.
    pub path: PathBuf,
    /// On which branch.
    pub branch: String,
    /// Leftovers that were moved out of the way, for people.
    pub moved_aside: Vec<String>,
}

/// What became of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// It is gone.
    Yes,
    /// Something in it is in no commit: it stays (W27).
    KeptDirty,
}

impl Repo {
    /// Makes or finds a worktree. The caller makes them one at a time: git's own locks do not wait.
    ///
    /// # Errors
    /// [`GitError`]. A leftover of an earlier attempt is none.
    pub fn prepare_worktree(&self, request: &WorktreeRequest) -> Result<Worktree, GitError> {
        let stem = format!("{}.{}", request.task, request.worker);
        let branch = format!("flockd/{stem}");
        let path = request.dir.join(&stem);
        self.git().args(["worktree", "prune"]).ok()?;
        let mut moved_aside = Vec::new();
        let here = self.worktree_at(&path)?;
        let ours = here.as_deref() == Some(format!("refs/heads/{branch}").as_str());
        if request.reuse && (ours || (here.is_none() && !path.exists())) {
            if !ours {
                match self.branch(&branch)? {
                    Some(_) => self.add(&path, &[], &branch)?,
                    None => self.add(&path, &["-b", &branch], &request.base)?,
                }
            }
            return self.confined(Worktree {
                path,
                branch,
                moved_aside,
            });
        }
        let (path, branch) = self.clear(request, path, branch, here.is_some(), &mut moved_aside)?;
        self.add(&path, &["-b", &branch], &request.base)?;
        self.confined(Worktree {
            path,
            branch,
            moved_aside,
        })
    }

    /// Frees the wanted path and branch, or finds others.
    fn clear(
        &self,
        request: &WorktreeRequest,
        mut path: PathBuf,
        mut branch: String,
        is_worktree: bool,
        told: &mut Vec<String>,
    ) -> Result<(PathBuf, String), GitError> {
        if is_worktree {
            if self.is_clean(&path)? {
                self.git().args(["worktree", "remove"]).args([&path]).ok()?;
            } else {
                let aside = free_path(&path, "kept-");
                self.git()
                    .args(["worktree", "move"])
                    .args([&path, &aside])
                    .ok()?;
                told.push(format!(
                    "uncommitted work of an earlier attempt was moved to {}",
                    aside.display()
                ));
            }
        } else if path.exists() {
            let other = free_path(&path, "");
            told.push(format!(
                "{} is in the way; {} is used",
                path.display(),
                other.display()
            ));
            path = other;
        }
        if let Some(commit) = self.branch(&branch)? {
            let used = self
                .worktrees()?
                .into_iter()
                .find(|w| w.branch.as_deref() == Some(format!("refs/heads/{branch}").as_str()));
            let moved = used
                .as_ref()
                .is_some_and(|w| Path::new(&w.path).parent() == Some(request.dir.as_path()));
            if used.is_some() && !moved {
                // Somebody works on it: never touched (behaviour 54).
                let other = self.free_branch(&branch)?;
                told.push(format!(
                    "{branch} is checked out elsewhere; {other} is used"
                ));
                branch = other;
            } else if !moved && self.is_kept_elsewhere(&commit, &request.base)? {
                self.git().args(["branch", "-D", &branch]).ok()?;
            } else {
                let kept =
                    self.free_branch(&format!("flockd/kept/{}.{}", request.task, request.worker))?;
                self.git().args(["branch", "-m", &branch, &kept]).ok()?;
                told.push(format!(
                    "the branch of an earlier attempt is kept as {kept}"
                ));
            }
        }
        Ok((path, branch))
    }

    fn add(&self, path: &Path, options: &[&str], start: &str) -> Result<(), GitError> {
        self.git()
            .with("checkout.defaultRemote=")
            .args(["worktree", "add", "--quiet"])
            .args(if options.is_empty() {
                None
            } else {
                Some("--no-track")
            })
            .args(options.iter().copied())
            .args([path.as_os_str(), start.as_ref()])
            .ok()
            .map(|_| ())
    }

    /// The branch of the worktree at a path; an empty text when it is detached.
    fn worktree_at(&self, path: &Path) -> Result<Option<String>, GitError> {
        let wanted = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(self
            .worktrees()?
            .into_iter()
            .find(|w| !w.prunable && Path::new(&w.path) == wanted)
            .map(|w| w.branch.unwrap_or_default()))
    }

    fn free_branch(&self, stem: &str) -> Result<String, GitError> {
        for n in 1..NAMES_MAX {
            let name = format!("{stem}.{n}");
            if self.branch(&name)?.is_none() {
                return Ok(name);
            }
        }
        Ok(format!("{stem}.{NAMES_MAX}"))
    }

    pub(super) fn is_clean(&self, path: &Path) -> Result<bool, GitError> {
        let status = Git::at(path)
            .reading()
            .args(["status", "--porcelain", "-z", "--untracked-files=normal"])
            .ok()?;
        Ok(status.is_empty())
    }

    /// git must name the worktree as its own top, and that must not be the parent's (contract 12).
    fn confined(&self, worktree: Worktree) -> Result<Worktree, GitError> {
        let top = Git::at(&worktree.path)
            .reading()
            .args(["rev-parse", "--show-toplevel"])
            .text()?;
        let same = match (Path::new(&top).canonicalize(), worktree.path.canonicalize()) {
            (Ok(top), Ok(path)) => top == path && Some(top) != self.top().canonicalize().ok(),
            _ => false,
        };
        if same {
            Ok(worktree)
        } else {
            Err(GitError::NotConfined {
                path: worktree.path,
                top,
            })
        }
    }

    /// Removes a worktree if everything in it is in a commit. Never by force; ignored files go with it.
    ///
    /// # Errors
    /// [`GitError`]; the worktree is then still there.
    pub fn remove_worktree(&self, worktree: &Worktree) -> Result<Removed, GitError> {
        if !worktree.path.exists() {
            self.git().args(["worktree", "prune"]).ok()?;
            return Ok(Removed::Yes);
        }
        if !self.is_clean(&worktree.path)? {
            return Ok(Removed::KeptDirty);
        }
        self.git()
            .args(["worktree", "remove"])
            .args([&worktree.path])
            .ok()?;
        Ok(Removed::Yes)
    }
}

fn free_path(path: &Path, mark: &str) -> PathBuf {
    let name = path
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    (1..NAMES_MAX)
        .map(|n| path.with_file_name(format!("{name}.{mark}{n}")))
        .find(|p| p.symlink_metadata().is_err())
        .unwrap_or_else(|| path.with_file_name(format!("{name}.{mark}{NAMES_MAX}")))
}
