//! Promised test names: what the decision records and the list of behaviours name must exist.

use super::{Breach, assert_none, rust_sources};
use crate::common::repository;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The behaviours are numbered from 1 to this.
const BEHAVIOUR_LAST: u32 = 101;

/// The reports of docs/faults.md are numbered from 1 to this.
const FAULT_LAST: u32 = 58;

fn test_names() -> BTreeSet<String> {
    let sources = rust_sources(&["src", "tests"]);
    sources.iter().flat_map(super::Source::test_names).collect()
}

/// Names in backticks on the `Must hold:` lines of a decision record that are no test.
fn broken_promises(path: &str, text: &str, tests: &BTreeSet<String>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut seen = false;
    for (number, line) in text.lines().enumerate() {
        let Some(rest) = line.strip_prefix("Must hold:") else {
            continue;
        };
        seen = true;
        let names: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            breaches.push(Breach::new(path, number + 1, "names no test in backticks"));
        }
        for name in names.into_iter().filter(|&name| !tests.contains(name)) {
            breaches.push(Breach::new(
                path,
                number + 1,
                format!("no test is called `{name}`"),
            ));
        }
    }
    if !seen {
        breaches.push(Breach::new(path, 0, "has no `Must hold:` line"));
    }
    breaches
}

/// The numbers that follow `prefix_` in names; one test may carry several (`fault_36_fault_37_…`).
fn numbers_of(prefix: &str, tests: &BTreeSet<String>) -> BTreeSet<u32> {
    tests
        .iter()
        .flat_map(|name| numbers_in(prefix, name))
        .collect()
}

fn numbers_in(prefix: &str, name: &str) -> Vec<u32> {
    let words: Vec<&str> = name.split('_').collect();
    let pairs = words.windows(3); // The word after the number makes it a name.
    pairs
        .filter(|three| three[0] == prefix)
        .filter_map(|three| three[1].parse().ok())
        .collect()
}

/// Lines `- NNN: reason` of a list.
fn reasons(text: &str) -> BTreeMap<u32, String> {
    let entry = |line: &str| {
        let (number, reason) = line.strip_prefix("- ")?.split_once(": ")?;
        Some((number.parse().ok()?, reason.trim().to_owned()))
    };
    text.lines().filter_map(entry).collect()
}

/// Numbers with neither a test nor a reason, and reasons that a test has overtaken.
fn number_breaches(
    path: &str,
    last: u32,
    tested: &BTreeSet<u32>,
    excused: &BTreeMap<u32, String>,
) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for number in 1..=last {
        let what = match (tested.contains(&number), excused.get(&number)) {
            (false, None) => format!("{number} has no test and no reason"),
            (true, Some(_)) => format!("{number} has a test: delete its line"),
            (false, Some(reason)) if reason.is_empty() => format!("{number} gives no reason"),
            _ => continue,
        };
        breaches.push(Breach::new(path, 0, what));
    }
    for number in excused
        .keys()
        .chain(tested)
        .filter(|&&n| n == 0 || n > last)
    {
        breaches.push(Breach::new(path, 0, format!("there is no number {number}")));
    }
    breaches
}

/// Rows `| NN | … |` of the table of faults whose test does not exist, and numbers without a row.
fn fault_breaches(path: &str, text: &str, tests: &BTreeSet<String>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut seen = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Some(fault) = cells.first().and_then(|cell| cell.parse::<u32>().ok()) else {
            continue;
        };
        seen.insert(fault);
        let names: Vec<&str> = cells
            .get(2)
            .unwrap_or(&"")
            .split('`')
            .skip(1)
            .step_by(2)
            .collect();
        if names.is_empty() && cells.get(3).is_none_or(|why| why.is_empty()) {
            breaches.push(Breach::new(
                path,
                number + 1,
                format!("{fault} has no test and no reason"),
            ));
        }
        for name in names {
            if !tests.contains(name) {
                breaches.push(Breach::new(
                    path,
                    number + 1,
                    format!("no test is called `{name}`"),
                ));
            }
        }
    }
    for fault in (1..=FAULT_LAST).filter(|n| !seen.contains(n)) {
        breaches.push(Breach::new(path, 0, format!("{fault} has no row")));
    }
    breaches
}

#[test]
fn tidy_decision_records_name_existing_tests() {
    let tests = test_names();
    let mut breaches = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(repository().join("docs/adr")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".md") && name.starts_with(|c: char| c.is_ascii_digit()) {
            count += 1;
            breaches.extend(broken_promises(
                &name,
                &fs::read_to_string(&path).unwrap(),
                &tests,
            ));
        }
    }
    assert!(count > 0, "no decision records");
    assert_none(&breaches);
}

#[test]
fn tidy_every_behaviour_has_a_test_or_a_reason() {
    let text = fs::read_to_string(repository().join("docs/behaviours.md")).unwrap();
    let tested = numbers_of("behaviour", &test_names());
    assert_none(&number_breaches(
        "docs/behaviours.md",
        BEHAVIOUR_LAST,
        &tested,
        &reasons(&text),
    ));
}

#[test]
fn tidy_every_fault_has_a_row_with_a_test_or_a_reason() {
    let tests = test_names();
    let text = fs::read_to_string(repository().join("docs/faults.md")).unwrap();
    let mut breaches = fault_breaches("docs/faults.md", &text, &tests);
    for name in tests
        .iter()
        .filter(|name| !numbers_in("fault", name).is_empty())
    {
        if !text.contains(&format!("`{name}`")) {
            breaches.push(Breach::new(
                "docs/faults.md",
                0,
                format!("does not list `{name}`"),
            ));
        }
    }
    assert_none(&breaches);
}

#[test]
fn tidy_a_record_that_names_no_test_is_found() {
    let tests = BTreeSet::from(["p1_holds".to_owned()]);
    let count = |text: &str| broken_promises("x", text, &tests).len();
    assert_eq!(count("Must hold: `p1_holds`.\n"), 0);
    assert_eq!(count("Must hold: `p1_holds`, `p2_holds`.\n"), 1);
    assert_eq!(count("Must hold: it should work.\n"), 1);
    assert_eq!(count("# A record\n"), 1);
}

#[test]
fn tidy_a_behaviour_without_test_or_reason_is_found() {
    let names = [
        "fault_9_behaviour_001_bytes",
        "behaviour_12",
        "my_behaviour_x_y",
    ];
    let tested = numbers_of("behaviour", &names.map(str::to_owned).into());
    assert_eq!(tested, BTreeSet::from([1]));
    let whats = |text: &str| {
        let found = number_breaches("x", 2, &tested, &reasons(text));
        found.into_iter().map(|b| b.what).collect::<Vec<_>>()
    };
    assert_eq!(whats("- 002: another way\n"), [""; 0]);
    assert_eq!(whats(""), ["2 has no test and no reason"]);
    assert_eq!(
        whats("- 001: why\n- 002: why\n"),
        ["1 has a test: delete its line"]
    );
    assert_eq!(whats("- 002: why\n- 003: why\n"), ["there is no number 3"]);
}

#[test]
fn tidy_a_fault_without_row_test_or_reason_is_found() {
    let tests = BTreeSet::from(["fault_01_x".to_owned()]);
    let rows: String = (2..=FAULT_LAST)
        .map(|n| format!("| {n} | r | | why |\n"))
        .collect();
    let count = |first: &str| fault_breaches("x", &format!("{first}\n{rows}"), &tests).len();
    assert_eq!(count("| 1 | r | `fault_01_x` | |"), 0);
    assert_eq!(count("| 1 | r | `fault_01_y` | |"), 1);
    assert_eq!(count("| 1 | r | | |"), 1);
    assert_eq!(count(""), 1);
}
