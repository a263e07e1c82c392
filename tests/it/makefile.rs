//! `make start` hands its variables on, and the repository's own scripts do what its tasks rely on.

use crate::common::{copy_of_repository, repository};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What `make start` shows to the program, with the given environment and make variables.
fn environment_of_start(environment: &[(&str, &str)], variables: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("flockd");
    fs::write(&program, "#!/bin/sh\nenv\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let output = Command::new("make")
        .args(["-s", "start", "CARGO=true"])
        .arg(format!("FLOCKD={}", program.display()))
        .args(variables)
        .current_dir(repository())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn has(lines: &str, line: &str) -> bool {
    lines.lines().any(|l| l == line)
}

#[test]
fn behaviour_033_the_operators_ceiling_reaches_the_program() {
    let seen = environment_of_start(&[], &["ACTIVE_GLOBAL_CONCURRENCY=3", "ACTIVE_TASK_POOL=4"]);
    assert!(
        has(&seen, "FLOCKD_GLOBAL_CONCURRENCY=3") && has(&seen, "FLOCKD_TASKS=4"),
        "{seen}"
    );
    let seen = environment_of_start(&[("START_TASK_LIMIT", "7"), ("START_INFINITE", "1")], &[]);
    assert!(
        has(&seen, "FLOCKD_LOOP_MAX_COMPLETED=7") && has(&seen, "FLOCKD_LOOP_INFINITE=1"),
        "{seen}"
    );
}

#[test]
fn behaviour_033_the_callers_own_environment_wins_and_unset_stays_unset() {
    let seen = environment_of_start(
        &[("FLOCKD_GLOBAL_CONCURRENCY", "9")],
        &["ACTIVE_GLOBAL_CONCURRENCY=3"],
    );
    assert!(has(&seen, "FLOCKD_GLOBAL_CONCURRENCY=9"), "{seen}");
    assert!(!seen.contains("FLOCKD_TASKS"), "{seen}");
    let seen = environment_of_start(&[], &["ACTIVE_TASK_POOL="]);
    assert!(!seen.contains("FLOCKD_TASKS"), "{seen}");
}

/// A script of `scripts/agents` in a fresh repository that holds `a.txt` and the scripts.
fn agent(script: &str, prepare: &str, claims: &str, prompt: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let prepared = Command::new("sh")
        .args([
            "-euc",
            "git init -q . && echo a >a.txt && cp -r \"$0\" scripts && git add -A && \
               git -c user.name=A -c user.email=a@example.org commit -qm begin; eval \"$1\"",
        ])
        .arg(repository().join("scripts"))
        .arg(prepare)
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(prepared.success());
    run_script(folder.path(), script, claims, prompt)
}

fn run_script(folder: &Path, script: &str, claims: &str, prompt: &str) -> Output {
    let input = folder.join(".git/prompt");
    fs::write(&input, prompt).unwrap();
    Command::new("sh")
        .arg(format!("scripts/{script}"))
        .current_dir(folder)
        .env("FLOCKD_CLAIMS", claims)
        .stdin(Stdio::from(fs::File::open(&input).unwrap()))
        .output()
        .unwrap()
}

/// The last line of its output: what flockd takes as the verdict.
fn verdict(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn shipped_writer_runs_the_block_of_the_task() {
    let run = |prompt: &str| verdict(&agent("agents/write.sh", "", "", prompt));
    assert_eq!(
        run("Do it.\n```sh\necho b > b.txt\ntest -f b.txt\n```\n"),
        "verdict: pass"
    );
    assert_eq!(
        run("Do it.\n```sh\nfalse\necho never\n```\n"),
        "verdict: fail the sh block of the task failed"
    );
    assert!(run("Please write a poem.\n").starts_with("verdict: blocked "));
}

#[test]
fn shipped_reviewer_of_scope_knows_files_folders_and_globs() {
    let make = "mkdir -p x/y; echo b > x/y/b.md; echo c >> a.txt";
    let run = |claims: &str| verdict(&agent("agents/review-scope.sh", make, claims, ""));
    assert_eq!(run("a.txt\nx"), "verdict: pass");
    assert_eq!(run("a.txt\nx/**/*.md"), "verdict: pass");
    assert_eq!(run("."), "verdict: pass");
    assert_eq!(
        run("a.txt\nx/y/b"),
        "verdict: fail 1 path(s) outside the claim"
    );
    assert_eq!(
        run(""),
        "verdict: pass",
        "no claims at all: the whole repository"
    );
}

#[test]
fn shipped_reviewer_of_text_finds_what_it_looks_for() {
    let run = |make: &str| verdict(&agent("agents/review-text.sh", make, "", ""));
    assert_eq!(
        run("printf 'fine\\n' > b.txt; printf 'a\\0b ' > binary"),
        "verdict: pass"
    );
    assert_eq!(run("printf 'no end' > b.txt"), "verdict: fail 1 finding(s)");
    assert_eq!(
        run("printf 'blank \\ncr\\r\\n<<<<<<< x\\n' > b.txt"),
        "verdict: fail 3 finding(s)"
    );
}

#[test]
fn shipped_check_refuses_nothing_and_broken_tables() {
    let run = |make: &str| agent("verify.sh", make, "", "").status.code();
    assert_eq!(run(""), Some(1));
    assert_eq!(
        run("printf '# T\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n' > t.md"),
        Some(0)
    );
    assert_eq!(
        run("printf '# T\\n\\n| a | b |\\n|---|---|\\n| 1 |\\n' > t.md"),
        Some(1)
    );
    assert_eq!(run("printf 'T\\n' > t.md"), Some(1));
}

#[test]
fn shipped_tasks_pass_their_own_reviewers() {
    let folder = copy_of_repository();
    let tasks = fs::read_dir(folder.path().join("tasks")).unwrap();
    let mut count = 0;
    for task in tasks {
        let text = fs::read_to_string(task.unwrap().path()).unwrap();
        let claims = text
            .lines()
            .find_map(|line| line.strip_prefix("claims = "))
            .unwrap();
        let claims = claims.replace(['[', ']', '"'], "").replace(", ", "\n");
        for script in [
            "agents/write.sh",
            "agents/review-scope.sh",
            "agents/review-text.sh",
            "verify.sh",
        ] {
            let output = run_script(folder.path(), script, &claims, &text);
            assert_eq!(
                verdict(&output),
                "verdict: pass",
                "{script} of\n{text}\n{output:?}"
            );
        }
        let clean = Command::new("git")
            .args(["clean", "-fdq"])
            .current_dir(folder.path())
            .status();
        assert!(clean.unwrap().success());
        count += 1;
    }
    assert!(count >= 5);
}
