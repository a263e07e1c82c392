//! A repository: its top level, its commits and branches.

use super::command::Git;
use super::error::GitError;
use super::parse::{ListedWorktree, VERSION_LEAST, path_from, version_is_enough, worktree_list};
use std::path::{Path, PathBuf};

/// A repository with a work tree, the main one or a linked one.
#[derive(Debug, Clone)]
pub struct Repo {
    top: PathBuf,
}

impl Repo {
    /// Finds the work tree that a folder is in.
    ///
    /// # Errors
    /// [`GitError::NotARepository`], [`GitError::TooOld`], or git cannot be run.
    pub fn open(dir: &Path) -> Result<Self, GitError> {
        let version = Git::read(dir, &["version"]).line()?;
        if version_is_enough(&version) != Some(true) {
            return Err(GitError::TooOld {
                found: version,
                least: VERSION_LEAST,
            });
        }
        let output = Git::read(dir, &["rev-parse", "--show-toplevel"]).answer()?;
        let top = path_of_line(&output.stdout);
        if !output.success() || top.as_os_str().is_empty() {
            return Err(GitError::NotARepository {
                dir: dir.to_owned(),
                why: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            });
        }
        Ok(Self { top })
    }

    /// The top level of its work tree.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// The commit that a name means.
    ///
    /// # Errors
    /// [`GitError::NoCommitYet`] in a repository without one, [`GitError::NoSuchCommit`].
    pub fn resolve(&self, commitish: &str) -> Result<String, GitError> {
        if let Some(commit) = self.commit_of(&self.top, commitish)? {
            return Ok(commit);
        }
        let any = Git::read(&self.top, &["rev-list", "--all", "-n", "1"]).line()?;
        if any.is_empty() {
            return Err(GitError::NoCommitYet);
        }
        Err(GitError::NoSuchCommit {
            name: commitish.to_owned(),
        })
    }

    /// The commit that a name means in a work tree, if any.
    pub(super) fn commit_of(&self, dir: &Path, name: &str) -> Result<Option<String>, GitError> {
        let name = format!("{name}^{{commit}}");
        Git::read(
            dir,
            &[
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &name,
            ],
        )
        .line_if()
    }

    /// The commit a branch of this name is at.
    pub(super) fn branch_tip(&self, branch: &str) -> Result<Option<String>, GitError> {
        self.commit_of(&self.top, &branch_ref(branch))
    }

    /// Whether the first commit is contained in the second.
    pub(super) fn is_ancestor(&self, ancestor: &str, of: &str) -> Result<bool, GitError> {
        Git::read(&self.top, &["merge-base", "--is-ancestor", ancestor, of]).yes()
    }

    pub(super) fn worktrees(&self) -> Result<Vec<ListedWorktree>, GitError> {
        let output = Git::read(&self.top, &["worktree", "list", "--porcelain", "-z"]).output()?;
        Ok(worktree_list(&output.stdout))
    }

    /// Whether a work tree has changes that no commit has; ignored files do not count.
    pub(super) fn is_dirty(&self, dir: &Path) -> Result<bool, GitError> {
        let git = Git::read(
            dir,
            &["status", "--porcelain", "-z", "--untracked-files=normal"],
        );
        Ok(!git.long().output()?.stdout.is_empty())
    }

    /// Refuses a folder that is not the top of a work tree of its own (contract 12).
    pub(super) fn check_confined(&self, path: &Path) -> Result<(), GitError> {
        let output = Git::read(path, &["rev-parse", "--show-toplevel"]).output()?;
        let found = path_of_line(&output.stdout);
        if same_path(&found, path) && !same_path(&found, &self.top) {
            return Ok(());
        }
        Err(GitError::NotConfined {
            path: path.to_owned(),
            found,
        })
    }
}

pub(super) fn branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// Whether two paths are one place. The last part of either may be missing on disk.
pub(super) fn same_path(left: &Path, right: &Path) -> bool {
    left == right || real_path(left) == real_path(right)
}

fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real_path(parent).join(name),
        _ => path.to_owned(),
    }
}

fn path_of_line(bytes: &[u8]) -> PathBuf {
    path_from(bytes.strip_suffix(b"\n").unwrap_or(bytes))
}
