//! The repository's own rules as tests: layers, file length, banned words, promised test names.
//!
//! Each check is a function over text that is also given a small input it must refuse.

mod files;
mod layers;
mod numbers;
mod source;

use crate::common::repository;
use source::Source;
use std::fs;
use std::path::Path;

/// A rule that a file breaks: path, line (from 1; 0 for the whole file) and what is wrong.
#[derive(Debug, PartialEq)]
struct Breach {
    path: String,
    line: usize,
    what: String,
}

impl Breach {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

/// Fails with one line per breach.
#[track_caller]
fn assert_none(breaches: &[Breach]) {
    let list: Vec<String> = breaches
        .iter()
        .map(|b| format!("{}:{}: {}", b.path, b.line, b.what))
        .collect();
    assert!(
        list.is_empty(),
        "{} breach(es):\n{}",
        list.len(),
        list.join("\n")
    );
}

/// The Rust files below the given folders of the repository, sorted by path.
fn rust_sources(folders: &[&str]) -> Vec<Source> {
    let mut sources = Vec::new();
    for folder in folders {
        collect(&repository().join(folder), folder, &mut sources);
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!sources.is_empty(), "no sources below {folders:?}");
    sources
}

fn collect(folder: &Path, relative: &str, sources: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{relative}/{name}");
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &path, sources);
        } else if name.ends_with(".rs") {
            sources.push(Source::new(
                &path,
                &fs::read_to_string(entry.path()).unwrap(),
            ));
        }
    }
}
