//! Making and taking over worktrees; leftovers with and without work.

use super::rig::{Rig, write};
use crate::git::{GitError, WorktreeRequest};
use std::fs;

#[test]
fn a_new_worktree_has_its_name_its_branch_and_the_base() {
    let rig = Rig::new();
    let first = rig.repo.head().unwrap();
    rig.commit(rig.top(), "later", "x");
    let request = WorktreeRequest {
        base: first.clone(),
        ..rig.request(2, false)
    };
    let made = rig.repo.prepare_worktree(&request).unwrap();
    assert_eq!(made.path, rig.dir().join("T-1.2"));
    assert_eq!(made.branch, "flockd/T-1.2");
    assert_eq!(made.moved_aside, Vec::<String>::new());
    assert_eq!(rig.git(&made.path, &["rev-parse", "HEAD"]).trim(), first);
    assert_eq!(
        rig.git(&made.path, &["symbolic-ref", "--short", "HEAD"])
            .trim(),
        made.branch
    );
    assert!(!made.path.join("later").exists());
    let config = rig.git(rig.top(), &["config", "--list"]);
    assert!(
        !config.contains("branch.flockd"),
        "tracks something: {config}"
    );
    assert_eq!(rig.git(rig.top(), &["status", "--porcelain"]), "");
}

#[test]
fn the_users_hooks_do_not_run() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::new();
    for name in [
        "post-checkout",
        "pre-commit",
        "prepare-commit-msg",
        "reference-transaction",
    ] {
        let hook = rig.top().join(".git/hooks").join(name);
        write(&hook, "#!/bin/sh\necho hook >&2\nexit 1\n");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let made = rig.fresh();
    write(&made.path.join("new"), "x");
    assert_eq!(rig.capture(&made).changed_files, ["new"]);
}

#[test]
fn a_resumed_worktree_is_taken_as_it_is() {
    let rig = Rig::new();
    let made = rig.fresh();
    write(&made.path.join("half"), "done");
    let again = rig.resumed();
    assert_eq!(again, made);
    assert_eq!(fs::read_to_string(again.path.join("half")).unwrap(), "done");
}

#[test]
fn a_resumed_worker_whose_worktree_is_gone_goes_on_on_its_branch() {
    let rig = Rig::new();
    let made = rig.fresh();
    let commit = rig.commit(&made.path, "a", "1");
    fs::remove_dir_all(&made.path).unwrap();
    let again = rig.resumed();
    assert_eq!((&again.path, &again.branch), (&made.path, &made.branch));
    assert_eq!(rig.git(&again.path, &["rev-parse", "HEAD"]).trim(), commit);
    assert_eq!(rig.branches(), ["flockd/T-1.1"]);
}

#[test]
fn a_resumed_worker_of_which_nothing_is_left_begins_anew() {
    let rig = Rig::new();
    let made = rig.resumed();
    assert_eq!(made.path, rig.dir().join("T-1.1"));
    assert_eq!(made.moved_aside, Vec::<String>::new());
}

#[test]
fn behaviour_055_dirty_leftovers_are_moved_aside_and_survive() {
    let rig = Rig::new();
    for number in 1..=2 {
        let made = rig.fresh();
        assert_eq!(made.path, rig.dir().join("T-1.1"));
        assert!(!made.path.join("half").exists());
        write(&made.path.join("half"), &format!("work {number}"));
        let next = rig.fresh();
        let kept = rig.dir().join(format!("T-1.1.kept-{number}"));
        assert_eq!(
            fs::read_to_string(kept.join("half")).unwrap(),
            format!("work {number}")
        );
        let branch = rig.git(&kept, &["symbolic-ref", "--short", "HEAD"]);
        assert_eq!(branch.trim(), format!("flockd/kept/T-1.1.{number}"));
        assert_eq!(next.branch, "flockd/T-1.1");
        assert_eq!(next.moved_aside.len(), 1, "{:?}", next.moved_aside);
        assert!(next.moved_aside[0].contains(&format!("T-1.1.kept-{number}")));
        assert_eq!(
            rig.repo
                .leftovers(&rig.dir())
                .unwrap()
                .iter()
                .filter(|l| l.dirty)
                .count(),
            number
        );
    }
}

#[test]
fn a_leftover_with_commits_is_moved_aside_and_one_without_is_removed() {
    let rig = Rig::new();
    let made = rig.fresh();
    let commit = rig.commit(&made.path, "a", "1");
    assert_eq!(rig.fresh().moved_aside.len(), 1);
    assert_eq!(rig.show("flockd/kept/T-1.1.1:a"), "1");
    assert_eq!(
        rig.git(&rig.dir().join("T-1.1.kept-1"), &["rev-parse", "HEAD"])
            .trim(),
        commit
    );

    let next = rig.fresh();
    assert_eq!(
        next.moved_aside,
        Vec::<String>::new(),
        "a clean one without commits"
    );
    assert_eq!(rig.branches(), ["flockd/T-1.1", "flockd/kept/T-1.1.1"]);
}

#[test]
fn commits_that_were_merged_are_no_reason_to_keep_a_leftover() {
    let rig = Rig::new();
    let made = rig.fresh();
    rig.commit(&made.path, "a", "1");
    rig.git(rig.top(), &["merge", "-q", "--ff-only", &made.branch]);
    let next = rig.fresh();
    assert_eq!(next.moved_aside, Vec::<String>::new());
    assert_eq!(rig.branches(), ["flockd/T-1.1"]);
}

#[test]
fn a_left_branch_is_renamed_with_commits_and_deleted_without() {
    let rig = Rig::new();
    rig.git(rig.top(), &["branch", "flockd/T-1.1"]);
    assert_eq!(rig.fresh().moved_aside, Vec::<String>::new());

    let made = rig.fresh();
    rig.commit(&made.path, "a", "1");
    rig.git(
        rig.top(),
        &["worktree", "remove", made.path.to_str().unwrap()],
    );
    let next = rig.fresh();
    assert_eq!(next.branch, "flockd/T-1.1");
    assert!(
        next.moved_aside[0].contains("flockd/kept/T-1.1.1"),
        "{:?}",
        next.moved_aside
    );
    assert_eq!(rig.show("flockd/kept/T-1.1.1:a"), "1");
}

#[test]
fn other_workers_and_tasks_are_not_touched() {
    let rig = Rig::new();
    let other = rig.repo.prepare_worktree(&rig.request(11, false)).unwrap();
    write(&other.path.join("half"), "done");
    rig.fresh();
    rig.fresh();
    assert!(other.path.join("half").exists());
    assert_eq!(rig.branches(), ["flockd/T-1.1", "flockd/T-1.11"]);
}

#[test]
fn behaviour_052_a_create_failure_deletes_nothing_and_says_why() {
    let rig = Rig::new();
    let made = rig.fresh();
    write(&made.path.join("half"), "done");
    let before = (rig.branches(), rig.repo.leftovers(&rig.dir()).unwrap());
    let bad = WorktreeRequest {
        base: "no-such-base".to_owned(),
        ..rig.request(1, false)
    };
    let error = rig.repo.prepare_worktree(&bad).unwrap_err();
    assert!(matches!(error, GitError::Unresolved { .. }), "{error}");
    assert_eq!(
        before,
        (rig.branches(), rig.repo.leftovers(&rig.dir()).unwrap())
    );

    let file = rig.home().join("a file");
    write(&file, "");
    let bad = WorktreeRequest {
        dir: file.join("in it"),
        ..rig.request(3, false)
    };
    let error = rig.repo.prepare_worktree(&bad).unwrap_err();
    assert!(!error.is_systemic());
    assert!(error.to_string().contains("git worktree add"), "{error}");
}

#[test]
fn p4_a_tree_that_is_not_its_own_is_refused() {
    let rig = Rig::new();
    let inside = rig.top().join("inside");
    fs::create_dir(&inside).unwrap();
    for path in [inside.as_path(), rig.top()] {
        let error = rig.repo.check_confined(path).unwrap_err();
        assert!(matches!(error, GitError::Unconfined { .. }), "{error}");
    }
    let other = Rig::new();
    assert!(
        rig.repo.check_confined(other.top()).is_err(),
        "another repository"
    );
}

#[test]
fn worktrees_inside_the_repository_work() {
    let rig = Rig::new();
    let request = WorktreeRequest {
        dir: rig.top().join(".flockd/worktrees"),
        ..rig.request(1, false)
    };
    let made = rig.repo.prepare_worktree(&request).unwrap();
    assert_eq!(made.path, rig.top().join(".flockd/worktrees/T-1.1"));
}

#[test]
fn workers_are_made_at_the_same_time_without_collisions() {
    let rig = Rig::new();
    std::thread::scope(|scope| {
        for worker in 1..=6 {
            let rig = &rig;
            scope.spawn(move || {
                let made = rig
                    .repo
                    .prepare_worktree(&rig.request(worker, false))
                    .unwrap();
                write(&made.path.join("mine"), &worker.to_string());
                assert_eq!(rig.capture(&made).changed_files, ["mine"]);
            });
        }
    });
    assert_eq!(rig.branches().len(), 6);
}
