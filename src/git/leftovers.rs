//! What earlier runs left in the folder of worktrees, for `doctor`.

use super::command::GitError;
use super::repo::Repo;
use std::path::{Path, PathBuf};

/// A worktree that is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Where.
    pub path: PathBuf,
    /// Its branch, `refs/heads/…`; none when detached.
    pub branch: Option<String>,
    /// Something in it is in no commit.
    pub dirty: bool,
    /// Its folder is gone: `git worktree prune` forgets it.
    pub gone: bool,
}

impl Repo {
    /// All worktrees directly under a folder.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn leftovers(&self, dir: &Path) -> Result<Vec<Leftover>, GitError> {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        self.worktrees()?
            .into_iter()
            .filter(|w| Path::new(&w.path).parent() == Some(dir.as_path()))
            .map(|w| {
                let path = PathBuf::from(&w.path);
                let gone = w.prunable || !path.exists();
                Ok(Leftover {
                    dirty: !gone && !self.is_clean(&path)?,
                    path,
                    branch: w.branch,
                    gone,
                })
            })
            .collect()
    }
}
