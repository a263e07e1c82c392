//! What is said about a broken configuration, what is shown of a good one.

use super::tests::{EXAMPLE, Project};
use super::*;

#[test]
fn errors_name_file_line_key_and_the_way_out() {
    let broken = r#"
stat_dir = "x"
tasks = 3
colour = "red"

[loop]
taks = 4
workers = "2"
roles = 99999999999

[limits]
deadline = "soon"
output_max = true

[gate]
mode = "claim"
per_batch_max = 0

[agents.claude]
kind = "cluade"

[agents.check]
kind = "command"

[roles.writer]
agent = "claud"
concurrency = "parallel"
slots = 0

[roles."a b"]
agent = "check"

[[stages]]
name = "write"
roles = ["writre"]
run = ["make"]

[[stages]]
name = "write"
requires = 2

[[stages]]
name = "review"
roles = ["writer"]
require = 2
"#;
    let project = Project::new()
        .file("flockd.toml", broken)
        .file("flockd.local.toml", "[loop\n");
    insta::assert_snapshot!(project.errors());
}

#[test]
fn flags_are_checked_like_files() {
    let project = Project::new()
        .flag("-x", "loop.tasks", "two")
        .flag("--set", "loop.wrokers", "2")
        .flag("--set", "limits.idle", "10 minutes");
    insta::assert_snapshot!(project.errors());
    assert_eq!(
        Project::new()
            .flag("-m", "loop.global_concurrency", "0")
            .config()
            .loop_
            .global_concurrency,
        1
    );
}

#[test]
fn a_password_is_masked_and_warned_about() {
    let project = Project::new().file(
        "flockd.toml",
        "[store]\nurl = \"postgres://me:hunter2@db/flockd\"\n",
    );
    assert!(project.warnings()[0].contains("FLOCKD_STORE_URL"));
    let shown = serde_json::to_string(&project.load().unwrap().values()).unwrap();
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn the_schema_knows_what_the_reader_knows() {
    let schema = schema();
    for shown in Project::new()
        .file("flockd.toml", EXAMPLE)
        .load()
        .unwrap()
        .values()
    {
        let path = shown.key.split('.').collect::<Vec<_>>();
        let found = match path.as_slice() {
            [top] => &schema["properties"][*top],
            [table, _, key] => {
                &schema["properties"][*table]["additionalProperties"]["properties"][*key]
            }
            [stage, key] if stage.starts_with("stages[") => {
                &schema["properties"]["stages"]["items"]["properties"][*key]
            }
            [section, key] => &schema["properties"][*section]["properties"][*key],
            _ => unreachable!("keys have at most three parts"),
        };
        assert!(found["description"].is_string(), "{}", shown.key);
    }
}
