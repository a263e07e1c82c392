//! A repository in a temporary folder with a space and an umlaut in its path, isolated from the user's settings.

use crate::git::call::Git;
use crate::git::{Captured, Repo, Worktree, WorktreeRequest};
use crate::types::TaskId;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) struct Rig {
    folder: tempfile::TempDir,
    pub(super) repo: Repo,
}

fn env(folder: &Path) -> Vec<(OsString, OsString)> {
    vec![
        ("HOME".into(), folder.into()),
        ("XDG_CONFIG_HOME".into(), folder.join("xdg").into()),
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ("GIT_CONFIG_GLOBAL".into(), folder.join("gitconfig").into()),
    ]
}

/// git with the test's own home.
pub(super) fn git_in(folder: &Path) -> Git {
    Git::new("git", env(folder))
}

/// Runs git as a person would; panics when it fails.
pub(super) fn git(home: &Path, cwd: &Path, args: &[&str]) -> String {
    let output = git_in(home)
        .write(cwd)
        .setting("protocol.file.allow=always")
        .args(args)
        .run();
    String::from_utf8(output.unwrap()).unwrap()
}

pub(super) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(super) fn task() -> TaskId {
    TaskId::new("T-1").unwrap()
}

impl Rig {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        write(
            &home.join("gitconfig"),
            "[user]\nname = Uma\nemail = uma@example.org\n",
        );
        let top = home.join("dépôt one");
        fs::create_dir(&top).unwrap();
        git(home, &top, &["init", "-q", "-b", "main"]);
        write(&top.join("README"), "hello\n");
        write(&top.join(".gitignore"), "*.o\n");
        git(home, &top, &["add", "-A"]);
        git(home, &top, &["commit", "-q", "-m", "Begin"]);
        let repo = Repo::open_with(git_in(home), &top).unwrap();
        Self { folder, repo }
    }

    pub(super) fn home(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn top(&self) -> &Path {
        self.repo.top()
    }

    /// The folder of worktrees.
    pub(super) fn dir(&self) -> PathBuf {
        self.home().canonicalize().unwrap().join("work trees")
    }

    pub(super) fn git(&self, cwd: &Path, args: &[&str]) -> String {
        git(self.home(), cwd, args)
    }

    pub(super) fn request(&self, worker: u32, reuse: bool) -> WorktreeRequest {
        WorktreeRequest {
            task: task(),
            worker,
            base: "HEAD".to_owned(),
            dir: self.dir(),
            reuse,
        }
    }

    /// A new attempt of worker 1.
    pub(super) fn fresh(&self) -> Worktree {
        self.repo.prepare_worktree(&self.request(1, false)).unwrap()
    }

    /// Worker 1 after a crash.
    pub(super) fn resumed(&self) -> Worktree {
        self.repo.prepare_worktree(&self.request(1, true)).unwrap()
    }

    pub(super) fn capture(&self, worktree: &Worktree) -> Captured {
        self.repo.capture(worktree, "main", "Work\n").unwrap()
    }

    pub(super) fn branches(&self) -> Vec<String> {
        self.repo.branches().unwrap()
    }

    /// A commit in a worktree, made the way an agent makes one.
    pub(super) fn commit(&self, cwd: &Path, file: &str, text: &str) -> String {
        write(&cwd.join(file), text);
        self.git(cwd, &["add", "-A"]);
        self.git(cwd, &["commit", "-q", "-m", "An agent's commit"]);
        self.git(cwd, &["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// A text of a commit.
    pub(super) fn show(&self, what: &str) -> String {
        self.git(self.top(), &["show", what])
    }
}
