//! Task files and folders: good ones, malformed ones, anything at all.

use super::tests::{EXAMPLE, Project};
use super::*;
use crate::types::TaskId;
use proptest::prelude::*;
use std::path::Path;

const TASK_TEXT: &str = r#"+++
title = "Add a widget"
priority = 2
claims = ["src/widget.rs", "tests/widget/"]
after = ["T-0001"]
stages = ["write", "verify"]
agent = "claude"
state = "hold"
+++
Body *verbatim*.

+++ not a fence
"#;

#[test]
fn a_task_file_reads() {
    let task = parse_task(Path::new("tasks/T-0002.md"), TASK_TEXT.as_bytes()).unwrap();
    assert_eq!(task.id, TaskId::new("T-0002").unwrap());
    assert_eq!(
        (task.title.as_str(), task.priority, task.state),
        ("Add a widget", 2, TaskState::Hold)
    );
    assert_eq!(task.body, "Body *verbatim*.\n\n+++ not a fence\n");
    assert_eq!(task.stages.unwrap(), ["write", "verify"]);
    let crlf = TASK_TEXT.replace('\n', "\r\n");
    assert_eq!(
        parse_task(Path::new("T-0002.md"), crlf.as_bytes())
            .unwrap()
            .title,
        "Add a widget"
    );
    let small = parse_task(Path::new("a.md"), b"+++\ntitle=\"x\"\n+++").unwrap();
    assert_eq!(
        (small.body.as_str(), small.state, small.stages),
        ("", TaskState::Ready, None)
    );
}

#[test]
fn malformed_task_files_say_where_and_what() {
    let cases: [(&str, &[u8]); 12] = [
        ("a.md", b""),
        ("a.md", b"# no header\n"),
        ("a.md", b"+++\ntitle = \"x\"\n"),
        ("a.md", b"+++\n\ntitle = x\n+++\n"),
        ("a.md", b"+++\npriority = 1\n+++\n"),
        ("a.md", b"+++\ntitle = \"x\"\nprioriti = 1\n+++\n"),
        ("a.md", b"+++\ntitle = \"x\"\npriority = \"high\"\n+++\n"),
        ("a.md", b"+++\ntitle = \"x\"\nstate = \"held\"\n+++\n"),
        ("a.md", b"+++\ntitle = \"x\"\nafter = [\"a\"]\n+++\n"),
        ("a.md", b"+++\ntitle = \"x\"\nclaims = [1]\n+++\n"),
        ("a.md", b"+++\ntitle = \"x\"\n+++\nbody\n\xff\n"),
        ("a b.md", b"+++\ntitle = \"x\"\n+++\n"),
    ];
    let mut said = String::new();
    for (name, bytes) in cases {
        let error = parse_task(&Path::new("tasks").join(name), bytes).unwrap_err();
        said.push_str(&format!("{error}\n"));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_rendered_task_reads_back() {
    let draft = TaskDraft {
        title: "quote \" and \\ and é".to_owned(),
        body: "line\n+++\nnot the end".to_owned(),
        priority: -3,
        claims: vec!["src/".to_owned()],
        after: vec!["T-0001".to_owned()],
        ..TaskDraft::default()
    };
    let task = parse_task(Path::new("T-0009.md"), render_task(&draft).as_bytes()).unwrap();
    assert_eq!((task.title, task.priority), (draft.title, -3));
    assert_eq!(task.body, "line\n+++\nnot the end\n");
}

#[test]
fn a_folder_is_scanned_in_order_and_bad_files_hide_nothing() {
    let head = |extra: &str| format!("+++\ntitle = \"t\"\n{extra}\n+++\n");
    let project = Project::new()
        .file("tasks/b.md", &head("priority = 1"))
        .file("tasks/c.md", &head("after = [\"d\", \"gone\"]"))
        .file("tasks/d.md", &head("after = [\"c\"]"))
        .file("tasks/a.md", &head("stages = [\"wriet\"]"))
        .file("tasks/bad.md", "nothing")
        .file("tasks/.hidden.md", "nothing")
        .file("tasks/README.txt", "nothing")
        .file("flockd.toml", EXAMPLE);
    let folder = project.dir.path().join("tasks");
    let found = scan_tasks(&folder).unwrap();
    let ids: Vec<&str> = found.tasks.iter().map(|t| t.id.as_str()).collect();
    assert_eq!(ids, ["b", "a", "c", "d"]);
    assert_eq!(found.malformed.len(), 1);
    assert_eq!(format!("{:?}", found.unknown_after), r#"[("c", "gone")]"#);
    assert_eq!(format!("{:?}", found.cycles), r#"[["c", "d"]]"#);
    let misfits = found.misfits(&project.config(), Path::new("tasks"));
    insta::assert_snapshot!(misfits[0], @r#"tasks/a.md: stages: unknown stage "wriet", did you mean "write"?"#);
    assert!(
        scan_tasks(Path::new("/nonexistent/tasks"))
            .unwrap()
            .tasks
            .is_empty()
    );
}

proptest! {
    #[test]
    fn the_task_parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse_task(Path::new("T-1.md"), &bytes);
    }

    #[test]
    fn the_task_header_parser_never_panics(header in "[a-z=\\[\\]\"'\\\\\n #.0-9{},+é-]{0,200}") {
        let _ = parse_task(Path::new("T-1.md"), format!("+++\n{header}\n+++\nbody").as_bytes());
    }

    #[test]
    fn the_config_parser_never_panics(text in "[a-z=\\[\\]\"'\\\\\n #.0-9{},_-]{0,200}") {
        let mut merged = super::merge::Merged::builtin();
        merged.file(super::place::FileLayer::Project, Path::new("flockd.toml"), &text);
        let _ = super::resolve::resolve(&mut merged, Path::new("/r"), false);
    }
}
