//! All integration tests are one binary: one `mod` line per file, checked by the test below.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test panics where it fails, and stands outside of flockd: it writes and spawns as users do"
)]

mod attack_agent;
mod attack_restart;
mod command_line;
mod common;
mod conformance;
mod fake_agent;
mod lease;
mod loop_ceiling;
mod loop_children;
mod loop_clients;
mod loop_disk;
mod loop_files;
mod loop_history;
mod loop_stop;
mod loop_takeover;
mod loop_why;

mod makefile;
mod messages;
mod runner;
mod sandbox;
mod shipped;
mod tidy;

use std::collections::BTreeSet;

/// The files and folders beside `main.rs` that `listed` has no `mod` line for.
fn forgotten(listed: &str, found: &BTreeSet<String>) -> Vec<String> {
    let mods: BTreeSet<&str> = listed
        .lines()
        .filter_map(|line| line.trim().strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    found
        .iter()
        .filter(|name| !mods.contains(name.as_str()))
        .cloned()
        .collect()
}

#[test]
fn tidy_no_test_file_is_forgotten() {
    let folder = common::repository().join("tests/it");
    let found = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| path.file_stem().map(|s| s.to_string_lossy().into_owned()))
        .filter(|name| name != "main" && !name.starts_with('.') && name != "snapshots")
        .collect();
    let listed = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    assert_eq!(forgotten(&listed, &found), Vec::<String>::new());
}

#[test]
fn tidy_a_forgotten_test_file_is_found() {
    let found = ["common", "lonely"].map(str::to_owned).into();
    assert_eq!(forgotten("mod common;\n", &found), ["lonely"]);
}
