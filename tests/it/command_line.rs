//! The built program without a daemon: exit codes, streams, what `init` and `add` write, what is shown.

use crate::common::Sandbox;
use serde_json::Value;
use std::process::{Output, Stdio};

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    assert_eq!(code(output), 0, "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder that is in no repository.
fn outside(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new();
    let mut command = sandbox.flockd_command(arguments);
    command.current_dir(folder.path()).output().unwrap()
}

#[test]
fn usage_errors_and_a_missing_repository_end_with_2() {
    let sandbox = Sandbox::new();
    for arguments in [&["nonsense"][..], &[], &["why"], &["add"], &["start", "-x"]] {
        let output = sandbox.flockd(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    for arguments in [&["init"][..], &["status"], &["start"]] {
        let output = outside(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert!(stderr(&output).contains("git init"), "{output:?}");
    }
}

#[test]
fn init_writes_once_and_keeps_what_is_there() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "target");
    let first = sandbox.flockd(&["init"]);
    assert_eq!(code(&first), 0, "{first:?}");
    assert_eq!(
        sandbox.read(".gitignore"),
        "target\n/.flockd/\n/flockd.local.toml\n"
    );
    assert_eq!(code(&sandbox.flockd(&["config", "show"])), 0);
    let rows = json(&sandbox.flockd(&["list", "--json"]));
    assert_eq!(rows[0]["state"], "hold");
    sandbox.write("flockd.toml", "[loop]\ntasks = 5\n");
    let second = sandbox.flockd(&["init"]);
    assert_eq!(code(&second), 0);
    assert!(stdout(&second).contains("kept flockd.toml"), "{second:?}");
    assert_eq!(sandbox.read("flockd.toml"), "[loop]\ntasks = 5\n");
    assert_eq!(
        sandbox.read(".gitignore"),
        "target\n/.flockd/\n/flockd.local.toml\n"
    );
}

#[test]
fn init_uses_the_first_installed_agent() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::new();
    for program in ["claude", "codex"] {
        sandbox.write(&format!("bin/{program}"), "#!/bin/sh\n");
        let file = sandbox.root().join("bin").join(program);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = sandbox.flockd_command(&["init"]);
    let output = command
        .env("PATH", sandbox.root().join("bin"))
        .output()
        .unwrap();
    assert_eq!(code(&output), 0, "{output:?}");
    let text = sandbox.read("flockd.toml");
    assert!(
        text.contains("[roles.writer]\nagent = \"claude\""),
        "{text}"
    );
    assert!(text.contains("[agents.codex]"), "{text}");
    assert!(!sandbox.root().join("scripts").exists());
}

#[test]
fn add_prints_ids_and_never_uses_one_twice() {
    let sandbox = Sandbox::new();
    let first = sandbox.flockd(&["add", "One", "--claim", "src/a.rs", "--priority", "2"]);
    assert_eq!(
        (code(&first), stdout(&first)),
        (0, "T-0001\n".to_owned()),
        "{first:?}"
    );
    let second = sandbox.flockd(&[
        "add", "Two", "--after", "T-0001", "--body", "do it", "--json",
    ]);
    assert_eq!(json(&second)["added"][0], "T-0002");
    let text = sandbox.read("tasks/T-0002.md");
    assert!(
        text.contains("after = [\"T-0001\"]") && text.ends_with("+++\ndo it\n"),
        "{text}"
    );
    sandbox.write(
        ".flockd/auto_loop_state.json",
        r#"{"completed_task_ids":["T-0009"],"completed_count":1,"cycles":[]}"#,
    );
    assert_eq!(stdout(&sandbox.flockd(&["add", "Three"])), "T-0010\n");
}

#[test]
fn add_from_a_file_is_all_or_none() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "good.jsonl",
        "{\"title\":\"a\"}\n\n{\"title\":\"b\",\"id\":\"B\",\"claims\":[\"src/\"]}\n",
    );
    assert_eq!(
        stdout(&sandbox.flockd(&["add", "--from", "good.jsonl"])),
        "T-0001\nB\n"
    );
    for (bad, says) in [
        ("{\"title\":\"c\"}\n{\"titel\":\"d\"}\n", "bad.jsonl:2"),
        ("{\"title\":\"c\"}\n{\"title\":\"\"}\n", "task 2: title"),
        (
            "{\"title\":\"c\"}\n{\"title\":\"d\",\"id\":\"B\"}\n",
            "already a task B",
        ),
        (
            "{\"title\":\"c\",\"claims\":[\"../x\"]}\n",
            "task 1: claims",
        ),
    ] {
        sandbox.write("bad.jsonl", bad);
        let output = sandbox.flockd(&["add", "--from", "bad.jsonl"]);
        assert_eq!(code(&output), 2, "{bad}");
        assert!(stderr(&output).contains(says), "{says}: {output:?}");
    }
    assert_eq!(
        json(&sandbox.flockd(&["list", "--json"]))
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn concurrent_adds_never_share_an_id() {
    let sandbox = Sandbox::new();
    let children: Vec<_> = (0..8)
        .map(|n| {
            let mut command = sandbox.flockd_command(&["add", &format!("task {n}")]);
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut ids: Vec<String> = children
        .into_iter()
        .map(|c| stdout(&c.wait_with_output().unwrap()))
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8, "{ids:?}");
}

#[test]
fn why_names_what_a_task_waits_for() {
    let sandbox = Sandbox::new();
    sandbox.task("done", "title = \"t\"", "");
    sandbox.task("held", "title = \"t\"\nstate = \"hold\"", "");
    sandbox.task("later", "title = \"t\"\nafter = [\"free\"]", "");
    sandbox.task(
        "free",
        "title = \"t\"\nafter = [\"done\"]\nclaims = [\"docs/\"]",
        "",
    );
    sandbox.task("stuck", "title = \"t\"", "");
    sandbox.task("bad", "title = ", "");
    sandbox.write(
        ".flockd/auto_loop_state.json",
        r#"{"completed_task_ids":["done"],"completed_count":1,"blocked_task_ids":["stuck"],"cycles":[]}"#,
    );
    for (task, state, wait_for, says) in [
        ("done", "completed", Value::Null, "completed"),
        ("held", "hold", "human".into(), "hold"),
        ("later", "waiting", "dependency".into(), "free"),
        ("free", "queued", "slot".into(), "flockd start"),
        ("stuck", "blocked", "human".into(), ""),
        ("bad", "malformed", "human".into(), "bad.md:2"),
    ] {
        let report = json(&sandbox.flockd(&["why", task, "--json"]));
        assert_eq!(report["state"], state, "{task}");
        assert_eq!(report["waits_for"], wait_for, "{task}");
        assert!(
            report["detail"].as_str().unwrap().contains(says),
            "{report}"
        );
    }
    assert_eq!(code(&sandbox.flockd(&["why", "nobody"])), 2);
    let status = json(&sandbox.flockd(&["status", "--json"]));
    assert_eq!(status["daemon"]["running"], false);
    assert_eq!(status["tasks"]["queued"], 1);
    assert_eq!(status["tasks"]["waiting"], 2);
    assert_eq!(status["tasks"]["blocked"], 1);
    assert_eq!(status["tasks"]["malformed"], 1);
}

#[test]
fn looking_makes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.task("a", "title = \"t\"", "");
    for arguments in [
        &["status"][..],
        &["list"],
        &["why", "a"],
        &["show", "a"],
        &["lease", "list"],
        &["ledger"],
        &["doctor"],
        &["config", "show"],
    ] {
        let output = sandbox.flockd(arguments);
        assert!(code(&output) <= 1, "{output:?}");
        assert!(!sandbox.state().exists(), "{arguments:?}");
    }
    let stop = sandbox.flockd(&["stop"]);
    assert_eq!(code(&stop), 0);
    assert!(stderr(&stop).contains("no daemon"));
}

#[test]
fn configuration_errors_end_with_2_and_name_the_line() {
    let sandbox = Sandbox::new();
    sandbox.write("flockd.toml", "[loop]\ntaks = 3\n");
    for arguments in [&["status"][..], &["start"], &["config", "show"]] {
        let output = sandbox.flockd(arguments);
        assert_eq!(code(&output), 2);
        let text = stderr(&output);
        assert!(
            text.contains("flockd.toml:2: loop.taks") && text.contains("\"tasks\""),
            "{text}"
        );
    }
    // A loop whose files somebody is editing can still be held.
    assert_eq!(code(&sandbox.flockd(&["estop"])), 0);
    assert!(sandbox.state().join("ESTOP").exists());
    assert_eq!(code(&sandbox.flockd(&["thaw"])), 0);
    assert!(!sandbox.state().join("ESTOP").exists());
    let doctor = sandbox.flockd(&["doctor"]);
    assert_eq!(code(&doctor), 1);
    assert!(stdout(&doctor).contains("flockd.toml:2"));
}

#[test]
fn config_show_names_every_source() {
    let sandbox = Sandbox::new();
    sandbox.write("flockd.toml", "[loop]\ntasks = 3\nroles = 2\n");
    sandbox.write("flockd.local.toml", "\n[loop]\nroles = 5\n");
    let mut command =
        sandbox.flockd_command(&["config", "show", "--json", "--set", "limits.idle=5m"]);
    let rows = json(
        &command
            .env("FLOCKD_GLOBAL_CONCURRENCY", "6")
            .output()
            .unwrap(),
    );
    let source = |key: &str| {
        let row = rows
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["key"] == key)
            .unwrap();
        (
            row["value"].clone(),
            row["source"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(source("loop.tasks"), (3.into(), "flockd.toml:2".to_owned()));
    assert_eq!(
        source("loop.roles"),
        (5.into(), "flockd.local.toml:3".to_owned())
    );
    assert_eq!(source("loop.workers"), (1.into(), "default".to_owned()));
    assert_eq!(
        source("loop.global_concurrency"),
        (6.into(), "FLOCKD_GLOBAL_CONCURRENCY".to_owned())
    );
    assert_eq!(source("limits.idle"), ("5m".into(), "--set".to_owned()));
}

#[test]
fn a_linked_worktree_shares_the_state() {
    let sandbox = Sandbox::new();
    sandbox.task("a", "title = \"t\"", "");
    sandbox.git(&["worktree", "add", "-q", ".flockd/worktrees/w"]);
    let mut command = sandbox.flockd_command(&["pause"]);
    let inside = sandbox.root().join(".flockd/worktrees/w");
    let output = command.current_dir(inside).output().unwrap();
    assert_eq!(code(&output), 0, "{output:?}");
    assert!(sandbox.state().join("PAUSED").exists());
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let sandbox = Sandbox::new();
    for n in 0..2000 {
        sandbox.task(
            &format!("t{n}"),
            "title = \"a title of some length to fill the pipe\"",
            "",
        );
    }
    let mut command = sandbox.flockd_command(&["list"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
}

#[test]
fn logs_print_the_newest_run_and_follow_it_to_its_end() {
    let sandbox = Sandbox::new();
    for (run, text) in [("01A", "old\n"), ("01B", "new\n")] {
        let folder = format!(".flockd/runs/{run}");
        sandbox.write(
            &format!("{folder}/spec.json"),
            r#"{"task_id":"a","role":"writer"}"#,
        );
        sandbox.write(&format!("{folder}/stdout.log"), text);
    }
    assert_eq!(stdout(&sandbox.flockd(&["logs", "a"])), "new\n");
    assert_eq!(stdout(&sandbox.flockd(&["logs", "--run", "01A"])), "old\n");
    assert_eq!(code(&sandbox.flockd(&["logs", "b"])), 2);
    let mut command = sandbox.flockd_command(&["logs", "a", "-f"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut seen, &mut line).unwrap();
        line
    };
    assert_eq!(next(), "new\n");
    let log = sandbox.state().join("runs/01B/stdout.log");
    let mut file = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    std::io::Write::write_all(&mut file, b"more\n").unwrap();
    assert_eq!(next(), "more\n");
    std::io::Write::write_all(&mut file, b"last\n").unwrap();
    sandbox.write(".flockd/runs/01B/exit.json", "{}");
    assert_eq!(next(), "last\n");
    assert_eq!(next(), "");
    assert!(child.wait().unwrap().success());
}

#[test]
fn completions_and_schema_need_no_project() {
    for arguments in [
        &["completions", "bash"][..],
        &["config", "schema"],
        &["--version"],
    ] {
        let output = outside(arguments);
        assert_eq!(code(&output), 0, "{arguments:?}");
        assert!(!output.stdout.is_empty());
    }
}
