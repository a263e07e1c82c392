//! What a worker did, kept: a commit on its branch and a patch, before anything is removed (contract 13).

use super::command::{Git, GitError};
use super::parse;
use super::repo::Repo;
use super::worktree::Worktree;

/// What a worker left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The commit with all its work; the base when it changed nothing.
    pub commit: String,
    /// Paths that differ from the base.
    pub changed_files: Vec<String>,
    /// The difference; empty when there is none.
    pub patch: Vec<u8>,
    /// Things people should know.
    pub notes: Vec<String>,
}

impl Repo {
    /// Commits what is uncommitted and describes the difference to the base. Hooks are not run: this is a
    /// snapshot, not a statement. Ignored files are not kept.
    ///
    /// # Errors
    /// [`GitError`]; nothing is lost then.
    pub fn capture(
        &self,
        worktree: &Worktree,
        base: &str,
        message: &str,
    ) -> Result<Captured, GitError> {
        let git = || Git::at(&worktree.path);
        git().args(["add", "--all"]).ok()?;
        if !git()
            .reading()
            .args(["diff", "--cached", "--quiet"])
            .succeeds()?
        {
            let mut commit = git();
            if !git().reading().args(["config", "user.email"]).succeeds()? {
                commit = commit
                    .with("user.name=flockd")
                    .with("user.email=flockd@localhost");
            }
            commit
                .with("commit.gpgSign=false")
                .args([
                    "commit",
                    "--quiet",
                    "--no-verify",
                    "--cleanup=verbatim",
                    "-m",
                    message,
                ])
                .ok()?;
        }
        let commit = git()
            .reading()
            .args(["rev-parse", "--verify", "HEAD^{commit}"])
            .text()?;
        let notes = self.point_branch(worktree, &commit)?;
        let range = [base, commit.as_str()];
        let patch = git()
            .reading()
            .args([
                "diff",
                "--binary",
                "--full-index",
                "--no-ext-diff",
                "--no-color",
            ])
            .args(range)
            .ok()?;
        let names = git()
            .reading()
            .args(["diff", "--name-only", "--no-renames", "-z"])
            .args(range)
            .ok()?;
        Ok(Captured {
            commit,
            changed_files: parse::fields(&names),
            patch,
            notes,
        })
    }

    /// An agent may have left HEAD somewhere else: the work must be on our branch all the same.
    fn point_branch(&self, worktree: &Worktree, commit: &str) -> Result<Vec<String>, GitError> {
        let branch = &worktree.branch;
        let Some(tip) = self.branch(branch)? else {
            self.git()
                .args(["branch", "--no-track", branch, commit])
                .ok()?;
            return Ok(vec![format!(
                "{branch} was gone and points at the work again"
            )]);
        };
        if tip == commit {
            return Ok(Vec::new());
        }
        if self
            .git()
            .reading()
            .args(["merge-base", "--is-ancestor", &tip, commit])
            .succeeds()?
        {
            let name = format!("refs/heads/{branch}");
            self.git().args(["update-ref", &name, commit, &tip]).ok()?;
            return Ok(vec![format!(
                "the work was not on {branch}, which now points at it"
            )]);
        }
        let aside = format!("{branch}.head");
        self.git()
            .args(["branch", "--no-track", "--force", &aside, commit])
            .ok()?;
        Ok(vec![format!(
            "the worktree's HEAD is not on {branch}; it is kept as {aside}"
        )])
    }
}
