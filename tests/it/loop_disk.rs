//! Disks that refuse: a state directory that is full, and one that is read-only.

use crate::common::{Ended, Looping, Sandbox, eventually};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system of its own at a folder, taken away at the end.
struct Mount(PathBuf);

impl Mount {
    /// None (said on stderr) when this user may not mount.
    fn tmpfs(at: &Path, size: &str) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped: only root can mount a small file system");
            return None;
        }
        let options = format!("size={size},mode=0700");
        let mut command = Command::new("mount");
        command
            .args(["-t", "tmpfs", "-o", &options, "flockd-test"])
            .arg(at);
        let output = command.output().unwrap();
        if !output.status.success() {
            eprintln!("skipped: mount: {output:?}");
            return None;
        }
        Some(Self(at.to_owned()))
    }

    fn remount(&self, mode: &str) {
        let option = format!("remount,{mode}");
        let mut command = Command::new("mount");
        assert!(
            command
                .args(["-o", &option])
                .arg(&self.0)
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a runner that has not left yet must not keep it.
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}

/// Tasks of a loop that meets the full disk.
const TASKS: usize = 4;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let worktrees = sandbox.gate("worktrees");
    sandbox.configure_shell(&format!(
        "[loop]\ntasks = 2\nworktree_dir = {worktrees:?}\n"
    ));
    for n in 1..=TASKS {
        let header = format!("title = \"Task {n}\"\nclaims = [\"file-{n}\"]");
        let script = format!("{}\necho done > file-{n}", sandbox.until_open("gate"));
        sandbox.task(&format!("task-{n}"), &header, &script);
    }
    sandbox
}

/// Writes until nothing fits any more.
fn fill(file: &Path) {
    let mut file = fs::File::create(file).unwrap();
    for size in [4096, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

fn refused(ended: &Ended, says: &[&str]) {
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    for part in says {
        assert!(ended.said.contains(part), "{part}: {}", ended.said);
    }
    assert!(!ended.said.contains("panicked"), "{}", ended.said);
}

fn all_completed(sandbox: &Sandbox) {
    let ended = Looping::start(sandbox, &[]).ended();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let all: Vec<String> = (1..=TASKS).map(|n| format!("task-{n}")).collect();
    assert_eq!(sandbox.tasks_of("task_completed"), all);
    sandbox.every_run_ended_once();
    sandbox.verify();
    for n in 1..=TASKS {
        let file = format!("flockd/task-{n}.1:file-{n}");
        assert_eq!(sandbox.git(&["show", &file]), "done\n");
    }
}

#[test]
fn p3_full_disk_ends_the_loop_and_loses_nothing() {
    let sandbox = sandbox();
    let Some(_mount) = Mount::tmpfs(&sandbox.state(), "1m") else {
        return;
    };
    let mut looping = Looping::start(&sandbox, &[]);
    sandbox.running(2);
    let filler = sandbox.state().join("filler");
    fill(&filler);
    // What the agents end with can be told to nobody now.
    sandbox.open_gate("gate");
    let ended = looping.ended();
    refused(&ended, &["No space left", "make room", "flockd start"]);
    // As long as it is full a start says so too.
    refused(&Looping::start(&sandbox, &[]).ended(), &["No space left"]);
    fs::remove_file(filler).unwrap();
    all_completed(&sandbox);
}

#[test]
fn p3_full_disk_while_runs_end_without_a_daemon() {
    let sandbox = sandbox();
    let Some(_mount) = Mount::tmpfs(&sandbox.state(), "1m") else {
        return;
    };
    let mut looping = Looping::start(&sandbox, &[]);
    sandbox.running(2);
    looping.kill_9();
    let filler = sandbox.state().join("filler");
    fill(&filler);
    sandbox.open_gate("gate");
    eventually("the agents have ended", || {
        crate::common::processes::alive(&sandbox.state())
            .is_empty()
            .then_some(())
    });
    fs::remove_file(filler).unwrap();
    all_completed(&sandbox);
    assert_eq!(
        sandbox.facts_of("run_intended").len(),
        TASKS,
        "no run was lost"
    );
}

#[test]
fn p3_full_disk_a_read_only_state_directory_is_named() {
    let sandbox = sandbox();
    sandbox.open_gate("gate");
    let Some(mount) = Mount::tmpfs(&sandbox.state(), "8m") else {
        return;
    };
    mount.remount("ro");
    let state = sandbox.state();
    let ended = Looping::start(&sandbox, &[]).ended();
    refused(&ended, &["Read-only", &state.display().to_string()]);
    mount.remount("rw");
    all_completed(&sandbox);
}
