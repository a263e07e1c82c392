//! Opening: what a repository must be, names of commits, settings and variables that must not matter.

use super::rig::{Rig, git, git_in, write};
use crate::git::call::Git;
use crate::git::{GitError, Repo};
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_top_is_found_from_a_folder_inside_and_from_a_linked_worktree() {
    let rig = Rig::new();
    let inside = rig.top().join("a b/c");
    std::fs::create_dir_all(&inside).unwrap();
    assert_eq!(
        Repo::open_with(git_in(rig.home()), &inside).unwrap().top(),
        rig.top()
    );

    let linked = rig.home().canonicalize().unwrap().join("linked");
    rig.git(
        rig.top(),
        &[
            "worktree",
            "add",
            "-q",
            "--detach",
            linked.to_str().unwrap(),
        ],
    );
    let repo = Repo::open_with(git_in(rig.home()), &linked).unwrap();
    assert_eq!(repo.top(), linked);
    let worktree = repo.prepare_worktree(&rig.request(1, false)).unwrap();
    write(&worktree.path.join("new"), "x");
    assert_eq!(
        repo.capture(&worktree, "main", "m").unwrap().changed_files,
        ["new"]
    );
}

#[test]
fn what_is_no_usable_repository_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let open =
        |name: &str| Repo::open_with(git_in(folder.path()), &folder.path().join(name)).unwrap_err();
    for name in ["none", "unborn", "bare"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    git(
        folder.path(),
        &folder.path().join("unborn"),
        &["init", "-q"],
    );
    git(
        folder.path(),
        &folder.path().join("bare"),
        &["init", "-q", "--bare"],
    );
    let none = open("none");
    assert!(matches!(none, GitError::NotARepository(_)), "{none}");
    assert!(none.to_string().contains("git init"), "{none}");
    let unborn = open("unborn");
    assert!(matches!(unborn, GitError::Unborn(_)), "{unborn}");
    assert!(unborn.to_string().contains("git commit"), "{unborn}");
    assert!(matches!(open("bare"), GitError::NoWorkTree(_)));
    assert!(matches!(open("not-there"), GitError::FolderGone(_)));
}

#[test]
fn a_missing_and_an_old_git_are_the_machines_fault() {
    let folder = tempfile::tempdir().unwrap();
    let missing =
        Repo::open_with(Git::new("no-git-of-ours", Vec::new()), folder.path()).unwrap_err();
    assert!(matches!(missing, GitError::Missing), "{missing}");
    assert!(missing.is_systemic());

    let script = folder.path().join("old-git");
    write(&script, "#!/bin/sh\necho git version 2.17.1\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let old = Repo::open_with(Git::new(script, Vec::new()), folder.path()).unwrap_err();
    assert!(old.is_systemic());
    assert!(
        old.to_string()
            .contains("2.17.1 is too old: install git 2.36"),
        "{old}"
    );
}

#[test]
fn names_resolve_to_full_commit_ids_and_nothing_else() {
    let rig = Rig::new();
    let head = rig.repo.head().unwrap();
    assert_eq!(head.len(), 40);
    rig.git(rig.top(), &["tag", "-a", "v1", "-m", "annotated"]);
    for name in ["HEAD", "main", "v1", "refs/heads/main", &head[..12], &head] {
        assert_eq!(rig.repo.resolve(name).unwrap(), head, "{name}");
    }
    for name in [
        "",
        "nothing",
        "--all",
        "-h",
        "HEAD:README",
        "HEAD~9",
        "a b",
        "main..HEAD",
        &"0".repeat(40),
    ] {
        let error = rig.repo.resolve(name).unwrap_err();
        assert!(
            matches!(error, GitError::Unresolved { .. }),
            "{name}: {error}"
        );
    }
}

#[test]
fn inherited_variables_do_not_aim_git_elsewhere() {
    let rig = Rig::new();
    let git = git_in(rig.home());
    let call = format!("{:?}", git.read(rig.top()));
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_CONFIG_PARAMETERS",
    ] {
        assert!(call.contains(&format!("{name:?}")), "{name} is not removed");
    }
}

#[test]
fn a_branch_named_flockd_is_explained() {
    let rig = Rig::new();
    rig.git(rig.top(), &["branch", "flockd"]);
    let error = rig
        .repo
        .prepare_worktree(&rig.request(1, false))
        .unwrap_err();
    assert!(
        error.to_string().contains("git branch -m flockd"),
        "{error}"
    );
}
