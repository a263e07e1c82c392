//! Every kind of thing that can be in the way of a new worktree.

use super::rig::{Rig, git_in, write};
use std::fs;

#[test]
fn a_worktree_that_was_deleted_by_hand_is_no_obstacle() {
    let rig = Rig::new();
    let made = rig.fresh();
    rig.git(&made.path, &["checkout", "-q", "--detach"]);
    let commit = rig.commit(&made.path, "a", "1");
    fs::remove_dir_all(&made.path).unwrap();
    let next = rig.fresh();
    assert_eq!(next.path, made.path);
    let kept = rig.git(rig.top(), &["rev-parse", "flockd/kept/T-1.1.1"]);
    assert_eq!(
        kept.trim(),
        commit,
        "the detached commit would have been lost"
    );
}

#[test]
fn a_foreign_folder_is_left_alone() {
    let rig = Rig::new();
    write(&rig.dir().join("T-1.1/precious"), "mine");
    for reuse in [false, true] {
        let made = rig.repo.prepare_worktree(&rig.request(1, reuse)).unwrap();
        assert_eq!(
            made.path,
            rig.dir().join("T-1.1-1"),
            "and found again when resumed"
        );
    }
    assert!(rig.fresh().moved_aside[0].contains("was left alone"));
    assert_eq!(
        fs::read_to_string(rig.dir().join("T-1.1/precious")).unwrap(),
        "mine"
    );
}

#[test]
fn p3_a_leftover_never_makes_a_create_fail() {
    let rig = Rig::new();
    for reuse in [false, true] {
        let made = rig.fresh();
        write(&made.path.join("half"), "done");
        fs::remove_file(made.path.join(".git")).unwrap();
        let next = rig.repo.prepare_worktree(&rig.request(1, reuse)).unwrap();
        assert_ne!(next.path, made.path);
        assert!(!next.moved_aside.is_empty());
        assert_eq!(fs::read_to_string(made.path.join("half")).unwrap(), "done");
    }
}

#[test]
fn an_empty_folder_is_used() {
    let rig = Rig::new();
    fs::create_dir_all(rig.dir().join("T-1.1")).unwrap();
    assert_eq!(rig.fresh().path, rig.dir().join("T-1.1"));
}

#[test]
fn a_locked_leftover_stays_and_other_names_are_used() {
    let rig = Rig::new();
    let made = rig.fresh();
    write(&made.path.join("half"), "done");
    rig.git(
        rig.top(),
        &["worktree", "lock", made.path.to_str().unwrap()],
    );
    let next = rig.fresh();
    assert_eq!(next.path, rig.dir().join("T-1.1-1"));
    assert_eq!(next.branch, "flockd/T-1.1-1");
    assert!(made.path.join("half").exists());
    assert_eq!(rig.resumed().path, next.path, "the newest one is resumed");
}

#[test]
fn behaviour_054_a_branch_or_worktree_in_use_elsewhere_is_never_touched() {
    let rig = Rig::new();
    let theirs = rig.home().canonicalize().unwrap().join("theirs");
    rig.git(
        rig.top(),
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "flockd/T-1.1",
            theirs.to_str().unwrap(),
        ],
    );
    let commit = rig.commit(&theirs, "a", "1");
    let made = rig.fresh();
    assert_eq!(made.branch, "flockd/T-1.1-1");
    assert!(!made.path.join("a").exists());
    assert!(
        made.moved_aside.iter().any(|line| line.contains("theirs")),
        "{:?}",
        made.moved_aside
    );
    assert_eq!(rig.resumed().branch, made.branch);
    assert_eq!(
        rig.git(rig.top(), &["rev-parse", "flockd/T-1.1"]).trim(),
        commit
    );
    assert_eq!(
        rig.git(&theirs, &["symbolic-ref", "--short", "HEAD"])
            .trim(),
        "flockd/T-1.1"
    );
}

#[test]
fn a_resumed_worker_whose_branch_is_in_use_goes_on_from_its_commit() {
    let rig = Rig::new();
    let theirs = rig.home().join("theirs");
    rig.git(
        rig.top(),
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "flockd/T-1.1",
            theirs.to_str().unwrap(),
        ],
    );
    rig.commit(&theirs, "a", "1");
    let made = rig.resumed();
    assert_eq!(made.branch, "flockd/T-1.1-1");
    assert!(made.path.join("a").exists());
}

#[test]
fn an_unfinished_merge_or_rebase_is_no_obstacle() {
    let rig = Rig::new();
    let made = rig.fresh();
    rig.commit(&made.path, "README", "theirs\n");
    rig.commit(rig.top(), "README", "ours\n");
    let call = git_in(rig.home());
    let rebase = call
        .write(&made.path)
        .args(["rebase", "main"])
        .output()
        .unwrap();
    assert!(!rebase.success());
    let next = rig.fresh();
    assert_ne!(next.moved_aside, Vec::<String>::new());
    assert_eq!(next.path, made.path);
    let text = fs::read_to_string(rig.dir().join("T-1.1.kept-1/README")).unwrap();
    assert!(text.contains("<<<<<<<"), "{text}");
}
