//! Tests with the real git in temporary folders.

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
    crate::fsx::create_dir_all(path.parent().unwrap()).unwrap();
    crate::fsx::replace_cached(path, text.as_bytes()).unwrap();
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
        crate::fsx::create_dir_all(&top).unwrap();
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

#[test]
fn behaviour_058_a_worktree_is_made_captured_and_removed() {
    let sandbox = Sandbox::new();
    let worktree = sandbox.prepare();
    assert_eq!(worktree.branch, "flockd/T-1.1");
    assert_eq!(worktree.path, sandbox.dir().join("T-1.1"));
    assert_eq!(worktree.moved_aside, Vec::<String>::new());
    put(&worktree.path.join("new dir/ü.txt"), "new\n");
    put(&worktree.path.join("built.o"), "ignored\n");
    put(&worktree.path.join("bin"), "\0\u{1}\0");
    crate::fsx::remove(&worktree.path.join("a.txt")).unwrap();
    let captured = sandbox
        .repo
        .capture(&worktree, &sandbox.base, "T-1: title\n\nbody")
        .unwrap();
    assert_eq!(captured.changed_files, ["a.txt", "bin", "new dir/ü.txt"]);
    assert_eq!(captured.notes, Vec::<String>::new());
    assert_eq!(sandbox.tip("flockd/T-1.1").as_ref(), Some(&captured.commit));
    assert_eq!(
        sandbox.repo.remove_worktree(&worktree).unwrap(),
        Removed::Yes
    );
    assert!(!worktree.path.exists() && sandbox.tip("flockd/T-1.1").is_some());
    // The patch leads from the base to the commit's tree.
    let patch = sandbox.folder.path().join("patch");
    crate::fsx::replace_cached(&patch, &captured.patch).unwrap();
    git(
        sandbox.repo.top(),
        &["apply", "--index", patch.to_str().unwrap()],
    );
    let tree = git(sandbox.repo.top(), &["write-tree"]);
    let wanted = git(
        sandbox.repo.top(),
        &["rev-parse", &format!("{}^{{tree}}", captured.commit)],
    );
    assert_eq!(tree, wanted);
}

#[test]
fn nothing_changed_is_the_base_and_no_patch() {
    let sandbox = Sandbox::new();
    let worktree = sandbox.prepare();
    let captured = sandbox.repo.capture(&worktree, &sandbox.base, "m").unwrap();
    assert_eq!(
        (captured.commit, captured.patch.len()),
        (sandbox.base.clone(), 0)
    );
    assert_eq!(captured.changed_files, Vec::<String>::new());
}

#[test]
fn behaviour_052_a_failed_create_deletes_nothing() {
    let sandbox = Sandbox::new();
    let worktree = sandbox.prepare();
    put(&worktree.path.join("work"), "work\n");
    let request = WorktreeRequest {
        base: "0123456789012345678901234567890123456789".to_owned(),
        ..sandbox.request(false)
    };
    assert!(sandbox.repo.prepare_worktree(&request).is_err());
    let kept = [
        worktree.path.join("work"),
        sandbox.dir().join("T-1.1.kept-1/work"),
    ];
    assert!(kept.iter().any(|path| path.exists()));
}

#[test]
fn behaviour_053_uncommitted_work_is_in_a_commit_before_removal() {
    let sandbox = Sandbox::new();
    let worktree = sandbox.prepare();
    put(&worktree.path.join("work"), "work\n");
    assert_eq!(
        sandbox.repo.remove_worktree(&worktree).unwrap(),
        Removed::KeptDirty
    );
    assert!(worktree.path.join("work").exists());
    sandbox.repo.capture(&worktree, &sandbox.base, "m").unwrap();
    assert_eq!(
        sandbox.repo.remove_worktree(&worktree).unwrap(),
        Removed::Yes
    );
    assert_eq!(
        git(sandbox.repo.top(), &["show", "flockd/T-1.1:work"]),
        "work"
    );
}

#[test]
fn behaviour_054_a_branch_checked_out_by_somebody_else_is_left_alone() {
    let sandbox = Sandbox::new();
    let other = sandbox.folder.path().join("other");
    git(
        sandbox.repo.top(),
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "flockd/T-1.1",
            other.to_str().unwrap(),
        ],
    );
    put(&other.join("mine"), "mine\n");
    let worktree = sandbox.prepare();
    assert_eq!(worktree.branch, "flockd/T-1.1.2");
    assert!(
        worktree.moved_aside[0].contains("checked out elsewhere"),
        "{:?}",
        worktree.moved_aside
    );
    assert_eq!(
        git(&other, &["symbolic-ref", "HEAD"]),
        "refs/heads/flockd/T-1.1"
    );
    assert!(other.join("mine").exists());
}

#[test]
fn behaviour_055_dirty_leftovers_are_moved_aside_and_survive() {
    let sandbox = Sandbox::new();
    for n in 1..=3 {
        let worktree = sandbox.prepare();
        assert_eq!(worktree.branch, "flockd/T-1.1");
        assert_eq!(
            worktree.moved_aside.len(),
            if n == 1 { 0 } else { 2 },
            "{:?}",
            worktree.moved_aside
        );
        put(&worktree.path.join("work"), &format!("{n}\n"));
    }
    for n in 1..=2 {
        let kept = sandbox.dir().join(format!("T-1.1.kept-{n}"));
        assert_eq!(
            std::fs::read_to_string(kept.join("work")).unwrap(),
            format!("{n}\n")
        );
        assert_eq!(
            git(&kept, &["symbolic-ref", "--short", "HEAD"]),
            format!("flockd/kept/T-1.1.{n}")
        );
    }
    let leftovers = sandbox.repo.leftovers(&sandbox.dir()).unwrap();
    assert_eq!(leftovers.len(), 3);
    assert!(
        leftovers
            .iter()
            .all(|leftover| leftover.dirty && !leftover.missing)
    );
}

#[test]
fn p3_a_leftover_never_makes_a_create_fail() {
    // Clean and equal to the base: removed without a word.
    let sandbox = Sandbox::new();
    sandbox.prepare();
    assert_eq!(sandbox.prepare().moved_aside, Vec::<String>::new());
    // Captured work of an earlier attempt: its branch is kept.
    let worktree = sandbox.prepare();
    put(&worktree.path.join("work"), "work\n");
    let captured = sandbox.repo.capture(&worktree, &sandbox.base, "m").unwrap();
    let again = sandbox.prepare();
    assert_eq!(
        again.moved_aside,
        ["branch flockd/T-1.1 renamed to flockd/kept/T-1.1.1"]
    );
    assert_eq!(sandbox.tip("flockd/kept/T-1.1.1"), Some(captured.commit));
    // The folder is gone, git's record is not.
    let gone = sandbox.folder.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    git(
        sandbox.repo.top(),
        &["worktree", "lock", again.path.to_str().unwrap()],
    );
    std::fs::remove_dir_all(&again.path).unwrap();
    assert_eq!(sandbox.prepare().path, sandbox.dir().join("T-1.1.2"));
    git(
        sandbox.repo.top(),
        &["worktree", "unlock", again.path.to_str().unwrap()],
    );
    git(
        sandbox.repo.top(),
        &[
            "worktree",
            "remove",
            "--force",
            again.path.to_str().unwrap(),
        ],
    );
    // A folder of somebody else's is in the way.
    put(&again.path.join("foreign"), "x\n");
    let worktree = sandbox.prepare();
    assert_ne!(worktree.path, again.path);
    assert!(
        worktree
            .moved_aside
            .iter()
            .any(|note| note.contains("not a worktree"))
    );
    assert!(again.path.join("foreign").exists());
}

#[test]
fn only_our_own_stale_record_is_dropped() {
    let sandbox = Sandbox::new();
    let other = sandbox.folder.path().join("other");
    git(
        sandbox.repo.top(),
        &["worktree", "add", "-q", "--detach", other.to_str().unwrap()],
    );
    std::fs::remove_dir_all(&other).unwrap();
    let worktree = sandbox.prepare();
    std::fs::remove_dir_all(&worktree.path).unwrap();
    assert!(sandbox.repo.leftovers(&sandbox.dir()).unwrap()[0].missing);
    assert_eq!(sandbox.prepare().path, worktree.path);
    let list = git(sandbox.repo.top(), &["worktree", "list", "--porcelain"]);
    assert!(list.contains("/other"), "{list}");
}

#[test]
fn p4_a_resumed_run_finds_its_worktree_as_it_is() {
    let sandbox = Sandbox::new();
    let worktree = sandbox.prepare();
    put(&worktree.path.join("half"), "half\n");
    let again = sandbox
        .repo
        .prepare_worktree(&sandbox.request(true))
        .unwrap();
    assert_eq!(again, worktree);
    assert!(again.path.join("half").exists());
    // Nothing there: made anew.
    std::fs::remove_dir_all(&worktree.path).unwrap();
    assert_eq!(
        sandbox
            .repo
            .prepare_worktree(&sandbox.request(true))
            .unwrap()
            .path,
        worktree.path
    );
}

#[test]
fn commits_of_the_agent_are_kept_wherever_it_left_head() {
    // On a detached commit, with more work on top.
    let sandbox = Sandbox::new();
    let worktree = sandbox.prepare();
    let path = &worktree.path;
    put(&path.join("one"), "1\n");
    commit_all(path, "one");
    git(path, &["checkout", "-q", "--detach"]);
    put(&path.join("two"), "2\n");
    let two = commit_all(path, "two");
    put(&path.join("three"), "3\n");
    let captured = sandbox.repo.capture(&worktree, &sandbox.base, "m").unwrap();
    assert_eq!(captured.changed_files, ["one", "three", "two"]);
    assert!(captured.notes[0].contains("detached"));
    assert!(sandbox.repo.is_ancestor(&two, "flockd/T-1.1").unwrap());
    assert_eq!(
        sandbox.repo.remove_worktree(&worktree).unwrap(),
        Removed::Yes
    );

    // On another branch that parted from ours.
    let worktree = sandbox.prepare();
    let path = &worktree.path;
    put(&path.join("ours"), "1\n");
    let ours = commit_all(path, "ours");
    git(path, &["checkout", "-q", "-b", "mine", &sandbox.base]);
    put(&path.join("theirs"), "2\n");
    let captured = sandbox.repo.capture(&worktree, &sandbox.base, "m").unwrap();
    assert_eq!(captured.changed_files, ["theirs"]);
    assert!(sandbox.repo.is_ancestor(&ours, &captured.commit).unwrap());
    assert_eq!(
        sandbox.repo.remove_worktree(&worktree).unwrap(),
        Removed::Yes
    );

    // On a branch without a history, ours deleted.
    let worktree = sandbox.prepare();
    let path = &worktree.path;
    git(path, &["checkout", "-q", "--orphan", "alone"]);
    git(path, &["branch", "-q", "-D", "flockd/T-1.1"]);
    put(&path.join("orphan"), "2\n");
    let captured = sandbox.repo.capture(&worktree, &sandbox.base, "m").unwrap();
    assert_eq!(captured.changed_files, ["orphan"]);
    assert_eq!(sandbox.tip("flockd/T-1.1"), Some(captured.commit));
}

#[test]
fn nested_repositories_do_not_hide_the_rest() {
    let sandbox = Sandbox::new();
    let worktree = sandbox.prepare();
    for (name, commit) in [("empty", false), ("full", true)] {
        let nested = worktree.path.join(name);
        put(&nested.join("x"), "x\n");
        git(&nested, &["init", "-q"]);
        if commit {
            commit_all(&nested, "x");
        }
    }
    put(&worktree.path.join("z"), "z\n");
    let captured = sandbox.repo.capture(&worktree, &sandbox.base, "m").unwrap();
    assert!(
        captured.changed_files.contains(&"z".to_owned()),
        "{captured:?}"
    );
    assert!(
        captured
            .notes
            .iter()
            .any(|note| note.contains("full is a repository")),
        "{captured:?}"
    );
    assert_eq!(
        sandbox.repo.remove_worktree(&worktree).unwrap(),
        Removed::KeptDirty
    );
}

#[test]
fn capture_needs_no_identity_runs_no_hook_and_signs_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let top = sandbox.repo.top();
    for (key, value) in [
        ("user.useConfigOnly", "true"),
        ("commit.gpgSign", "true"),
        ("gpg.program", "/nonexistent"),
        ("diff.noprefix", "true"),
        ("diff.external", "/nonexistent"),
        ("core.autocrlf", "input"),
    ] {
        git(top, &["config", key, value]);
    }
    for hook in [
        "pre-commit",
        "prepare-commit-msg",
        "post-checkout",
        "reference-transaction",
    ] {
        let path = top.join(".git/hooks").join(hook);
        put(&path, "#!/bin/sh\nexit 1\n");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let worktree = sandbox.prepare();
    put(&worktree.path.join("b.txt"), "crlf\r\n");
    let captured = sandbox.repo.capture(&worktree, &sandbox.base, "m").unwrap();
    assert!(String::from_utf8_lossy(&captured.patch).contains("+++ b/b.txt"));
    let author = git(top, &["log", "-1", "--format=%an %ae", &captured.commit]);
    let known = Git::read(top, &["var", "GIT_AUTHOR_IDENT"])
        .line_if()
        .unwrap()
        .is_some();
    assert!(known || author == "flockd flockd@localhost", "{author}");
}

#[test]
fn p5_a_folder_that_is_no_worktree_of_its_own_is_refused() {
    let sandbox = Sandbox::new();
    let worktree = sandbox.prepare();
    let inside = Worktree {
        path: sandbox.repo.top().join("sub"),
        ..worktree.clone()
    };
    std::fs::create_dir(&inside.path).unwrap();
    for path in [inside.path, sandbox.repo.top().to_owned()] {
        let wrong = Worktree {
            path,
            ..worktree.clone()
        };
        let error = sandbox
            .repo
            .capture(&wrong, &sandbox.base, "m")
            .unwrap_err();
        assert!(matches!(error, GitError::NotConfined { .. }), "{error}");
    }
}

#[test]
fn repositories_are_opened_and_names_resolved() {
    let folder = tempfile::tempdir().unwrap();
    let error = Repo::open(folder.path()).unwrap_err();
    assert!(matches!(error, GitError::NotARepository { .. }) && error.is_systemic());
    git(folder.path(), &["init", "-q"]);
    let empty = Repo::open(folder.path()).unwrap();
    assert!(matches!(empty.resolve("HEAD"), Err(GitError::NoCommitYet)));
    let sandbox = Sandbox::named("plain");
    assert_eq!(sandbox.repo.resolve("main").unwrap(), sandbox.base);
    for name in ["no-such", "--all", "HEAD:a.txt"] {
        assert!(
            matches!(
                sandbox.repo.resolve(name),
                Err(GitError::NoSuchCommit { .. })
            ),
            "{name}"
        );
    }
    // From a linked worktree and from below its top.
    let linked = sandbox.folder.path().join("linked");
    git(
        sandbox.repo.top(),
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "side",
            linked.to_str().unwrap(),
        ],
    );
    std::fs::create_dir(linked.join("below")).unwrap();
    let repo = Repo::open(&linked.join("below")).unwrap();
    assert_eq!(
        repo.top().canonicalize().unwrap(),
        linked.canonicalize().unwrap()
    );
    let worktree = repo.prepare_worktree(&sandbox.request(false)).unwrap();
    put(&worktree.path.join("x"), "x\n");
    assert_eq!(
        repo.capture(&worktree, &sandbox.base, "m")
            .unwrap()
            .changed_files,
        ["x"]
    );
    assert_eq!(repo.remove_worktree(&worktree).unwrap(), Removed::Yes);
}

#[test]
fn a_branch_made_from_a_remote_one_tracks_nothing() {
    let sandbox = Sandbox::new();
    let top = sandbox.repo.top();
    git(top, &["config", "branch.autoSetupMerge", "always"]);
    let worktree = sandbox.prepare();
    let upstream = Git::read(
        &worktree.path,
        &["rev-parse", "--abbrev-ref", "@{upstream}"],
    )
    .line_if()
    .unwrap();
    assert_eq!(upstream, None);
}
