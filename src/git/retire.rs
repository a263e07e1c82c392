//! The end of worktrees: removed only when nothing in them would be lost; what is left is listed.

use super::error::GitError;
use super::leftover::attempt;
use super::prepare::Worktree;
use super::repo::{BRANCH_FOLDER, Repo, canonical};
use std::path::{Path, PathBuf};

/// What became of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// It is gone; its branch is left if it has commits of its own.
    Yes,
    /// It is still there: it holds something that no commit has, or git will not remove it (locked, submodules).
    KeptDirty,
}

/// A worktree of flockd that is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its folder.
    pub path: PathBuf,
    /// The branch checked out in it; `HEAD` when there is none.
    pub branch: String,
    /// The commit checked out in it.
    pub head: String,
    /// It has changes that no commit has, or its state cannot be read.
    pub dirty: bool,
    /// The folder is gone, only git's note of it is left.
    pub missing: bool,
}

impl Repo {
    /// Removes a worktree whose work is captured, and its branch when that has no commits of its own. Never forced.
    ///
    /// # Errors
    /// Git cannot remove the folder.
    pub fn remove_worktree(&self, worktree: &Worktree) -> Result<Removed, GitError> {
        let removed = self.remove_tree(worktree)?;
        if removed == Removed::Yes {
            let _one_at_a_time = self.shared_files();
            self.drop_empty_branch(&worktree.branch)?;
        }
        Ok(removed)
    }

    /// Removes a worktree whose work is captured and leaves its branch, whoever else has its commits. Never forced.
    ///
    /// # Errors
    /// Git cannot remove the folder.
    pub fn remove_tree(&self, worktree: &Worktree) -> Result<Removed, GitError> {
        let _one_at_a_time = self.shared_files();
        let path = canonical(&worktree.path);
        let entry = self.worktrees()?.into_iter().find(|e| e.path == path);
        if let Some(entry) = entry {
            let is_safe = match path.exists() {
                true => !self.is_dirty(&path)?,
                false => true,
            };
            if !is_safe || (entry.branch.is_none() && self.is_unreferenced(&entry.head)?) {
                return Ok(Removed::KeptDirty);
            }
            match attempt(self.remove_registered(&path))? {
                Ok(()) => {}
                Err(_) if self.worktrees()?.iter().any(|e| e.path == path) => {
                    return Ok(Removed::KeptDirty);
                }
                Err(error) => return Err(error),
            }
        } else if path.exists() {
            return Ok(Removed::KeptDirty);
        }
        Ok(Removed::Yes)
    }

    /// A branch without commits of its own is of no use to anybody.
    fn drop_empty_branch(&self, branch: &str) -> Result<(), GitError> {
        if !branch.starts_with(BRANCH_FOLDER) {
            return Ok(());
        }
        let Some(commit) = self.branch_commit(branch)? else {
            return Ok(());
        };
        if !self.has_own_commits(&commit, &[])? && self.checked_out_at(branch)?.is_none() {
            // Git refuses a branch that was checked out meanwhile: then it is somebody's.
            let _ = attempt(self.delete_branch(branch))?;
        }
        Ok(())
    }

    /// The worktrees that git knows in the folder of worktrees, moved-aside ones included.
    ///
    /// # Errors
    /// Git cannot list them.
    pub fn leftovers(&self, dir: &Path) -> Result<Vec<Leftover>, GitError> {
        let dir = canonical(dir);
        let mut found = Vec::new();
        for entry in self.worktrees()? {
            if entry.path.parent() != Some(&dir) {
                continue;
            }
            let missing = !entry.path.exists();
            found.push(Leftover {
                dirty: !missing && self.is_dirty(&entry.path).unwrap_or(true),
                missing,
                branch: entry.branch.unwrap_or_else(|| String::from("HEAD")),
                head: entry.head,
                path: entry.path,
            });
        }
        Ok(found)
    }
}
