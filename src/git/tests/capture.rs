//! What becomes of a worker's work, however it left its tree.

use super::rig::{Rig, git_in, write};
use crate::git::{Captured, Removed};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Applies the patch to the base and answers the tree's id: it must be the commit's.
fn applied(rig: &Rig, captured: &Captured) -> String {
    let check = rig.home().join("check");
    rig.git(
        rig.top(),
        &[
            "worktree",
            "add",
            "-q",
            "--detach",
            check.to_str().unwrap(),
            "main",
        ],
    );
    let call = git_in(rig.home()).write(&check);
    call.args(["apply", "--index", "--binary", "-"])
        .stdin(&captured.patch)
        .run()
        .unwrap();
    rig.git(&check, &["write-tree"])
}

#[test]
fn nothing_changed_is_the_base_and_an_empty_patch() {
    let rig = Rig::new();
    let made = rig.fresh();
    let captured = rig.capture(&made);
    assert_eq!(captured.commit, rig.repo.head().unwrap());
    assert_eq!(
        (captured.patch, captured.changed_files),
        (Vec::new(), Vec::new())
    );
    assert_eq!(captured.notes, Vec::<String>::new());
}

#[test]
fn the_patch_rebuilds_the_commit_whatever_the_files_and_settings() {
    let rig = Rig::new();
    rig.git(rig.top(), &["config", "diff.noprefix", "true"]);
    rig.git(rig.top(), &["config", "diff.external", "false"]);
    rig.git(rig.top(), &["config", "color.ui", "always"]);
    rig.git(rig.top(), &["config", "commit.gpgSign", "true"]);
    let made = rig.fresh();
    write(&made.path.join("sub folder/ü\nx"), "odd name\n");
    fs::write(made.path.join("binary"), [0_u8, 159, 146, 150, 0, 1]).unwrap();
    fs::rename(made.path.join("README"), made.path.join("LIESMICH")).unwrap();
    std::os::unix::fs::symlink("nowhere", made.path.join("link")).unwrap();
    write(&made.path.join("run"), "#!/bin/sh\n");
    fs::set_permissions(made.path.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    write(&made.path.join("ignored.o"), "x");
    let captured = rig.capture(&made);
    assert_eq!(
        captured.changed_files,
        [
            "LIESMICH",
            "README",
            "binary",
            "link",
            "run",
            "sub folder/ü\nx"
        ]
    );
    let tree = rig.git(
        rig.top(),
        &["rev-parse", &format!("{}^{{tree}}", captured.commit)],
    );
    assert_eq!(applied(&rig, &captured), tree);
    assert_eq!(captured.notes, Vec::<String>::new());
    let head = rig.git(rig.top(), &["rev-parse", &made.branch]);
    assert_eq!(head.trim(), captured.commit);
    let who = rig.git(
        rig.top(),
        &["log", "-1", "--format=%an <%ae> %s", &captured.commit],
    );
    assert_eq!(who.trim(), "Uma <uma@example.org> Work");
}

#[test]
fn behaviour_053_uncommitted_work_is_in_a_commit_before_removal() {
    let rig = Rig::new();
    let made = rig.fresh();
    rig.commit(&made.path, "a", "1");
    write(&made.path.join("b"), "2");
    let captured = rig.capture(&made);
    assert_eq!(captured.changed_files, ["a", "b"]);
    assert_eq!(
        rig.git(rig.top(), &["rev-list", "--count", "main..flockd/T-1.1"])
            .trim(),
        "2"
    );
    let again = rig.capture(&made);
    assert_eq!(again, captured, "a second capture adds nothing");
}

#[test]
fn a_user_without_a_name_gets_flockds() {
    let rig = Rig::new();
    fs::remove_file(rig.home().join("gitconfig")).unwrap();
    let made = rig.fresh();
    write(&made.path.join("a"), "1");
    let captured = rig.capture(&made);
    let who = rig.git(
        rig.top(),
        &["log", "-1", "--format=%an <%ae>", &captured.commit],
    );
    assert_eq!(who.trim(), "flockd <flockd@localhost>");
}

#[test]
fn messages_of_any_kind_are_taken() {
    let rig = Rig::new();
    let made = rig.fresh();
    for (file, message) in [("a", "# not a comment"), ("b", ""), ("c", "--all\n\nbody")] {
        write(&made.path.join(file), "1");
        let captured = rig.repo.capture(&made, "main", message).unwrap();
        let kept = rig.git(rig.top(), &["log", "-1", "--format=%B", &captured.commit]);
        assert_eq!(kept.trim(), message);
    }
}

#[test]
fn a_detached_head_is_brought_to_the_branch() {
    let rig = Rig::new();
    let made = rig.fresh();
    rig.git(&made.path, &["checkout", "-q", "--detach"]);
    rig.commit(&made.path, "a", "1");
    write(&made.path.join("b"), "2");
    let captured = rig.capture(&made);
    assert_eq!(captured.changed_files, ["a", "b"]);
    assert_eq!(
        rig.git(rig.top(), &["rev-parse", "flockd/T-1.1"]).trim(),
        captured.commit
    );
    assert_eq!(captured.notes, Vec::<String>::new());
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::Yes);
}

#[test]
fn work_on_another_branch_or_without_our_branch_is_found() {
    let rig = Rig::new();
    let made = rig.fresh();
    rig.git(&made.path, &["switch", "-q", "-c", "agents-own"]);
    rig.git(&made.path, &["branch", "-q", "-D", "flockd/T-1.1"]);
    let commit = rig.commit(&made.path, "a", "1");
    assert_eq!(rig.capture(&made).commit, commit);
    assert_eq!(
        rig.git(rig.top(), &["rev-parse", "flockd/T-1.1"]).trim(),
        commit
    );
}

#[test]
fn commits_of_the_agent_are_kept_wherever_it_left_head() {
    let rig = Rig::new();
    let made = rig.fresh();
    rig.commit(&made.path, "a", "1");
    rig.git(&made.path, &["checkout", "-q", "--detach", "main"]);
    let commit = rig.commit(&made.path, "b", "2");
    let captured = rig.capture(&made);
    assert_eq!(
        (captured.commit.as_str(), &captured.changed_files[..]),
        (commit.as_str(), &["b".to_owned()][..])
    );
    assert!(
        captured.notes[0].contains("flockd/kept/T-1.1.1"),
        "{:?}",
        captured.notes
    );
    assert_eq!(rig.show("flockd/kept/T-1.1.1:b"), "2");
    assert_eq!(rig.show("flockd/T-1.1:a"), "1");
}

#[test]
fn an_unfinished_merge_is_captured_as_it_is() {
    let rig = Rig::new();
    let made = rig.fresh();
    rig.commit(&made.path, "README", "theirs\n");
    rig.commit(rig.top(), "README", "ours\n");
    let merge = git_in(rig.home())
        .write(&made.path)
        .args(["merge", "main"])
        .output();
    assert!(!merge.unwrap().success());
    let captured = rig.capture(&made);
    assert!(
        captured.notes[0].contains("a merge"),
        "{:?}",
        captured.notes
    );
    assert!(
        rig.show(&format!("{}:README", captured.commit))
            .contains("<<<<<<<")
    );
}

#[test]
fn an_unfinished_rebase_is_captured_and_kept() {
    let rig = Rig::new();
    let made = rig.fresh();
    rig.commit(&made.path, "README", "theirs\n");
    rig.commit(rig.top(), "README", "ours\n");
    let rebase = git_in(rig.home())
        .write(&made.path)
        .args(["rebase", "main"])
        .output();
    assert!(!rebase.unwrap().success());
    let captured = rig.capture(&made);
    assert!(
        captured.notes[0].contains("a rebase"),
        "{:?}",
        captured.notes
    );
    assert!(
        rig.show(&format!("{}:README", captured.commit))
            .contains("<<<<<<<")
    );
    assert_eq!(
        rig.show("flockd/T-1.1:README"),
        "theirs\n",
        "the branch's own commit stays"
    );
}

#[test]
fn a_lock_left_by_a_killed_git_does_not_lose_the_work() {
    let rig = Rig::new();
    let made = rig.fresh();
    write(&made.path.join("a"), "1");
    let lock = rig.git(
        &made.path,
        &[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "index.lock",
        ],
    );
    write(std::path::Path::new(lock.trim()), "");
    let captured = rig.capture(&made);
    assert_eq!(captured.changed_files, ["a"]);
    assert!(
        captured.notes[0].contains("index.lock"),
        "{:?}",
        captured.notes
    );
    assert_eq!(rig.show("flockd/T-1.1:a"), "1");
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::KeptDirty);
    let next = rig.fresh();
    assert_eq!(
        next.path, made.path,
        "and the next attempt is not stopped by it"
    );
}

#[test]
fn a_locked_head_is_named() {
    let rig = Rig::new();
    let made = rig.fresh();
    write(&made.path.join("a"), "1");
    let lock = rig.git(
        &made.path,
        &[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "HEAD.lock",
        ],
    );
    write(std::path::Path::new(lock.trim()), "");
    let error = rig.repo.capture(&made, "main", "m").unwrap_err();
    assert!(!error.is_systemic());
    assert!(error.to_string().contains("HEAD.lock"), "{error}");
}

#[test]
fn repositories_inside_the_tree_are_noted() {
    let rig = Rig::new();
    let made = rig.fresh();
    for name in ["empty", "full"] {
        fs::create_dir(made.path.join(name)).unwrap();
        rig.git(&made.path.join(name), &["init", "-q"]);
        write(&made.path.join(name).join("file"), "x");
    }
    rig.commit(&made.path.join("full"), "file", "y");
    write(&made.path.join("a"), "1");
    let captured = rig.capture(&made);
    assert_eq!(captured.changed_files, ["a", "full"]);
    assert!(
        captured
            .notes
            .iter()
            .any(|n| n.starts_with("empty/ is not captured")),
        "{:?}",
        captured.notes
    );
    assert!(
        captured.notes.iter().any(|n| n.starts_with("full is")),
        "{:?}",
        captured.notes
    );
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::KeptDirty);
    assert!(made.path.join("empty/file").exists());
}

#[test]
fn behaviour_053_what_cannot_be_added_is_a_note_and_the_tree_stays() {
    let rig = Rig::new();
    let made = rig.fresh();
    write(&made.path.join("a"), "1");
    // A filter that fails stands for a file that cannot be read: root can read every file.
    rig.git(rig.top(), &["config", "filter.broken.clean", "false"]);
    rig.git(rig.top(), &["config", "filter.broken.required", "true"]);
    write(&made.path.join(".gitattributes"), "secret filter=broken\n");
    write(&made.path.join("secret"), "x");
    let captured = rig.capture(&made);
    assert!(
        captured.notes[0].starts_with("secret is not captured"),
        "{:?}",
        captured.notes
    );
    assert!(
        captured.changed_files == [".gitattributes", "a"],
        "{:?}",
        captured.changed_files
    );
    assert_eq!(rig.repo.remove_worktree(&made).unwrap(), Removed::KeptDirty);
    assert!(made.path.join("secret").exists());
}

#[test]
fn a_worktree_that_is_gone_is_said() {
    let rig = Rig::new();
    let made = rig.fresh();
    fs::remove_dir_all(&made.path).unwrap();
    let error = rig.repo.capture(&made, "main", "m").unwrap_err();
    assert!(error.to_string().contains("is gone"), "{error}");
    assert!(!error.is_systemic());
}
