//! Making and removing worktrees, and what is in their way.

use super::*;

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
