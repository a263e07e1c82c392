//! What every file must look like: length, first line, words that mean unfinished work.

use super::source::Source;
use super::{Breach, assert_none, rust_sources};

/// More lines than this and a file has more than one concern.
const LINES_MAX: usize = 400;

/// Files of nothing but tests are lists of cases and may be longer.
const TEST_LINES_MAX: usize = 900;

/// Where Rust files of this repository are.
const FOLDERS: &[&str] = &["src", "tests", "benches"];

/// Built from halves so that this file does not break its own rule.
const BANNED_WORDS: &[&str] = &[
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("TO", "DO"),
];

/// Token sequences that are not allowed, with the reason.
const BANNED_CODE: &[(&[&str], &str)] = &[
    (&["todo", "!"], "unfinished code"),
    (&["unimplemented", "!"], "unfinished code"),
    (&["#", "[", "ignore"], "a test that never runs"),
    (&["#", "[", "allow"], "use #[expect(lint, reason = \"…\")]"),
    (
        &["#", "!", "[", "allow"],
        "use #![expect(lint, reason = \"…\")]",
    ),
];

fn too_long(source: &Source) -> Option<Breach> {
    let lines = source.text.lines().count();
    let is_tests = source.path.ends_with("tests.rs") || source.path.contains("/tests/");
    let bound = if is_tests { TEST_LINES_MAX } else { LINES_MAX };
    (lines > bound).then(|| Breach::new(&source.path, lines, format!("at most {bound} lines")))
}

fn no_module_doc(source: &Source) -> Option<Breach> {
    let starts = source.text.starts_with("//! ");
    (!starts).then(|| {
        Breach::new(
            &source.path,
            1,
            "the first line says what the module owns: `//! …`",
        )
    })
}

fn unfinished(source: &Source) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        if let Some(word) = words.find(|word| BANNED_WORDS.contains(word)) {
            breaches.push(Breach::new(&source.path, number + 1, format!("`{word}`")));
        }
    }
    for (at, token) in source.tokens.iter().enumerate() {
        for (code, reason) in BANNED_CODE {
            let rest = source.tokens[at..].iter().map(|t| t.text.as_str());
            if rest.take(code.len()).eq(code.iter().copied()) {
                let what = format!("`{}`: {reason}", code.concat());
                breaches.push(Breach::new(&source.path, token.line, what));
            }
        }
    }
    breaches
}

#[test]
fn tidy_files_are_at_most_400_lines() {
    let breaches: Vec<Breach> = rust_sources(FOLDERS).iter().filter_map(too_long).collect();
    assert_none(&breaches);
}

#[test]
fn tidy_every_file_says_what_it_owns() {
    let breaches: Vec<Breach> = rust_sources(FOLDERS)
        .iter()
        .filter_map(no_module_doc)
        .collect();
    assert_none(&breaches);
}

#[test]
fn tidy_nothing_is_unfinished_or_switched_off() {
    let breaches: Vec<Breach> = rust_sources(FOLDERS).iter().flat_map(unfinished).collect();
    assert_none(&breaches);
}

#[test]
fn tidy_a_long_file_is_found() {
    let of = |lines: usize| too_long(&Source::new("src/a.rs", &"//!\n".repeat(lines)));
    assert!(of(LINES_MAX).is_none());
    assert!(of(LINES_MAX + 1).is_some());
}

#[test]
fn tidy_a_file_without_a_module_doc_is_found() {
    assert!(no_module_doc(&Source::new("src/a.rs", "//! Owns a.\n")).is_none());
    assert!(no_module_doc(&Source::new("src/a.rs", "use std::fs;\n")).is_some());
    assert!(no_module_doc(&Source::new("src/a.rs", "")).is_some());
}

#[test]
fn tidy_unfinished_work_is_found() {
    let count = |text: &str| unfinished(&Source::new("src/a.rs", text)).len();
    assert_eq!(count("fn f() { todo!() }"), 1);
    assert_eq!(count("fn f() { unimplemented!(\"later\") }"), 1);
    assert_eq!(count("#[ignore = \"slow\"] #[test] fn f() {}"), 1);
    assert_eq!(count("#[allow(dead_code)] fn f() {}"), 1);
    assert_eq!(count("#![allow(dead_code)]"), 1);
    assert_eq!(count(concat!("// FIX", "ME: later")), 1);
    assert_eq!(count("let todo = \"todo!\"; // #[allow(x)] is banned"), 0);
}
