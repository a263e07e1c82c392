//! `add`: writes task files; many at once are all or none.

use super::context::Context;
use super::disk;
use super::failure::{Failure, Outcome};
use super::output;
use super::progress::{Progress, ids_in_view};
use crate::config::{Config, TaskDraft, TaskSpec, parse_task, render_task, task_files};
use crate::fsx;
use crate::fsx::lock::Lock;
use crate::types::TaskId;
use clap::Args;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::Path;

/// Numbers without a task that are looked at before the rest is taken as free.
const NUMBER_GAP_MAX: u32 = 10_000;

#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// One line for people
    #[arg(required_unless_present = "from")]
    title: Option<String>,
    /// A path, folder or glob that the task may touch; none: the whole repository
    #[arg(long = "claim", value_name = "PATH")]
    claims: Vec<String>,
    /// A task that must be completed first
    #[arg(long, value_name = "ID")]
    after: Vec<String>,
    /// Higher first
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    priority: i64,
    /// The prompt; `-` reads it from standard input
    #[arg(long, value_name = "TEXT|-")]
    body: Option<String>,
    /// Run only these stages
    #[arg(long = "stage", value_name = "NAME")]
    stages: Vec<String>,
    /// Use this agent instead of the roles' own
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Keep it back until its file says state = "ready"
    #[arg(long)]
    hold: bool,
    /// Read tasks from a file, one JSON object a line, all or none; `-` is standard input
    #[arg(
        long,
        value_name = "FILE.jsonl",
        conflicts_with_all = ["title", "claims", "after", "priority", "body", "stages", "agent", "hold"]
    )]
    from: Option<std::path::PathBuf>,
}

/// Adds tasks and prints their ids.
pub(super) fn add(context: &Context, args: &AddArgs) -> Outcome {
    let config = context.load()?.config;
    let drafts = match &args.from {
        Some(file) => drafts_of(file)?,
        None => vec![draft_of(args)?],
    };
    fsx::create_dir_all(&config.state_dir)?;
    // Two `add` at once must not choose the same id. Held for reads and writes of small files only.
    let lock = Lock::exclusive(&config.state_dir.join("add.lock"))?;
    let tasks = with_ids(context, &config, &lock, drafts)?;
    let files: Vec<(String, String)> = tasks
        .iter()
        .map(|(spec, text)| (format!("{}.md", spec.id), text.clone()))
        .collect();
    disk::write_batch(&config.task_dir, &files)?;
    drop(lock);
    super::queue::record_added(&config.state_dir, tasks.iter().map(|(spec, _)| spec));
    let ids: Vec<&str> = tasks.iter().map(|(spec, _)| spec.id.as_str()).collect();
    if context.json {
        output::json(&serde_json::json!({"added": ids}))?;
    } else {
        let mut out = output::stdout();
        for id in ids {
            writeln!(out, "{id}")?;
        }
        out.flush()?;
    }
    Ok(0)
}

fn draft_of(args: &AddArgs) -> Result<TaskDraft, Failure> {
    let body = match args.body.as_deref() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|e| {
                Failure::invalid(format!("cannot read the body from standard input: {e}"))
            })?;
            text
        }
        Some(text) => text.to_owned(),
        None => String::new(),
    };
    Ok(TaskDraft {
        id: None,
        title: args.title.clone().unwrap_or_default(),
        body,
        priority: args.priority,
        claims: args.claims.clone(),
        after: args.after.clone(),
        stages: args.stages.clone(),
        agent: args.agent.clone(),
        state: args.hold.then(|| "hold".to_owned()),
    })
}

fn drafts_of(file: &Path) -> Result<Vec<TaskDraft>, Failure> {
    let shown = file.display();
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    }
    .map_err(|e| Failure::invalid(format!("cannot read {shown}: {e}")))?;
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|e| {
                Failure::invalid(format!("{shown}:{}: {e}; no task was added", at + 1))
            })
        })
        .collect()
}

/// Gives every draft its id and checks that its file will read back.
fn with_ids(
    context: &Context,
    config: &Config,
    lock: &Lock,
    drafts: Vec<TaskDraft>,
) -> Result<Vec<(TaskSpec, String)>, Failure> {
    let mut taken = file_ids(config)?;
    let mut next = last_number(config, lock, &taken)?;
    let mut tasks = Vec::with_capacity(drafts.len());
    for (at, draft) in drafts.into_iter().enumerate() {
        let id = draft.id.clone().unwrap_or_else(|| {
            next += 1;
            format!("T-{next:04}")
        });
        let which = format!("task {}", at + 1);
        let invalid =
            |what: String| Failure::invalid(format!("{which}: {what}; no task was added"));
        if !taken.insert(id.clone()) {
            return Err(invalid(format!("there is already a task {id}")));
        }
        let file = config.task_dir.join(format!("{id}.md"));
        let text = render_task(&draft);
        let spec = parse_task(context.shown(&file), text.as_bytes()).map_err(|error| {
            let key = if error.key.is_empty() {
                String::new()
            } else {
                format!("{}: ", error.key)
            };
            invalid(format!("{key}{}", error.message))
        })?;
        if let Some(error) = crate::config::misfit(&spec, config, &config.task_dir) {
            return Err(invalid(format!("{}: {}", error.key, error.message)));
        }
        tasks.push((spec, text));
    }
    for (spec, _) in &tasks {
        for other in spec
            .after
            .iter()
            .filter(|other| !taken.contains(other.as_str()))
        {
            output::say(format!(
                "warning: {} comes after {other}, which is not there yet",
                spec.id
            ));
        }
    }
    lock.write_text(&format!("{next}\n"))?;
    Ok(tasks)
}

fn file_ids(config: &Config) -> Result<BTreeSet<String>, Failure> {
    let files = task_files(&config.task_dir)
        .map_err(|e| Failure::failed(format!("cannot list {}: {e}", config.task_dir.display())))?;
    Ok(files
        .iter()
        .filter_map(|file| file.file_stem()?.to_str().map(str::to_owned))
        .collect())
}

/// The highest number that a task has or had: the id of a task whose file is gone is not used again, the new
/// task would count as done. The lock's text remembers it, so that the ledger is replayed only once.
fn last_number(config: &Config, lock: &Lock, taken: &BTreeSet<String>) -> Result<u64, Failure> {
    let view = super::offline::read_view(&config.state_dir);
    let seen = view.as_ref().map(ids_in_view).unwrap_or_default();
    let numbers = taken.iter().chain(&seen).filter_map(|id| number_of(id));
    let mut last = numbers.max().unwrap_or(0);
    if let Ok(remembered) = lock.read_text()?.trim().parse::<u64>() {
        return Ok(last.max(remembered));
    }
    let progress = Progress::read(&config.state_dir, view.as_ref());
    // Numbers of tasks whose files are gone are close to each other: a gap this wide is the end.
    let mut unknown = 0;
    let mut number = last;
    while unknown < NUMBER_GAP_MAX {
        number += 1;
        let id = TaskId::new(&format!("T-{number:04}")).map_err(Failure::failed)?;
        if progress.knows(&id) {
            last = number;
            unknown = 0;
        } else {
            unknown += 1;
        }
    }
    Ok(last)
}

fn number_of(id: &str) -> Option<u64> {
    id.strip_prefix("T-")?.parse().ok()
}
