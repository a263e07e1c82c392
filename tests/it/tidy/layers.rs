//! Which top-level module may use which, and which module may name a system-call crate.

use super::source::Source;
use super::{Breach, assert_none, rust_sources};
use std::collections::{BTreeMap, BTreeSet};

/// Every layer and what it may use besides `types` and itself (docs/architecture.md).
const LAYERS: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("config", &[]),
    ("stream", &[]),
    ("api", &[]),
    ("fsx", &[]),
    ("proc", &[]),
    ("ledger", &["fsx"]),
    ("lease", &["fsx"]),
    ("budget", &["fsx"]),
    ("git", &["proc"]),
    ("runner", &["fsx", "proc", "budget", "lease"]),
    ("gate", &["config", "budget", "lease"]),
    ("agent", &["config", "proc", "stream"]),
    ("assist", &["gate", "stream", "config"]),
    (
        "engine",
        &[
            "config", "ledger", "lease", "budget", "git", "agent", "gate", "proc",
        ],
    ),
    (
        "daemon",
        &[
            "api", "client", "engine", "ledger", "lease", "budget", "git", "agent", "gate",
            "runner", "config", "fsx", "proc", "stream", "assist",
        ],
    ),
    ("client", &["api"]),
    (
        "cli",
        &[
            "api", "client", "daemon", "engine", "ledger", "lease", "budget", "git", "agent",
            "gate", "runner", "config", "fsx", "proc", "stream", "assist",
        ],
    ),
];

/// The crates of system calls and the only layers that may name them.
const SYSTEM_CRATES: &[&str] = &["nix", "rustix", "fs2", "tempfile", "libc"];
const SYSTEM_LAYERS: &[&str] = &["fsx", "proc"];

/// An arrow from one top-level module to another, with the line that draws it.
#[derive(Debug, PartialEq)]
struct Arrow {
    to: String,
    line: usize,
    in_tests: bool,
}

/// What a file uses of its crate: `crate::x`, `crate::{x, y::z}`, and `super::…::x` up to the root.
fn arrows(source: &Source) -> Vec<Arrow> {
    let text = |at: usize| source.tokens.get(at).map_or("", |t| t.text.as_str());
    let is_path = |at: usize| text(at) == ":" && text(at + 1) == ":";
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = source.tokens.get(at) {
        let mut end = at + 1;
        let reaches_root = match token.text.as_str() {
            // `pub(crate)` and `$crate` are no paths of ours.
            "crate" => is_path(end) && text(at.wrapping_sub(1)) != "$",
            "super" => {
                let mut ups = 1;
                while is_path(end) && text(end + 2) == "super" {
                    ups += 1;
                    end += 3;
                }
                ups == token.depth && is_path(end)
            }
            _ => false,
        };
        if reaches_root {
            found.extend(heads(source, end + 2));
        }
        at = end;
    }
    found
}

/// The first names of a use tree that starts at `at`.
fn heads(source: &Source, at: usize) -> Vec<Arrow> {
    let arrow = |i: usize| {
        let token = source.tokens.get(i)?;
        Some(Arrow {
            to: token.text.clone(),
            line: token.line,
            in_tests: token.in_tests,
        })
    };
    if source.tokens.get(at).is_none_or(|t| t.text != "{") {
        return arrow(at).into_iter().collect();
    }
    let mut found = Vec::new();
    let mut open = 0usize;
    for i in at..source.tokens.len() {
        match source.tokens[i].text.as_str() {
            "{" => open += 1,
            "}" => open -= 1,
            _ => {}
        }
        if open == 0 {
            break;
        }
        if open == 1 && matches!(source.tokens[i].text.as_str(), "{" | ",") {
            found.extend(arrow(i + 1).filter(|a| a.to != "}"));
        }
    }
    found
}

/// Arrows that the table does not have, and folders it does not know.
fn layer_breaches(sources: &[Source]) -> Vec<Breach> {
    let table: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    let mut breaches = Vec::new();
    for source in sources {
        let Some(from) = source.layer() else { continue };
        let Some(allowed) = table.get(from) else {
            breaches.push(Breach::new(
                &source.path,
                0,
                format!("layer `{from}` is not in the table"),
            ));
            continue;
        };
        for arrow in arrows(source) {
            let to = arrow.to.as_str();
            // Tests of any layer may prepare files, and only fsx writes them.
            let prepares = arrow.in_tests && to == "fsx";
            if to != from && to != "types" && !allowed.contains(&to) && !prepares {
                breaches.push(Breach::new(
                    &source.path,
                    arrow.line,
                    format!("{from} → {to} is not allowed"),
                ));
            }
        }
    }
    breaches
}

/// One cycle among the given arrows, as the names along it.
fn cycle(arrows: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk(
        at: &str,
        arrows: &BTreeMap<String, BTreeSet<String>>,
        path: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|name| name == at) {
            return Some(path[start..].to_vec());
        }
        if done.contains(at) {
            return None;
        }
        path.push(at.to_owned());
        for to in arrows.get(at).into_iter().flatten() {
            if let Some(found) = walk(to, arrows, path, done) {
                return Some(found);
            }
        }
        path.pop();
        done.insert(at.to_owned());
        None
    }
    let mut done = BTreeSet::new();
    arrows
        .keys()
        .find_map(|from| walk(from, arrows, &mut Vec::new(), &mut done))
}

/// System-call crates named outside their layers. Tests may make temporary folders.
fn system_breaches(sources: &[Source]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for source in sources {
        if source
            .layer()
            .is_some_and(|layer| SYSTEM_LAYERS.contains(&layer))
        {
            continue;
        }
        for (at, token) in source.tokens.iter().enumerate() {
            let text = |i: usize| source.tokens.get(i).map_or("", |t| t.text.as_str());
            let names_crate = SYSTEM_CRATES.contains(&token.text.as_str())
                && !matches!(text(at.wrapping_sub(1)), ":" | "." | "fn" | "let")
                && (text(at + 1) == ":" && text(at + 2) == ":"
                    || matches!(text(at.wrapping_sub(1)), "use" | "crate"));
            let is_test_folder = token.in_tests && token.text == "tempfile";
            if names_crate && !is_test_folder {
                let what = format!("only fsx and proc may name `{}`", token.text);
                breaches.push(Breach::new(&source.path, token.line, what));
            }
        }
    }
    breaches
}

#[test]
fn tidy_layers_have_only_the_arrows_of_the_table() {
    let sources = rust_sources(&["src"]);
    assert_none(&layer_breaches(&sources));
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in &sources {
        if let Some(from) = source.layer() {
            let to = arrows(source)
                .into_iter()
                .filter(|a| !a.in_tests)
                .map(|a| a.to)
                .filter(|to| to != from);
            graph.entry(from.to_owned()).or_default().extend(to);
        }
    }
    assert_eq!(cycle(&graph), None);
}

#[test]
fn tidy_the_table_of_layers_has_no_cycle() {
    let table = LAYERS
        .iter()
        .map(|(from, to)| {
            (
                (*from).to_owned(),
                to.iter().map(|&t| t.to_owned()).collect(),
            )
        })
        .collect();
    assert_eq!(cycle(&table), None);
}

#[test]
fn tidy_only_fsx_and_proc_name_system_call_crates() {
    assert_none(&system_breaches(&rust_sources(&["src"])));
}

#[test]
fn tidy_a_forbidden_arrow_is_found() {
    let check = |path: &str, text: &str| {
        let found = layer_breaches(&[Source::new(path, text)]);
        found.into_iter().map(|b| b.what).collect::<Vec<_>>()
    };
    assert_eq!(
        check(
            "src/ledger/a.rs",
            "use crate::fsx::read; use crate::types::TaskId;"
        ),
        [""; 0]
    );
    assert_eq!(
        check("src/ledger/a.rs", "use crate::engine::Core;"),
        ["ledger → engine is not allowed"]
    );
    assert_eq!(
        check("src/ledger/a.rs", "fn f() { crate::git::x(); }"),
        ["ledger → git is not allowed"]
    );
    assert_eq!(
        check(
            "src/ledger/a.rs",
            "use crate::{fsx::{self, lock}, proc, types::{A, B}, git::C};"
        ),
        [
            "ledger → proc is not allowed",
            "ledger → git is not allowed"
        ]
    );
    assert_eq!(
        check("src/ledger/a.rs", "use super::super::git::x;"),
        ["ledger → git is not allowed"]
    );
    assert_eq!(
        check("src/ledger/a.rs", "mod tests { use super::super::git; }"),
        [""; 0]
    );
    assert_eq!(
        check("src/git/tests.rs", "use crate::fsx; use crate::lease;"),
        ["git → lease is not allowed"]
    );
    assert_eq!(
        check("src/ledger/mod.rs", "use super::git::x;"),
        ["ledger → git is not allowed"]
    );
    assert_eq!(
        check(
            "src/ledger/a.rs",
            "// crate::git\nconst A: &str = \"crate::git\"; pub(crate) fn f() {}"
        ),
        [""; 0]
    );
    assert_eq!(
        check("src/misc.rs", ""),
        ["layer `misc` is not in the table"]
    );
}

#[test]
fn tidy_a_cycle_is_found() {
    let graph = [("a", "b"), ("b", "c"), ("c", "b")]
        .map(|(from, to)| (from.to_owned(), BTreeSet::from([to.to_owned()])))
        .into();
    assert_eq!(cycle(&graph), Some(vec!["b".to_owned(), "c".to_owned()]));
}

#[test]
fn tidy_a_system_call_crate_outside_its_layer_is_found() {
    let count = |path: &str, text: &str| system_breaches(&[Source::new(path, text)]).len();
    assert_eq!(count("src/main.rs", "use nix::unistd::Pid;"), 1);
    assert_eq!(count("src/cli/mod.rs", "fn f() { libc::getpid(); }"), 1);
    assert_eq!(count("src/engine/mod.rs", "use tempfile::tempdir;"), 1);
    assert_eq!(
        count(
            "src/engine/mod.rs",
            "mod tests { use tempfile::tempdir; use nix::libc; }"
        ),
        1
    );
    assert_eq!(count("src/fsx/mod.rs", "use nix::unistd::Pid;"), 0);
    assert_eq!(
        count("src/cli/mod.rs", "let nix = 1; self.libc(); // nix::unistd"),
        0
    );
}
