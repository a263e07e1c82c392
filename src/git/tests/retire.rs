//! Removing worktrees and listing what is left.

use super::rig::{Rig, write};
use crate::git::Removed;
use std::fs;

#[test]
fn a_worktree_without_work_goes_with_its_branch() {
    let rig = Rig::new();
    let made = rig.fresh();
    write(&made.path.join("ignored.o"), "x");
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::Yes);
    assert!(!made.path.exists());
    assert_eq!(rig.branches(), Vec::<String>::new());
    assert_eq!(
        rig.repo.remove_worktree(&made).unwrap(),
        Removed::Yes,
        "again is fine"
    );
}

#[test]
fn a_captured_worktree_goes_and_its_branch_stays() {
    let rig = Rig::new();
    let made = rig.fresh();
    write(&made.path.join("a"), "1");
    let captured = rig.capture(&made);
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::Yes);
    assert!(!made.path.exists());
    assert_eq!(
        rig.git(rig.top(), &["rev-parse", &made.branch]).trim(),
        captured.commit
    );
    rig.git(rig.top(), &["merge", "-q", &made.branch]);
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::Yes);
    assert_eq!(
        rig.branches(),
        Vec::<String>::new(),
        "merged: the branch is of no use any more"
    );
}

#[test]
fn work_that_is_not_captured_is_never_removed_whatever_the_settings() {
    let rig = Rig::new();
    rig.git(rig.top(), &["config", "status.showUntrackedFiles", "no"]);
    let made = rig.fresh();
    write(&made.path.join("untracked"), "x");
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::KeptDirty);
    assert!(
        rig.repo.remove_registered(&made.path).is_err(),
        "git refuses too"
    );
    assert!(made.path.join("untracked").exists());
}

#[test]
fn a_commit_that_no_branch_has_keeps_the_worktree() {
    let rig = Rig::new();
    let made = rig.fresh();
    rig.git(&made.path, &["checkout", "-q", "--detach"]);
    rig.commit(&made.path, "a", "1");
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::KeptDirty);
    assert!(made.path.exists());
}

#[test]
fn locked_and_foreign_folders_are_kept() {
    let rig = Rig::new();
    let made = rig.fresh();
    rig.git(
        rig.top(),
        &["worktree", "lock", made.path.to_str().unwrap()],
    );
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::KeptDirty);
    rig.git(
        rig.top(),
        &["worktree", "unlock", made.path.to_str().unwrap()],
    );
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::Yes);
    write(&made.path.join("precious"), "x");
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::KeptDirty);
}

#[test]
fn only_the_missing_worktree_is_forgotten() {
    let rig = Rig::new();
    let unmounted = rig.home().join("unmounted");
    rig.git(
        rig.top(),
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "users",
            unmounted.to_str().unwrap(),
        ],
    );
    fs::rename(&unmounted, rig.home().join("away")).unwrap();
    let made = rig.fresh();
    fs::remove_dir_all(&made.path).unwrap();
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::Yes);
    rig.fresh();
    fs::rename(rig.home().join("away"), &unmounted).unwrap();
    assert_eq!(rig.git(&unmounted, &["status", "--porcelain"]), "");
}

#[test]
fn leftovers_are_listed_with_their_state() {
    let rig = Rig::new();
    assert_eq!(rig.repo.leftovers(&rig.dir()).unwrap(), []);
    let dirty = rig.fresh();
    write(&dirty.path.join("half"), "done");
    let clean = rig.repo.prepare_worktree(&rig.request(2, false)).unwrap();
    let gone = rig.repo.prepare_worktree(&rig.request(3, false)).unwrap();
    fs::remove_dir_all(&gone.path).unwrap();
    let mut found = rig.repo.leftovers(&rig.dir()).unwrap();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    let seen: Vec<_> = found
        .iter()
        .map(|l| (&l.path, l.branch.as_str(), l.dirty, l.missing))
        .collect();
    assert_eq!(
        seen,
        [
            (&dirty.path, "flockd/T-1.1", true, false),
            (&clean.path, "flockd/T-1.2", false, false),
            (&gone.path, "flockd/T-1.3", false, true),
        ]
    );
}

#[test]
fn submodules_work_and_checked_out_ones_keep_the_worktree() {
    let rig = Rig::new();
    let library = Rig::new();
    let url = library.top().to_str().unwrap().to_owned();
    rig.git(
        rig.top(),
        &["submodule", "--quiet", "add", &url, "lib rary"],
    );
    rig.git(rig.top(), &["commit", "-q", "-m", "Add a library"]);
    let made = rig.fresh();
    write(&made.path.join("a"), "1");
    assert_eq!(rig.capture(&made).changed_files, ["a"]);
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::Yes);

    let made = rig.fresh();
    rig.git(&made.path, &["submodule", "--quiet", "update", "--init"]);
    rig.commit(&made.path.join("lib rary"), "b", "2");
    let captured = rig.capture(&made);
    assert_eq!(captured.changed_files, ["lib rary"], "the link moved");
    assert_eq!(captured.notes, Vec::<String>::new());
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::KeptDirty);
    let next = rig.fresh();
    assert!(made.path.join("lib rary/b").exists() && next.path != made.path);
}

#[test]
fn behaviour_058_two_tasks_end_with_both_results_and_no_worktree_left() {
    let rig = Rig::new();
    let mut commits = Vec::new();
    for worker in 1..=2 {
        let made = rig
            .repo
            .prepare_worktree(&rig.request(worker, false))
            .unwrap();
        write(&made.path.join(format!("w{worker}")), "x");
        commits.push(rig.capture(&made).commit);
        assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::Yes);
    }
    assert_eq!(rig.repo.leftovers(&rig.dir()).unwrap(), []);
    for commit in &commits {
        rig.git(rig.top(), &["merge", "-q", "-m", "Merge", commit]);
    }
    assert!(rig.top().join("w1").exists() && rig.top().join("w2").exists());
}
