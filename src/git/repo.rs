//! A repository: where it is and what its names mean.

use super::command::{Git, GitError};
use super::parse;
use std::path::{Path, PathBuf};

/// `worktree list -z` came with 2.36.
const NEEDED: (u32, u32) = (2, 36);
const NEEDED_TEXT: &str = "2.36";

/// A git repository, seen from the top of one of its working trees.
#[derive(Debug, Clone)]
pub struct Repo {
    top: PathBuf,
}

impl Repo {
    /// The repository of a folder.
    ///
    /// # Errors
    /// [`GitError`]: git is missing or too old, the folder is in no repository, or that has no commit.
    pub fn open(folder: &Path) -> Result<Self, GitError> {
        let found = Git::at(folder).reading().args(["version"]).text()?;
        match parse::version(&found) {
            Some(version) if version >= NEEDED => {}
            _ => {
                return Err(GitError::TooOld {
                    found,
                    needed: NEEDED_TEXT,
                });
            }
        }
        let (output, _) = Git::at(folder)
            .reading()
            .args(["rev-parse", "--show-toplevel"])
            .output()?;
        if !output.success() {
            return Err(GitError::NoRepository(folder.to_owned()));
        }
        let top = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n'));
        let repo = Self { top };
        if !repo
            .git()
            .reading()
            .args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .succeeds()?
        {
            return Err(GitError::NoCommit(repo.top));
        }
        Ok(repo)
    }

    /// The top folder of the working tree.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.top
    }

    pub(super) fn git(&self) -> Git {
        Git::at(&self.top)
    }

    /// The full id of the commit that a name means now.
    ///
    /// # Errors
    /// [`GitError`] when it means none.
    pub fn resolve(&self, commitish: &str) -> Result<String, GitError> {
        self.git()
            .reading()
            .args(["rev-parse", "--verify", "--end-of-options"])
            .args([format!("{commitish}^{{commit}}")])
            .text()
    }

    /// The commit of a local branch, if there is one.
    pub(super) fn branch(&self, name: &str) -> Result<Option<String>, GitError> {
        let (output, _) = self
            .git()
            .reading()
            .args(["rev-parse", "--verify", "--quiet"])
            .args([format!("refs/heads/{name}^{{commit}}")])
            .output()?;
        Ok(output
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned()))
    }

    /// Whether everything in `commit` is also in HEAD or in `base`.
    pub(super) fn is_kept_elsewhere(&self, commit: &str, base: &str) -> Result<bool, GitError> {
        for other in [base, "HEAD"] {
            if self
                .git()
                .reading()
                .args(["merge-base", "--is-ancestor", commit, other])
                .succeeds()?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn worktrees(&self) -> Result<Vec<parse::ListedWorktree>, GitError> {
        let output = self
            .git()
            .reading()
            .args(["worktree", "list", "--porcelain", "-z"])
            .ok()?;
        Ok(parse::worktrees(&output))
    }
}
