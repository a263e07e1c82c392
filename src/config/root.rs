//! Where a project is: the top of the main worktree, found by files alone, so that every worktree of a
//! repository and every agent inside one shares one state directory.

use std::path::{Path, PathBuf};

/// Why there is no project.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// No repository at or above the folder.
    #[error("{} is not in a git repository: run `git init` first, or use -C DIR", .0.display())]
    NoRepository(PathBuf),
    /// The folder cannot be read.
    #[error("cannot open {}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// The top folder of the main worktree of the repository that `folder` is in.
///
/// A linked worktree leads to its main one. A submodule is a project of its own. For a bare
/// repository's worktree, which has no main one, the worktree itself is the project.
///
/// # Errors
/// [`RootError::NoRepository`] outside a repository; [`RootError::Folder`] when `folder` is missing.
pub fn project_root(folder: &Path) -> Result<PathBuf, RootError> {
    let start = folder.canonicalize().map_err(|source| RootError::Folder {
        folder: folder.to_owned(),
        source,
    })?;
    for top in start.ancestors() {
        let git = top.join(".git");
        if git.is_dir() {
            return Ok(top.to_owned());
        }
        if git.is_file() {
            return Ok(main_worktree(top, &git).unwrap_or_else(|| top.to_owned()));
        }
    }
    Err(RootError::NoRepository(start))
}

/// Follows `.git` (a file: `gitdir: PATH`) and its `commondir` to the main worktree.
fn main_worktree(top: &Path, git: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(git).ok()?;
    let git_dir = top.join(text.strip_prefix("gitdir:")?.trim());
    let common = std::fs::read_to_string(git_dir.join("commondir")).ok()?;
    let common = git_dir.join(common.trim()).canonicalize().ok()?;
    if common.file_name()? != ".git" {
        return None;
    }
    Some(common.parent()?.to_owned())
}
