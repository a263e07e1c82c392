//! Everything a worker did becomes one commit on its branch and one patch.

use super::call::Call;
use super::error::GitError;
use super::leftover::{attempt, kept_branch};
use super::parse;
use super::prepare::{NUMBER_MAX, Worktree};
use super::repo::{BRANCH_FOLDER, Repo};
use std::ffi::OsStr;
use std::path::Path;

/// A patch beyond this is replaced by one line; the commit has everything.
const PATCH_BYTES_MAX: usize = 256 << 20;

/// Calls of `git add` that are made to find the paths that git refuses.
const ADD_CALLS_MAX: u32 = 400;

/// Name of the second index, used when the first is locked by a git that was killed.
const SECOND_INDEX: &str = "flockd-index";

/// The work of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The commit that has all of it; the base itself when nothing changed.
    pub commit: String,
    /// Paths that differ between base and commit; a rename is two of them. Not UTF-8: with replacement characters.
    pub changed_files: Vec<String>,
    /// `git apply` can apply it to the base; empty when nothing changed.
    pub patch: Vec<u8>,
    /// What the user should know: one sentence each.
    pub notes: Vec<String>,
}

impl Repo {
    /// Commits everything that is not ignored and answers what changed since `base`.
    ///
    /// The worker may have committed, switched branches or left a merge unfinished. What cannot be added is noted and
    /// left in the tree, which then is dirty and stays (see [`Repo::remove_worktree`]). Ignored files are not part of it.
    ///
    /// # Errors
    /// Git cannot commit or compare; the tree is as it was, apart from what was added to the index.
    pub fn capture(
        &self,
        worktree: &Worktree,
        base: &str,
        message: &str,
    ) -> Result<Captured, GitError> {
        let base = self.resolve(base)?;
        self.check_confined(&worktree.path)?;
        let mut notes = Vec::new();
        if let Some(words) = self.unfinished(&worktree.path)? {
            notes.push(format!(
                "{words} was left unfinished: the files are captured as they are"
            ));
        }
        self.leave_foreign_branch(worktree)?;
        match self.commit_all(worktree, message, &mut notes) {
            Err(GitError::Locked { file, .. }) if is_index_lock(&file) => {
                notes.push(format!(
                    "{} was left by a git that was killed: the work is captured beside it, the worktree is kept",
                    parse::shown(&file)
                ));
                self.commit_beside(worktree, message, &mut notes)?;
            }
            other => other?,
        }
        let commit = self.commit_of(&worktree.path, "HEAD")?;
        let commit = commit.unwrap_or_else(|| base.clone());
        self.bring_branch_to(worktree, &commit, &mut notes)?;
        let changed_files = self.changed_files(worktree, &base, &commit, &mut notes)?;
        let patch = self.patch(worktree, &base, &commit, &mut notes)?;
        Ok(Captured {
            commit,
            changed_files,
            patch,
            notes,
        })
    }

    /// The commit must not move a branch that is somebody else's: HEAD is detached from it where it is.
    fn leave_foreign_branch(&self, worktree: &Worktree) -> Result<(), GitError> {
        let path = &worktree.path;
        let (current, own) = (self.head_of(path)?, own_ref(worktree));
        let is_foreign = !current.is_empty() && current != own;
        let Some(head) = self.commit_of(path, "HEAD")?.filter(|_| is_foreign) else {
            return Ok(());
        };
        let _one_at_a_time = self.shared_files();
        let call = self.git.write(path).args(["update-ref", "--no-deref"]);
        call.args(["-m", "flockd: capture", "HEAD", &head])
            .run()
            .map(drop)
    }

    /// What HEAD names; empty when it is detached.
    fn head_of(&self, path: &Path) -> Result<String, GitError> {
        let call = self.git.read(path);
        let head = call.args(["symbolic-ref", "--quiet", "HEAD"]).output()?;
        Ok(parse::lines(&head.stdout).pop().unwrap_or_default())
    }

    /// The ordinary way: the worktree's own index and `git commit`.
    fn commit_all(
        &self,
        worktree: &Worktree,
        message: &str,
        notes: &mut Vec<String>,
    ) -> Result<(), GitError> {
        let path = &worktree.path;
        self.add_all(&|| self.git.write(path), notes)?;
        if !self.is_staged(path, |call| call)? {
            return Ok(());
        }
        let _one_at_a_time = self.shared_files();
        let committed = self
            .with_identity(self.git.write(path), path)?
            .args(["commit", "--quiet", "--no-verify", "--no-gpg-sign"])
            .args(["--allow-empty-message", "--cleanup=whitespace", "-F", "-"])
            .stdin(message.as_bytes())
            .run();
        committed.map(drop)
    }

    /// The way around a locked index: a second index, a commit made of it, HEAD moved by compare-and-swap.
    fn commit_beside(
        &self,
        worktree: &Worktree,
        message: &str,
        notes: &mut Vec<String>,
    ) -> Result<(), GitError> {
        let path = &worktree.path;
        let index = self.git_folder_of(path)?.join(SECOND_INDEX);
        let beside = |call: Call| call.env("GIT_INDEX_FILE", index.as_os_str());
        let Some(head) = self.commit_of(path, "HEAD")? else {
            return Ok(());
        };
        beside(self.git.write(path))
            .args(["read-tree", &head])
            .run()?;
        self.add_all(&|| beside(self.git.write(path)), notes)?;
        if !self.is_staged(path, beside)? {
            return Ok(());
        }
        let call = beside(self.git.write(path)).args(["write-tree"]);
        let tree = parse::object_id(&call.run()?).ok_or_else(|| call.unreadable("no tree"))?;
        let call = self
            .with_identity(self.git.write(path), path)?
            .args([
                "commit-tree",
                "--no-gpg-sign",
                "-p",
                &head,
                "-F",
                "-",
                &tree,
            ])
            .stdin(message.as_bytes());
        let commit = parse::object_id(&call.run()?).ok_or_else(|| call.unreadable("no commit"))?;
        let _one_at_a_time = self.shared_files();
        let call = self.git.write(path);
        call.args([
            "update-ref",
            "-m",
            "flockd: capture",
            "HEAD",
            &commit,
            &head,
        ])
        .run()
        .map(drop)
    }

    /// Adds what can be added; a path that cannot is noted and stays in the tree.
    fn add_all(&self, call: &dyn Fn() -> Call, notes: &mut Vec<String>) -> Result<(), GitError> {
        match call()
            .args(["add", "-A", "--ignore-errors", "--", "."])
            .run()
        {
            // One file that cannot be read, or whose filter fails, makes git give up on all of them.
            Err(GitError::Failed { .. }) => {}
            other => return other.map(drop),
        }
        let list = call().args([
            "ls-files",
            "-z",
            "--others",
            "--modified",
            "--exclude-standard",
        ]);
        let listed = list.args(["--deduplicate"]).run()?;
        let paths: Vec<&[u8]> = listed
            .split(|&b| b == 0)
            .filter(|p| !p.is_empty())
            .collect();
        let mut calls_left = ADD_CALLS_MAX;
        add_parts(call, &paths, &mut calls_left, notes)
    }

    /// Whether the index differs from HEAD; without a HEAD everything does.
    fn is_staged(&self, path: &Path, with: impl Fn(Call) -> Call) -> Result<bool, GitError> {
        if self.commit_of(path, "HEAD")?.is_none() {
            return Ok(true);
        }
        let call = with(self.git.read(path));
        let same = call
            .args([
                "diff-index",
                "--cached",
                "--quiet",
                "--ignore-submodules=none",
                "HEAD",
            ])
            .ask()?;
        Ok(!same)
    }

    /// flockd's own name for a user who has none: a guess from host and account would be worse.
    fn with_identity(&self, call: Call, path: &Path) -> Result<Call, GitError> {
        for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            let ask = self.git.read(path).setting("user.useConfigOnly=true");
            if !ask.args(["var", who]).output()?.success() {
                return Ok(call
                    .setting("user.name=flockd")
                    .setting("user.email=flockd@localhost"));
            }
        }
        Ok(call)
    }

    /// Moves the worker's branch to the commit when that loses nothing, and keeps the commit under a name otherwise.
    fn bring_branch_to(
        &self,
        worktree: &Worktree,
        commit: &str,
        notes: &mut Vec<String>,
    ) -> Result<(), GitError> {
        let current = self.head_of(&worktree.path)?;
        let own = own_ref(worktree);
        if current == own {
            return Ok(());
        }
        let _one_at_a_time = self.shared_files();
        let old = self.branch_commit(&worktree.branch)?;
        if old.as_deref() == Some(commit) {
            return Ok(());
        }
        let is_forward = match &old {
            None => true,
            Some(old) => self.is_ancestor(old, commit)?,
        };
        if is_forward && self.checked_out_at(&worktree.branch)?.is_none() {
            let call = self.git.write(self.top());
            let was = old.unwrap_or_default();
            call.args(["update-ref", "-m", "flockd: capture", &own, commit, &was])
                .run()?;
            return Ok(());
        }
        let place = match current.strip_prefix("refs/heads/") {
            Some(branch) => branch.to_owned(),
            None => self.keep_detached(worktree, commit)?,
        };
        notes.push(format!(
            "the work is on {place}, not on {}: the branch has commits that the work does not contain, or is in use",
            worktree.branch
        ));
        Ok(())
    }

    fn is_ancestor(&self, old: &str, new: &str) -> Result<bool, GitError> {
        let call = self.git.read(self.top());
        call.args(["merge-base", "--is-ancestor", old, new]).ask()
    }

    /// A kept branch for a detached commit, unless a branch has it already.
    fn keep_detached(&self, worktree: &Worktree, commit: &str) -> Result<String, GitError> {
        let name = worktree.branch.strip_prefix(BRANCH_FOLDER);
        let name = name.unwrap_or(&worktree.branch);
        let taken = self.branches()?;
        let mut free = (1..=NUMBER_MAX).map(|n| kept_branch(name, n));
        let kept = free
            .find(|kept| !taken.contains(kept))
            .unwrap_or_else(|| kept_branch(name, NUMBER_MAX));
        let call = self.git.write(self.top());
        let made = call.args(["branch", "--no-track", &kept, commit]).run();
        Ok(attempt(made)?.map_or_else(|_| commit.to_owned(), |_| kept))
    }

    fn changed_files(
        &self,
        worktree: &Worktree,
        base: &str,
        commit: &str,
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>, GitError> {
        let call = self
            .git
            .read(&worktree.path)
            .args(["diff-tree", "-r", "--raw", "-z", "--no-renames"])
            .args(["--ignore-submodules=none", base, commit]);
        let changes = parse::raw_changes(&call.run()?)
            .ok_or_else(|| call.unreadable("no list of changes"))?;
        let mut files = Vec::with_capacity(changes.len());
        for change in changes {
            let path = String::from_utf8_lossy(&change.path).into_owned();
            if change.new_link {
                notes.push(format!(
                    "{path} is a git repository of its own: only its commit's id is captured, not its files"
                ));
            }
            files.push(path);
        }
        Ok(files)
    }

    /// Plumbing, so that no setting of the user changes the format.
    fn patch(
        &self,
        worktree: &Worktree,
        base: &str,
        commit: &str,
        notes: &mut Vec<String>,
    ) -> Result<Vec<u8>, GitError> {
        let call = self
            .git
            .read(&worktree.path)
            .args(["diff-tree", "-r", "-p", "--binary", "--full-index"])
            .args([
                "--no-ext-diff",
                "--no-textconv",
                "--no-color",
                "--no-renames",
            ])
            .args(["--ignore-submodules=none", base, commit])
            .output_max(PATCH_BYTES_MAX);
        let output = call.output()?;
        if !output.success() {
            return Err(call.error(&output));
        }
        if !output.truncated {
            return Ok(output.stdout);
        }
        let instead = format!(
            "the patch is larger than {} MiB: use `git diff {base} {commit}`",
            PATCH_BYTES_MAX >> 20
        );
        notes.push(instead.clone());
        Ok(format!("{instead}\n").into_bytes())
    }
}

fn own_ref(worktree: &Worktree) -> String {
    format!("refs/heads/{}", worktree.branch)
}

/// Adds paths; when git refuses them together, each half by itself, down to the ones that are at fault.
fn add_parts(
    call: &dyn Fn() -> Call,
    paths: &[&[u8]],
    calls_left: &mut u32,
    notes: &mut Vec<String>,
) -> Result<(), GitError> {
    if paths.is_empty() {
        return Ok(());
    }
    let mut refused = String::from("too many paths are refused");
    if let Some(left) = calls_left.checked_sub(1) {
        *calls_left = left;
        let add = call()
            .env("GIT_LITERAL_PATHSPECS", OsStr::new("1"))
            .args(["add", "-A", "--pathspec-from-file=-", "--pathspec-file-nul"])
            .stdin(&paths.join(&0));
        match add.run() {
            Err(error @ GitError::Failed { .. }) => refused = error.to_string(),
            other => return other.map(drop),
        }
        if paths.len() > 1 {
            let (first, second) = paths.split_at(paths.len() / 2);
            add_parts(call, first, calls_left, notes)?;
            return add_parts(call, second, calls_left, notes);
        }
    }
    let shown = paths.first().map(|path| String::from_utf8_lossy(path));
    let shown = shown.as_deref().unwrap_or_default();
    notes.push(match paths.len() {
        1 => format!("{shown} is not captured: {refused}"),
        more => format!("{shown} and {} more are not captured: {refused}", more - 1),
    });
    Ok(())
}

fn is_index_lock(file: &Path) -> bool {
    file.file_name() == Some(OsStr::new("index.lock"))
}
