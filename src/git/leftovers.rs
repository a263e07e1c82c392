//! What earlier lives left: worktrees of ours that are still there.

use super::error::GitError;
use super::repo::{Repo, same_path};
use std::path::{Path, PathBuf};

/// A worktree in our folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Where it is, or was.
    pub path: PathBuf,
    /// Its branch; none when HEAD is detached.
    pub branch: Option<String>,
    /// Whether it has changes that no commit has.
    pub dirty: bool,
    /// Whether the folder is gone and only git's record of it is left.
    pub missing: bool,
}

impl Repo {
    /// The worktrees of this repository in a folder. Changes nothing.
    ///
    /// # Errors
    /// [`GitError`] when git cannot be asked.
    pub fn leftovers(&self, dir: &Path) -> Result<Vec<Leftover>, GitError> {
        let mut found = Vec::new();
        for entry in self.worktrees()? {
            if !entry
                .path
                .parent()
                .is_some_and(|parent| same_path(parent, dir))
            {
                continue;
            }
            let missing = !entry.path.exists();
            found.push(Leftover {
                dirty: !missing && self.is_dirty(&entry.path).unwrap_or(true),
                missing,
                branch: entry.branch,
                path: entry.path,
            });
        }
        Ok(found)
    }
}
