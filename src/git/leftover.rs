//! What earlier runs left of a worker: removed when it holds no work, moved aside when it does, never destroyed (W26, W27).

use super::error::GitError;
use super::parse::{self, Entry};
use super::prepare::{NUMBER_MAX, is_taken};
use super::repo::{BRANCH_FOLDER, Repo};
use crate::types::TaskId;
use std::path::{Path, PathBuf};

/// The names that belong to one worker of one task: `<task>.<worker>` and, as a way out, `<task>.<worker>-N`.
#[derive(Debug)]
pub(super) struct Names {
    name: String,
    dir: PathBuf,
}

impl Names {
    pub(super) fn new(task: &TaskId, worker: u32, dir: PathBuf) -> Self {
        Self {
            name: format!("{task}.{worker}"),
            dir,
        }
    }

    /// The folder with this number; 0 is the plain name.
    pub(super) fn path(&self, number: u32) -> PathBuf {
        self.dir.join(numbered(&self.name, number))
    }

    /// The branch's plain name.
    pub(super) fn branch(&self) -> String {
        self.branch_numbered(0)
    }

    /// The branch with this number; 0 is the plain name.
    pub(super) fn branch_numbered(&self, number: u32) -> String {
        format!("{BRANCH_FOLDER}{}", numbered(&self.name, number))
    }

    /// Whether a branch is this worker's.
    pub(super) fn owns_branch(&self, branch: &str) -> bool {
        self.branch_number(branch).is_some()
    }

    fn branch_number(&self, branch: &str) -> Option<u32> {
        parse::own_number(branch.strip_prefix(BRANCH_FOLDER)?, &self.name)
    }

    fn path_number(&self, path: &Path) -> Option<u32> {
        let name = path.file_name()?.to_str()?;
        (path.parent() == Some(&self.dir))
            .then(|| parse::own_number(name, &self.name))
            .flatten()
    }

    /// Where kept work goes: folder and branch.
    fn kept(&self, number: u32) -> (PathBuf, String) {
        (
            self.dir.join(format!("{}.kept-{number}", self.name)),
            kept_branch(&self.name, number),
        )
    }
}

fn numbered(name: &str, number: u32) -> String {
    match number {
        0 => name.to_owned(),
        number => format!("{name}-{number}"),
    }
}

/// Branches that nothing of flockd deletes or reuses.
pub(super) fn kept_branch(name: &str, number: u32) -> String {
    format!("{BRANCH_FOLDER}kept/{name}.{number}")
}

impl Repo {
    /// The worktrees that git knows under this worker's names.
    pub(super) fn own_entries(&self, names: &Names) -> Result<Vec<(u32, Entry)>, GitError> {
        let numbered = |entry: Entry| Some((names.path_number(&entry.path)?, entry));
        Ok(self.worktrees()?.into_iter().filter_map(numbered).collect())
    }

    /// This worker's branches, the newest last.
    pub(super) fn own_branches(&self, names: &Names) -> Result<Vec<String>, GitError> {
        let numbered = |branch: String| Some((names.branch_number(&branch)?, branch));
        let mut found: Vec<_> = self.branches()?.into_iter().filter_map(numbered).collect();
        found.sort();
        Ok(found.into_iter().map(|(_, branch)| branch).collect())
    }

    /// Where a branch is checked out.
    pub(super) fn checked_out_at(&self, branch: &str) -> Result<Option<PathBuf>, GitError> {
        let entries = self.worktrees()?;
        let mut all = entries.into_iter();
        Ok(all
            .find(|entry| entry.branch.as_deref() == Some(branch))
            .map(|entry| entry.path))
    }

    /// Makes the way free for a new attempt, as far as that destroys nothing.
    pub(super) fn clear(
        &self,
        names: &Names,
        base: &str,
        said: &mut Vec<String>,
    ) -> Result<(), GitError> {
        for (_, entry) in self.own_entries(names)? {
            if !entry.path.exists() {
                self.drop_stale(names, &entry, said)?;
            } else if self.check_confined(&entry.path).is_ok() {
                self.clear_worktree(names, &entry, base, said)?;
            }
        }
        for branch in self.own_branches(names)? {
            self.clear_branch(names, &branch, base, said)?;
        }
        Ok(())
    }

    /// A worktree whose state cannot be read counts as one with work in it.
    fn holds_work(&self, entry: &Entry, base: &str) -> bool {
        self.is_dirty(&entry.path).unwrap_or(true)
            || self
                .unfinished(&entry.path)
                .map_or(true, |found| found.is_some())
            || self.has_own_commits(&entry.head, &[base]).unwrap_or(true)
    }

    fn clear_worktree(
        &self,
        names: &Names,
        entry: &Entry,
        base: &str,
        said: &mut Vec<String>,
    ) -> Result<(), GitError> {
        if !self.holds_work(entry, base) && attempt(self.remove_registered(&entry.path))?.is_ok() {
            return Ok(());
        }
        let (number, path) = self.free_kept(names)?;
        let call = self.git.write(self.top()).args(["worktree", "move"]);
        if let Err(error) = attempt(call.path(&entry.path).path(&path).run())? {
            said.push(format!(
                "{} cannot be moved aside: {error}",
                parse::shown(&entry.path)
            ));
            return Ok(());
        }
        let mut line = format!(
            "{} had work in it: it is now {}",
            parse::shown(&entry.path),
            parse::shown(&path)
        );
        let kept = match &entry.branch {
            Some(branch) if names.owns_branch(branch) => self.rename(names, branch, number)?,
            Some(_) => None,
            None => self.keep_commit(names, &entry.head, number)?,
        };
        if let Some(kept) = kept {
            line.push_str(&format!(" on branch {kept}"));
        }
        said.push(line);
        Ok(())
    }

    /// Forgets a worktree whose folder is gone. Only this one: others may be on a disk that is not mounted now.
    pub(super) fn drop_stale(
        &self,
        names: &Names,
        entry: &Entry,
        said: &mut Vec<String>,
    ) -> Result<(), GitError> {
        if entry.branch.is_none() {
            let (number, _) = self.free_kept(names)?;
            if let Some(kept) = self.keep_commit(names, &entry.head, number)? {
                said.push(format!(
                    "{} is gone: the commit it was at is kept on branch {kept}",
                    parse::shown(&entry.path)
                ));
            }
        }
        if let Err(error) = attempt(self.remove_registered(&entry.path))? {
            said.push(format!(
                "git still lists the missing {}: {error}",
                parse::shown(&entry.path)
            ));
        }
        Ok(())
    }

    fn clear_branch(
        &self,
        names: &Names,
        branch: &str,
        base: &str,
        said: &mut Vec<String>,
    ) -> Result<(), GitError> {
        let Some(commit) = self.branch_commit(branch)? else {
            return Ok(());
        };
        if let Some(place) = self.checked_out_at(branch)? {
            said.push(format!(
                "{branch} is checked out in {} and was left alone",
                parse::shown(&place)
            ));
        } else if self.has_own_commits(&commit, &[base])? {
            let (number, _) = self.free_kept(names)?;
            if let Some(kept) = self.rename(names, branch, number)? {
                said.push(format!("{branch} had commits of its own: it is now {kept}"));
            }
        } else {
            // It may have been checked out meanwhile; then its name is avoided.
            let _ = attempt(self.delete_branch(branch))?;
        }
        Ok(())
    }

    /// The new name, or none when git refuses: a branch that is being rebased keeps its name.
    fn rename(&self, names: &Names, branch: &str, number: u32) -> Result<Option<String>, GitError> {
        let (_, kept) = names.kept(number);
        let call = self.git.write(self.top());
        let renamed = call.args(["branch", "-m", branch, &kept]).run();
        Ok(attempt(renamed)?.is_ok().then_some(kept))
    }

    /// A kept branch for a commit that only a detached HEAD knows.
    fn keep_commit(
        &self,
        names: &Names,
        commit: &str,
        number: u32,
    ) -> Result<Option<String>, GitError> {
        if !matches!(attempt(self.is_unreferenced(commit))?, Ok(true)) {
            return Ok(None);
        }
        let (_, kept) = names.kept(number);
        let call = self.git.write(self.top());
        call.args(["branch", "--no-track", &kept, commit]).run()?;
        Ok(Some(kept))
    }

    /// The first number whose folder and branch nothing has.
    fn free_kept(&self, names: &Names) -> Result<(u32, PathBuf), GitError> {
        let branches = self.branches()?;
        let free = |number: u32| {
            let (path, branch) = names.kept(number);
            let is_free = !branches.contains(&branch) && !is_taken(&path) && !path.exists();
            is_free.then_some((number, path))
        };
        Ok((1..=NUMBER_MAX)
            .find_map(free)
            .unwrap_or_else(|| (NUMBER_MAX, names.kept(NUMBER_MAX).0)))
    }

    /// `git worktree remove`, never forced: git itself refuses dirty, locked and submodule-holding trees.
    pub(super) fn remove_registered(&self, path: &Path) -> Result<(), GitError> {
        let call = self.git.write(self.top());
        call.args(["worktree", "remove"]).path(path).run().map(drop)
    }

    /// Deletes a branch; git refuses when it is checked out anywhere.
    pub(super) fn delete_branch(&self, branch: &str) -> Result<(), GitError> {
        let call = self.git.write(self.top());
        call.args(["branch", "-D", branch]).run().map(drop)
    }
}

/// A step that may be refused: only the machine's faults end the whole.
pub(super) fn attempt<T>(result: Result<T, GitError>) -> Result<Result<T, GitError>, GitError> {
    match result {
        Err(error) if error.is_systemic() => Err(error),
        other => Ok(other),
    }
}
