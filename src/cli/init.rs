//! `init`: makes a repository a project. Keeps whatever is there.

use super::context::Context;
use super::disk;
use super::failure::{Failure, Outcome};
use super::output::{line, say};
use crate::config::{ignore_rules, init_files, installed_agents};
use clap::Args;
use std::path::Path;

#[derive(Debug, Args)]
pub(super) struct InitArgs {}

/// Writes the files of a new project that are not there yet.
pub(super) fn init(context: &Context, _args: &InitArgs) -> Outcome {
    if !context.root.join(".git").exists() {
        let root = context.root.display();
        return Err(Failure::invalid(format!(
            "{root} is not a git repository: run `git init` first"
        )));
    }
    let agents = installed_agents(&std::env::var_os("PATH").unwrap_or_default());
    let has_tasks = context.root.join("tasks").is_dir();
    let has_project = context.root.join(crate::config::PROJECT_FILE).exists();
    let mut written = Vec::new();
    let mut kept = Vec::new();
    for file in init_files(&agents) {
        let target = context.root.join(&file.path);
        // The example task and the example script belong to a project that begins.
        let unwanted =
            (file.path.starts_with("tasks") && has_tasks) || (file.executable && has_project);
        if unwanted || target.exists() {
            if target.exists() {
                kept.push(file.path);
            }
            continue;
        }
        disk::write_project_file(&target, &file.text, file.executable)?;
        written.push(file.path);
    }
    let ignore = context.root.join(".gitignore");
    let existing = disk::read_text(&ignore)?;
    match ignore_rules(existing.as_deref()) {
        Some(text) => {
            disk::replace_project_file(&ignore, &text)?;
            written.push(".gitignore".into());
        }
        None => kept.push(".gitignore".into()),
    }
    report(
        context,
        &written,
        &kept,
        &agents.iter().map(|a| a.program).collect::<Vec<_>>(),
    )
}

fn report(
    context: &Context,
    written: &[std::path::PathBuf],
    kept: &[std::path::PathBuf],
    agents: &[&str],
) -> Outcome {
    if context.json {
        let value = serde_json::json!({"written": written, "kept": kept, "agents": agents});
        super::output::json(&value)?;
        return Ok(0);
    }
    for path in written {
        line(&format!("wrote {}", path.display()))?;
    }
    for path in kept {
        line(&format!("kept {}", path.display()))?;
    }
    if written.iter().any(|path| path == Path::new("flockd.toml")) {
        match agents.first() {
            Some(first) => say(format!(
                "role writer uses {first}; found {}",
                agents.join(", ")
            )),
            None => say("found no agent CLI on PATH: role writer uses an example script"),
        }
        say(
            "next: commit these files, add a task with `flockd add \"TITLE\"`, then `flockd start`",
        );
    }
    Ok(0)
}
