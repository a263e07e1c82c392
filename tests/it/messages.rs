//! The built program's words: what people read when something is missing, late or over.

use crate::common::Sandbox;
use std::process::Output;

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn run_says_what_the_command_cannot_say_itself() {
    let sandbox = Sandbox::new();
    let missing = sandbox.flockd(&["run", "--", "no-such-program"]);
    assert_eq!(code(&missing), 127);
    assert!(
        stderr(&missing).contains("no-such-program is not in PATH: install it"),
        "{missing:?}"
    );
    let late = sandbox.flockd(&["run", "--timeout", "100ms", "--", "sleep", "60"]);
    assert_eq!(code(&late), 3);
    assert!(stderr(&late).contains("--timeout"), "{late:?}");
}

#[test]
fn a_loop_that_ends_leaves_no_address_and_doctor_is_content() {
    let sandbox = Sandbox::new();
    assert_eq!(code(&sandbox.flockd(&["init"])), 0);
    assert_eq!(code(&sandbox.flockd(&["add", "Later", "--hold"])), 0);
    let ended = sandbox.flockd(&["start"]);
    assert_eq!(code(&ended), 0, "{ended:?}");
    assert!(!stderr(&ended).contains("inbox"), "{ended:?}");
    let checks: serde_json::Value =
        serde_json::from_slice(&sandbox.flockd(&["doctor", "--json"]).stdout).unwrap();
    let daemon = checks
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["check"] == "daemon")
        .unwrap();
    assert_eq!(daemon["health"], "ok", "{daemon}");
}
