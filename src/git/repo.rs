//! The user's repository: opening it, names of commits, what is reachable, which worktrees and branches exist.

use super::call::Git;
use super::error::{GIT_VERSION_MIN, GitError};
use super::parse::{self, Entry};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where flockd's branches are.
pub(super) const BRANCH_FOLDER: &str = "flockd/";

/// Files in a worktree's git folder that say that an operation was begun and not ended.
const UNFINISHED: &[(&str, &str)] = &[
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
];

/// A repository with a working tree and at least one commit. Commands that change its shared files run one at a time.
#[derive(Debug)]
pub struct Repo {
    pub(super) git: Git,
    top: PathBuf,
    common: PathBuf,
    shared_files: Mutex<()>,
}

impl Repo {
    /// Opens the repository that `dir` is in; a linked worktree is fine.
    ///
    /// # Errors
    /// No git, a git that is too old, no repository, no working tree, no commit yet.
    pub fn open(dir: &Path) -> Result<Self, GitError> {
        Self::open_with(Git::default(), dir)
    }

    pub(super) fn open_with(git: Git, dir: &Path) -> Result<Self, GitError> {
        check_version(&git, dir)?;
        let call = git.read(dir).args(["rev-parse", "--show-toplevel"]);
        let output = call.output()?;
        if !output.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(if said.contains("not a git repository") {
                GitError::NotARepository(dir.to_owned())
            } else if said.contains("must be run in a work tree") {
                GitError::NoWorkTree(dir.to_owned())
            } else {
                call.error(&output)
            });
        }
        let top = parse::path_line(&output.stdout).ok_or_else(|| call.unreadable("no path"))?;
        let top = canonical(&top);
        let repo = Self {
            common: git_folder(&git, &top, "--git-common-dir")?,
            git,
            top,
            shared_files: Mutex::new(()),
        };
        match repo.commit_of(&repo.top, "HEAD")? {
            Some(_) => Ok(repo),
            None => Err(GitError::Unborn(repo.top)),
        }
    }

    /// The working tree's topmost folder, without symbolic links.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// The full id of the commit that a name means.
    ///
    /// # Errors
    /// [`GitError::Unresolved`] when it means none.
    pub fn resolve(&self, commitish: &str) -> Result<String, GitError> {
        self.commit_of(&self.top, commitish)?
            .ok_or_else(|| GitError::Unresolved {
                commitish: commitish.to_owned(),
                top: self.top.clone(),
            })
    }

    /// The full id of the commit that is checked out.
    ///
    /// # Errors
    /// See [`Repo::resolve`].
    pub fn head(&self) -> Result<String, GitError> {
        self.resolve("HEAD")
    }

    /// Held while a command changes what all worktrees share: refs and the list of worktrees.
    pub(super) fn shared_files(&self) -> MutexGuard<'_, ()> {
        self.shared_files
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The commit that a name means in a worktree; none: no such commit.
    pub(super) fn commit_of(&self, cwd: &Path, name: &str) -> Result<Option<String>, GitError> {
        if name.is_empty() || name.starts_with('-') || name.contains('\0') {
            return Ok(None);
        }
        let call = self
            .git
            .read(cwd)
            .args(["rev-parse", "--verify", "--quiet"])
            .args([format!("{name}^{{commit}}")]);
        let output = call.output()?;
        match output.code {
            Some(0) => Ok(Some(
                parse::object_id(&output.stdout).ok_or_else(|| call.unreadable("no object id"))?,
            )),
            // 1: no such name; 128: a name of the wrong kind or an id that is not there.
            Some(1 | 128) => Ok(None),
            _ => Err(call.error(&output)),
        }
    }

    /// The commit of a branch.
    pub(super) fn branch_commit(&self, branch: &str) -> Result<Option<String>, GitError> {
        self.commit_of(&self.top, &format!("refs/heads/{branch}"))
    }

    /// Short names of all branches under `flockd/`.
    pub(super) fn branches(&self) -> Result<Vec<String>, GitError> {
        let call = self.git.read(&self.top).args([
            "for-each-ref",
            "--format=%(refname:lstrip=2)",
            "refs/heads/flockd/",
        ]);
        Ok(parse::lines(&call.run()?))
    }

    /// All worktrees that git knows, existing or not, with canonical paths where they exist.
    pub(super) fn worktrees(&self) -> Result<Vec<Entry>, GitError> {
        let call = self
            .git
            .read(&self.top)
            .args(["worktree", "list", "--porcelain", "-z"]);
        let mut entries =
            parse::worktree_list(&call.run()?).ok_or_else(|| call.unreadable("no list"))?;
        for entry in &mut entries {
            entry.path = canonical(&entry.path);
        }
        Ok(entries)
    }

    /// Whether a commit has history that neither `known` nor the user's branches, tags or HEAD contain.
    pub(super) fn has_own_commits(&self, commit: &str, known: &[&str]) -> Result<bool, GitError> {
        let call = self
            .git
            .read(&self.top)
            .args(["rev-list", "--max-count=1", commit, "--not", "HEAD"])
            .args(known)
            .args(["--exclude=flockd/*", "--branches", "--tags", "--remotes"]);
        Ok(!call.run()?.is_empty())
    }

    /// Whether a commit would be lost with the worktree that has it checked out.
    pub(super) fn is_unreferenced(&self, commit: &str) -> Result<bool, GitError> {
        let call = self
            .git
            .read(&self.top)
            .args(["rev-list", "--max-count=1", commit, "--not"])
            .args(["--branches", "--tags", "--remotes"]);
        Ok(!call.run()?.is_empty())
    }

    /// Refuses a folder that is not a working tree of its own and of this repository.
    pub(super) fn check_confined(&self, path: &Path) -> Result<(), GitError> {
        let call = self.git.read(path).args(["rev-parse", "--show-toplevel"]);
        let found = parse::path_line(&call.run()?).ok_or_else(|| call.unreadable("no path"))?;
        let found = canonical(&found);
        let common = git_folder(&self.git, path, "--git-common-dir")?;
        if found == canonical(path) && found != self.top && common == self.common {
            return Ok(());
        }
        Err(GitError::Unconfined {
            path: path.to_owned(),
            found,
        })
    }

    /// Whether a worktree has changes that no commit has. Ignored files do not count.
    pub(super) fn is_dirty(&self, path: &Path) -> Result<bool, GitError> {
        let call = self.git.read(path).args([
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=normal",
            "--ignore-submodules=none",
        ]);
        let output = call.output()?;
        if output.success() {
            return Ok(!output.stdout.is_empty());
        }
        Err(call.error(&output))
    }

    /// The git folder of a worktree.
    pub(super) fn git_folder_of(&self, path: &Path) -> Result<PathBuf, GitError> {
        git_folder(&self.git, path, "--git-dir")
    }

    /// An operation that was begun in a worktree and not ended, in words.
    pub(super) fn unfinished(&self, path: &Path) -> Result<Option<&'static str>, GitError> {
        let folder = self.git_folder_of(path)?;
        let found = UNFINISHED
            .iter()
            .find(|(file, _)| folder.join(file).exists());
        Ok(found.map(|&(_, words)| words))
    }
}

fn check_version(git: &Git, dir: &Path) -> Result<(), GitError> {
    let call = git.read(dir).args(["version"]);
    let (found, text) =
        parse::version(&call.run()?).ok_or_else(|| call.unreadable("no version"))?;
    if found < GIT_VERSION_MIN {
        return Err(GitError::TooOld { found: text });
    }
    Ok(())
}

fn git_folder(git: &Git, cwd: &Path, which: &str) -> Result<PathBuf, GitError> {
    let call = git
        .read(cwd)
        .args(["rev-parse", "--path-format=absolute", which]);
    let folder = parse::path_line(&call.run()?).ok_or_else(|| call.unreadable("no path"))?;
    Ok(canonical(&folder))
}

/// Without symbolic links as far as the path exists; the rest is kept as it is.
pub(super) fn canonical(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if !parent.as_os_str().is_empty() => {
            canonical(parent).join(name)
        }
        _ => path.to_owned(),
    }
}
