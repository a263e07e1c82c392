//! Keeping what a worker did.

use super::*;

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
    std::fs::remove_file(worktree.path.join("a.txt")).unwrap();
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
    std::fs::write(&patch, &captured.patch).unwrap();
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
fn work_is_kept_although_a_killed_git_left_its_lock() {
    let sandbox = Sandbox::new();
    let worktree = sandbox.prepare();
    put(&worktree.path.join("work"), "work\n");
    let lock = git(
        &worktree.path,
        &[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "index.lock",
        ],
    );
    put(Path::new(&lock), "");
    let captured = sandbox.repo.capture(&worktree, &sandbox.base, "m").unwrap();
    assert_eq!(captured.changed_files, ["work"]);
    assert!(
        captured.notes[0].contains("index.lock"),
        "{:?}",
        captured.notes
    );
    assert_eq!(sandbox.tip("flockd/T-1.1"), Some(captured.commit));
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
