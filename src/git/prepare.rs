//! A worker's worktree: made new, or taken over after a crash; whatever is in the way is kept and said.

use super::error::GitError;
use super::leftover::Names;
use super::parse;
use super::repo::{BRANCH_FOLDER, Repo, canonical};
use crate::types::TaskId;
use std::path::{Path, PathBuf};

/// Other names that are tried; git then says what is wrong with the last.
pub(super) const NUMBER_MAX: u32 = 9_999;

/// Which worktree is wanted.
#[derive(Debug, Clone)]
pub struct WorktreeRequest {
    /// The task.
    pub task: TaskId,
    /// Its worker's number.
    pub worker: u32,
    /// The commit that the work starts from.
    pub base: String,
    /// The folder of worktrees; it need not exist.
    pub dir: PathBuf,
    /// Go on in what a crash left behind, instead of beginning anew.
    pub reuse: bool,
}

/// A worktree that is ready for a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its folder, without symbolic links.
    pub path: PathBuf,
    /// The branch that the work goes to.
    pub branch: String,
    /// What was found in the way and where it is now: one sentence each.
    pub moved_aside: Vec<String>,
}

impl Repo {
    /// Makes the worktree of a worker, or takes it over (`reuse`).
    ///
    /// A leftover of an earlier run never makes it fail (W27): what holds work is moved aside, what cannot be moved is
    /// left alone and other names are used; [`Worktree::moved_aside`] says so.
    ///
    /// # Errors
    /// The base is no commit, git cannot make the worktree, or the new tree is not confined (P4).
    pub fn prepare_worktree(&self, request: &WorktreeRequest) -> Result<Worktree, GitError> {
        let base = self.resolve(&request.base)?;
        let _one_at_a_time = self.shared_files();
        self.check_branch_folder()?;
        let names = Names::new(&request.task, request.worker, canonical(&request.dir));
        let mut said = Vec::new();
        if request.reuse {
            if let Some(found) = self.take_over(&names, &mut said)? {
                return Ok(found);
            }
            return self.attach(&names, &base, said);
        }
        self.clear(&names, &base, &mut said)?;
        let branch = self.free_branch(&names, &mut said)?;
        self.add_new(&names, branch, &base, said)
    }

    /// A branch `flockd` would make every `flockd/…` impossible.
    fn check_branch_folder(&self) -> Result<(), GitError> {
        let name = BRANCH_FOLDER.trim_end_matches('/');
        match self.branch_commit(name)? {
            Some(_) => Err(GitError::BranchInTheWay(name.to_owned())),
            None => Ok(()),
        }
    }

    /// The newest worktree of this worker that still works, as it is.
    fn take_over(
        &self,
        names: &Names,
        said: &mut Vec<String>,
    ) -> Result<Option<Worktree>, GitError> {
        let mut found = self.own_entries(names)?;
        found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        for (_, entry) in found {
            if !entry.path.exists() {
                self.drop_stale(names, &entry, said)?;
                continue;
            }
            if let Err(error) = self.check_confined(&entry.path) {
                if error.is_systemic() {
                    return Err(error);
                }
                said.push(format!(
                    "{} was left alone: it is no working worktree any more",
                    parse::shown(&entry.path)
                ));
                continue;
            }
            let own = entry
                .branch
                .filter(|branch| names.owns_branch(branch))
                .map_or_else(|| self.newest_branch(names), |branch| Ok(Some(branch)))?;
            return Ok(Some(Worktree {
                path: entry.path,
                branch: own.unwrap_or_else(|| names.branch()),
                moved_aside: std::mem::take(said),
            }));
        }
        Ok(None)
    }

    fn newest_branch(&self, names: &Names) -> Result<Option<String>, GitError> {
        Ok(self.own_branches(names)?.pop())
    }

    /// A worktree on the branch that is left, or on a new one.
    fn attach(
        &self,
        names: &Names,
        base: &str,
        mut said: Vec<String>,
    ) -> Result<Worktree, GitError> {
        let Some(branch) = self.newest_branch(names)? else {
            return self.add_new(names, names.branch(), base, said);
        };
        if let Some(place) = self.checked_out_at(&branch)? {
            let start = self.branch_commit(&branch)?;
            let fresh = self.free_branch(names, &mut said)?;
            said.push(format!(
                "{branch} is checked out in {}: the work goes on from its commit on {fresh}",
                parse::shown(&place)
            ));
            return self.add_new(names, fresh, start.as_deref().unwrap_or(base), said);
        }
        let path = self.free_path(names, &mut said)?;
        self.git
            .write(self.top())
            .args(["worktree", "add"])
            .path(&path)
            .args([&branch])
            .run()?;
        self.confined(path, branch, said)
    }

    fn add_new(
        &self,
        names: &Names,
        branch: String,
        start: &str,
        mut said: Vec<String>,
    ) -> Result<Worktree, GitError> {
        let path = self.free_path(names, &mut said)?;
        self.git
            .write(self.top())
            .args(["worktree", "add", "--no-track", "-b", &branch])
            .path(&path)
            .args([start])
            .run()?;
        self.confined(path, branch, said)
    }

    /// Proves that the new tree is its own, or takes it away again.
    fn confined(
        &self,
        path: PathBuf,
        branch: String,
        moved_aside: Vec<String>,
    ) -> Result<Worktree, GitError> {
        let checked = self.check_confined(&path);
        let worktree = Worktree {
            path: canonical(&path),
            branch,
            moved_aside,
        };
        if let Err(error) = checked {
            // The first error is the one to report; a tree that cannot be removed is found as a leftover.
            let _ = self.remove_registered(&worktree.path);
            return Err(error);
        }
        Ok(worktree)
    }

    /// The first folder name that nothing has; an empty folder is as good as none.
    fn free_path(&self, names: &Names, said: &mut Vec<String>) -> Result<PathBuf, GitError> {
        let entries = self.worktrees()?;
        let is_free =
            |path: &Path| !is_taken(path) && !entries.iter().any(|entry| entry.path == path);
        let first = names.path(0);
        if is_free(&first) {
            return Ok(first);
        }
        let path = (1..=NUMBER_MAX)
            .map(|n| names.path(n))
            .find(|path| is_free(path));
        let path = path.unwrap_or(first.clone());
        said.push(format!(
            "{} is in the way and was left alone: this worktree is {}",
            parse::shown(&first),
            parse::shown(&path)
        ));
        Ok(path)
    }

    /// The first branch name that nothing has.
    fn free_branch(&self, names: &Names, said: &mut Vec<String>) -> Result<String, GitError> {
        let taken = self.branches()?;
        let mut all = (0..=NUMBER_MAX).map(|n| names.branch_numbered(n));
        let branch = all.find(|name| !taken.contains(name));
        let branch = branch.unwrap_or_else(|| names.branch());
        if branch != names.branch() {
            said.push(format!(
                "{} was left alone: this branch is {branch}",
                names.branch()
            ));
        }
        Ok(branch)
    }
}

/// Something other than an empty folder is there.
pub(super) fn is_taken(path: &Path) -> bool {
    match path.symlink_metadata() {
        // Where nothing can be looked at, git says why.
        Err(_) => false,
        Ok(kind) if kind.is_dir() => {
            std::fs::read_dir(path).map_or(true, |mut all| all.next().is_some())
        }
        Ok(_) => true,
    }
}
