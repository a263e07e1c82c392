//! Keeping what a worker did: all of it in one commit on its branch, and the patch from the base.

use super::command::{Git, OUTPUT_BYTES_MAX};
use super::error::GitError;
use super::parse::{TreeDiff, raw_diff};
use super::repo::{Repo, branch_ref};
use super::worktree::Worktree;
use std::path::Path;

/// What a worker did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// On the worker's branch; the base when nothing was changed.
    pub commit: String,
    /// Repository-relative paths; both names of a renamed file.
    pub changed_files: Vec<String>,
    /// From the base, applicable by `git apply`; empty when nothing was changed.
    pub patch: Vec<u8>,
    /// What people should know: a HEAD that was left elsewhere, a nested repository.
    pub notes: Vec<String>,
}

/// Who commits when git does not know the user.
const FALLBACK: (&str, &str) = ("flockd", "flockd@localhost");

impl Repo {
    /// Commits everything in the worktree that is not ignored, and keeps commits that the agent made,
    /// wherever it left HEAD, reachable from the branch. Runs no hook and signs nothing.
    ///
    /// # Errors
    /// [`GitError`]; the worktree still has everything then.
    pub fn capture(
        &self,
        worktree: &Worktree,
        base: &str,
        message: &str,
    ) -> Result<Captured, GitError> {
        let path = &worktree.path;
        self.check_confined(path)?;
        let mut notes = Vec::new();
        let head = self.commit_of(path, "HEAD")?;
        let tree = work_tree(path, head.as_deref(), &mut notes)?;
        let head_tree = match &head {
            Some(head) => {
                Some(Git::read(path, &["rev-parse", &format!("{head}^{{tree}}")]).line()?)
            }
            None => None,
        };
        let work = match head {
            Some(head) if head_tree.as_ref() == Some(&tree) => head,
            Some(head) => commit_tree(path, &tree, &[&head], message)?,
            // An orphan branch: its work is tied to the base, so that it has a history.
            None => commit_tree(path, &tree, &[base], message)?,
        };
        let commit = self.put_on_branch(worktree, &work, &tree, message, &mut notes)?;
        if commit == base {
            return Ok(Captured {
                commit,
                changed_files: Vec::new(),
                patch: Vec::new(),
                notes,
            });
        }
        if !self.is_ancestor(base, &commit)? {
            notes.push(format!(
                "{} does not contain its base {base}",
                worktree.branch
            ));
        }
        let diff = changed(path, base, &commit)?;
        for nested in &diff.nested {
            notes.push(format!(
                "{nested} is a repository of its own: its files are not captured"
            ));
        }
        Ok(Captured {
            patch: patch(path, base, &commit, &mut notes)?,
            commit,
            changed_files: diff.files,
            notes,
        })
    }

    /// Moves the branch so that it has the work and all it had, and HEAD to the branch.
    fn put_on_branch(
        &self,
        worktree: &Worktree,
        work: &str,
        tree: &str,
        message: &str,
        notes: &mut Vec<String>,
    ) -> Result<String, GitError> {
        let path = &worktree.path;
        let own = branch_ref(&worktree.branch);
        let on = Git::read(path, &["symbolic-ref", "--quiet", "HEAD"]).line_if()?;
        let tip = self.branch_tip(&worktree.branch)?;
        if on.as_ref() != Some(&own) {
            let place = on.as_deref().unwrap_or("a detached commit");
            notes.push(format!(
                "HEAD was left at {place}; the work is on {}",
                worktree.branch
            ));
        }
        let commit = match &tip {
            Some(tip) if !self.is_ancestor(tip, work)? => {
                if self.is_ancestor(work, tip)? {
                    // Nothing beyond what the branch has.
                    return Ok(tip.clone());
                }
                // Both lines of work stay reachable; the tree is the one the agent left.
                commit_tree(path, tree, &[work, tip], message)?
            }
            _ => work.to_owned(),
        };
        if tip.as_ref() != Some(&commit) {
            let git = Git::write(
                path,
                &["update-ref", "-m", "flockd: capture", &own, &commit],
            );
            // With the expected value: nobody else's update is overwritten.
            git.arg(tip.as_deref().unwrap_or("")).output()?;
        }
        if on.as_ref() != Some(&own) {
            Git::write(path, &["symbolic-ref", "HEAD", &own]).output()?;
        }
        Ok(commit)
    }
}

/// The tree of all that is there and not ignored. What git cannot add (a nested repository without a
/// commit, an unreadable file) is named and does not keep the rest from being kept.
fn work_tree(path: &Path, head: Option<&str>, notes: &mut Vec<String>) -> Result<String, GitError> {
    let own = Index { path, file: None };
    let all = own.git(&["add", "--all", "."]).long().answer()?;
    if all.success() {
        return own.git(&["write-tree"]).line();
    }
    let index = if String::from_utf8_lossy(&all.stderr).contains("index.lock") {
        // A git that was killed left it, and it is not ours to remove.
        notes
            .push("index.lock is left in the worktree by a git command that was killed".to_owned());
        Index::aside(path, head)?
    } else {
        own
    };
    let rest = index
        .git(&["add", "--all", "--ignore-errors", "."])
        .long()
        .answer()?;
    let stderr = String::from_utf8_lossy(&rest.stderr);
    if let Some(line) = stderr.lines().find(|line| line.starts_with("error:")) {
        notes.push(format!("not everything could be captured: {line}"));
    }
    index.git(&["write-tree"]).line()
}

/// Which index a command uses.
struct Index<'a> {
    path: &'a Path,
    /// None: the worktree's.
    file: Option<String>,
}

impl<'a> Index<'a> {
    /// One of our own beside the worktree's; it goes with the worktree.
    fn aside(path: &'a Path, head: Option<&str>) -> Result<Self, GitError> {
        let name = format!("flockd.{}.index", std::process::id());
        let args = ["rev-parse", "--path-format=absolute", "--git-path", &name];
        let index = Self {
            path,
            file: Some(Git::read(path, &args).line()?),
        };
        if let Some(head) = head {
            index.git(&["read-tree", head]).long().output()?;
        }
        Ok(index)
    }

    fn git(&self, args: &[&str]) -> Git {
        let git = Git::write(self.path, args);
        match &self.file {
            Some(file) => git.env("GIT_INDEX_FILE", file),
            None => git,
        }
    }
}

fn commit_tree(
    path: &Path,
    tree: &str,
    parents: &[&str],
    message: &str,
) -> Result<String, GitError> {
    let mut git = Git::write(path, &["commit-tree", tree]);
    for parent in parents {
        git = git.arg("-p").arg(parent);
    }
    for (ident, role) in [
        ("GIT_AUTHOR_IDENT", "AUTHOR"),
        ("GIT_COMMITTER_IDENT", "COMMITTER"),
    ] {
        if Git::read(path, &["var", ident]).line_if()?.is_none() {
            git = git
                .env(&format!("GIT_{role}_NAME"), FALLBACK.0)
                .env(&format!("GIT_{role}_EMAIL"), FALLBACK.1);
        }
    }
    git.stdin(message).line()
}

fn changed(path: &Path, base: &str, commit: &str) -> Result<TreeDiff, GitError> {
    let git = Git::read(
        path,
        &[
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            base,
            commit,
        ],
    )
    .long();
    let output = git.output()?;
    raw_diff(&output.stdout).ok_or_else(|| GitError::Answer {
        command: "diff-tree --raw".to_owned(),
        answer: String::from_utf8_lossy(&output.stdout)
            .chars()
            .take(200)
            .collect(),
    })
}

fn patch(
    path: &Path,
    base: &str,
    commit: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<u8>, GitError> {
    let args = [
        "diff-tree",
        "-r",
        "-p",
        "--binary",
        "--full-index",
        "--no-ext-diff",
        "--no-textconv",
    ];
    let output = Git::read(path, &args)
        .arg(base)
        .arg(commit)
        .long()
        .output()?;
    if output.truncated {
        let max = OUTPUT_BYTES_MAX >> 20;
        notes.push(format!(
            "the patch is larger than {max} MiB and not kept; commit {commit} has it"
        ));
        return Ok(Vec::new());
    }
    Ok(output.stdout)
}
