//! Tests with the real git in temporary folders.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand in for agents and users, who write files as they like"
)]

mod places;
mod work;

use super::command::Git;
use super::*;
use crate::types::TaskId;
use std::path::{Path, PathBuf};

struct Sandbox {
    folder: tempfile::TempDir,
    repo: Repo,
    base: String,
}

fn git(dir: &Path, args: &[&str]) -> String {
    Git::write(dir, args)
        .line()
        .unwrap_or_else(|e| panic!("{e}"))
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn commit_all(dir: &Path, message: &str) -> String {
    git(dir, &["add", "-A"]);
    git(
        dir,
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-qm",
            message,
        ],
    );
    git(dir, &["rev-parse", "HEAD"])
}

impl Sandbox {
    fn new() -> Self {
        Self::named("re po ü")
    }

    fn named(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join(name);
        std::fs::create_dir_all(&top).unwrap();
        git(&top, &["init", "-q", "-b", "main"]);
        put(&top.join("a.txt"), "a\n");
        put(&top.join(".gitignore"), "/.flockd/\n*.o\n");
        let base = commit_all(&top, "first");
        Self {
            repo: Repo::open(&top).unwrap(),
            folder,
            base,
        }
    }

    fn dir(&self) -> PathBuf {
        self.repo.top().join(".flockd/worktrees")
    }

    fn request(&self, reuse: bool) -> WorktreeRequest {
        WorktreeRequest {
            task: TaskId::new("T-1").unwrap(),
            worker: 1,
            base: self.base.clone(),
            dir: self.dir(),
            reuse,
        }
    }

    fn prepare(&self) -> Worktree {
        self.repo.prepare_worktree(&self.request(false)).unwrap()
    }

    fn tip(&self, branch: &str) -> Option<String> {
        self.repo.branch_tip(branch).unwrap()
    }
}
