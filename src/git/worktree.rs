//! Making and removing the worktree of one worker. What an earlier life left there is never lost and
//! never in the way (W27): it is removed when a commit has it all, and moved aside otherwise.

use super::command::Git;
use super::error::GitError;
use super::parse::ListedWorktree;
use super::repo::{Repo, branch_ref, same_path};
use crate::types::TaskId;
use std::path::{Path, PathBuf};

/// Names tried before giving up: as many leftovers of one worker mean that something else is wrong.
const NAMES_MAX: u32 = 1000;

/// A worktree for one worker of a task.
#[derive(Debug, Clone)]
pub struct WorktreeRequest {
    /// The task.
    pub task: TaskId,
    /// From 1.
    pub worker: u32,
    /// The commit it starts from.
    pub base: String,
    /// The folder it is made in.
    pub dir: PathBuf,
    /// Take the one that is there, as it is: a run is resumed, a child may be at work in it.
    pub reuse: bool,
}

/// A worktree of its own on a branch of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Where it is.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// What was in the way and where it is now, for people.
    pub moved_aside: Vec<String>,
}

/// What became of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// It is gone; its branch stays.
    Yes,
    /// It has changes that no commit has, or git refuses: it stays.
    KeptDirty,
}

/// The places of one worker, free to use.
struct Place {
    path: PathBuf,
    branch: String,
    notes: Vec<String>,
}

impl Repo {
    /// Makes `<dir>/<task>.<worker>` on branch `flockd/<task>.<worker>`, without upstream tracking.
    /// Never two at once: the caller serialises.
    ///
    /// # Errors
    /// [`GitError`]; nothing of an earlier life is removed then (contract 14).
    pub fn prepare_worktree(&self, request: &WorktreeRequest) -> Result<Worktree, GitError> {
        let name = format!("{}.{}", request.task, request.worker);
        let path = request.dir.join(&name);
        let branch = format!("flockd/{name}");
        let listed = self.worktrees()?;
        let there = listed.iter().find(|entry| same_path(&entry.path, &path));
        let usable = || path.is_dir() && self.check_confined(&path).is_ok();
        if request.reuse && there.is_some() && usable() {
            return Ok(Worktree {
                path,
                branch,
                moved_aside: Vec::new(),
            });
        }
        let mut place = Place {
            path,
            branch,
            notes: Vec::new(),
        };
        self.clear_path(&name, request, there, &mut place)?;
        self.clear_branch(&name, request, &mut place)?;
        let (path, branch) = (&place.path, &place.branch);
        Git::write(
            self.top(),
            &["worktree", "add", "--quiet", "--no-track", "-b", branch],
        )
        .arg(path)
        .arg(&request.base)
        .long()
        .output()?;
        self.check_confined(path)?;
        Ok(Worktree {
            path: place.path,
            branch: place.branch,
            moved_aside: place.notes,
        })
    }

    /// Frees the path, or chooses another.
    fn clear_path(
        &self,
        name: &str,
        request: &WorktreeRequest,
        there: Option<&ListedWorktree>,
        place: &mut Place,
    ) -> Result<(), GitError> {
        let path = place.path.clone();
        match there {
            Some(entry) if path.exists() => self.clear_worktree(name, request, entry, place)?,
            // Only its record is left; dropping this one leaves other people's stale records alone.
            Some(_) => {
                let dropped = Git::write(self.top(), &["worktree", "remove"])
                    .arg(&path)
                    .answer()?;
                if !dropped.success() {
                    self.choose_other_path(name, request, place, "is registered and locked");
                }
            }
            None if is_free(&path) => {}
            None => {
                self.choose_other_path(
                    name,
                    request,
                    place,
                    "is not a worktree of this repository",
                );
            }
        }
        Ok(())
    }

    /// A worktree of an earlier life is where ours goes.
    fn clear_worktree(
        &self,
        name: &str,
        request: &WorktreeRequest,
        entry: &ListedWorktree,
        place: &mut Place,
    ) -> Result<(), GitError> {
        let path = place.path.clone();
        let tip = self.branch_tip(&place.branch)?;
        let on_branch = entry.head.is_some() && entry.head == tip;
        let merged = match &entry.head {
            Some(head) => self.is_ancestor(head, &request.base)?,
            None => false,
        };
        // An unreadable work tree counts as dirty: better moved than lost.
        let clean = !self.is_dirty(&path).unwrap_or(true);
        if clean && (merged || on_branch) {
            let removed = Git::write(self.top(), &["worktree", "remove"])
                .arg(&path)
                .long()
                .answer()?;
            if removed.success() {
                return Ok(());
            }
        }
        let Some(number) = self.free_kept_number(name, request)? else {
            self.choose_other_path(name, request, place, "cannot be moved");
            return Ok(());
        };
        let kept = request.dir.join(format!("{name}.kept-{number}"));
        let moved = Git::write(self.top(), &["worktree", "move"])
            .arg(&path)
            .arg(&kept)
            .long()
            .answer()?;
        if !moved.success() {
            self.choose_other_path(name, request, place, "cannot be moved");
            return Ok(());
        }
        place
            .notes
            .push(format!("{} moved to {}", path.display(), kept.display()));
        if tip.is_some() && entry.branch.as_deref() == Some(&place.branch) {
            self.rename_branch(&place.branch, &kept_branch(name, number), &mut place.notes)?;
        }
        Ok(())
    }

    /// Frees the branch name, or chooses another.
    fn clear_branch(
        &self,
        name: &str,
        request: &WorktreeRequest,
        place: &mut Place,
    ) -> Result<(), GitError> {
        let Some(tip) = self.branch_tip(&place.branch)? else {
            return Ok(());
        };
        let in_use = self
            .worktrees()?
            .iter()
            .any(|entry| entry.branch.as_deref() == Some(&place.branch));
        if in_use {
            for number in 2..NAMES_MAX {
                let other = format!("flockd/{name}.{number}");
                if self.branch_tip(&other)?.is_none() {
                    place.notes.push(format!(
                        "branch {} is checked out elsewhere and left alone",
                        place.branch
                    ));
                    place.branch = other;
                    return Ok(());
                }
            }
            return Ok(());
        }
        if self.is_ancestor(&tip, &request.base)? {
            // With the expected value: a commit made meanwhile makes this fail, and nothing is lost.
            Git::write(
                self.top(),
                &["update-ref", "-d", &branch_ref(&place.branch), &tip],
            )
            .output()?;
            return Ok(());
        }
        match self.free_kept_number(name, request)? {
            Some(number) => {
                self.rename_branch(&place.branch, &kept_branch(name, number), &mut place.notes)
            }
            None => Ok(()),
        }
    }

    fn rename_branch(&self, from: &str, to: &str, notes: &mut Vec<String>) -> Result<(), GitError> {
        Git::write(self.top(), &["branch", "--move", from, to]).output()?;
        notes.push(format!("branch {from} renamed to {to}"));
        Ok(())
    }

    /// A number that neither a kept worktree nor a kept branch has.
    fn free_kept_number(
        &self,
        name: &str,
        request: &WorktreeRequest,
    ) -> Result<Option<u32>, GitError> {
        for number in 1..NAMES_MAX {
            let path = request.dir.join(format!("{name}.kept-{number}"));
            if !path.exists() && self.branch_tip(&kept_branch(name, number))?.is_none() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    fn choose_other_path(
        &self,
        name: &str,
        request: &WorktreeRequest,
        place: &mut Place,
        why: &str,
    ) {
        let listed = self.worktrees().unwrap_or_default();
        let other = (2..NAMES_MAX)
            .map(|number| request.dir.join(format!("{name}.{number}")))
            .find(|path| is_free(path) && !listed.iter().any(|entry| same_path(&entry.path, path)));
        if let Some(other) = other {
            place
                .notes
                .push(format!("{} {why} and is left alone", place.path.display()));
            place.path = other;
        }
    }

    /// Removes a worktree whose every change is in a commit on its branch; never by force.
    ///
    /// # Errors
    /// [`GitError`] when git cannot be asked.
    pub fn remove_worktree(&self, worktree: &Worktree) -> Result<Removed, GitError> {
        if worktree.path.exists() {
            let head = self.commit_of(&worktree.path, "HEAD")?;
            let tip = self.branch_tip(&worktree.branch)?;
            let reachable = match (&head, &tip) {
                (Some(head), Some(tip)) => self.is_ancestor(head, tip)?,
                _ => false,
            };
            if !reachable || self.is_dirty(&worktree.path)? {
                return Ok(Removed::KeptDirty);
            }
        }
        let git = Git::write(self.top(), &["worktree", "remove"])
            .arg(&worktree.path)
            .long();
        Ok(if git.answer()?.success() {
            Removed::Yes
        } else {
            Removed::KeptDirty
        })
    }
}

fn kept_branch(name: &str, number: u32) -> String {
    format!("flockd/kept/{name}.{number}")
}

/// Missing, or an empty folder: git makes a worktree in either.
fn is_free(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => path.symlink_metadata().is_err(),
    }
}
