//! All task files of a folder: the good ones in order, the malformed ones with their reasons, and what
//! does not fit together. One bad file never hides the others.

use super::model::{Config, TaskSpec};
use super::nearest::unknown;
use super::task_file::{TaskFileError, read_task};
use crate::types::TaskId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Below this a thread costs more than it saves.
const FILES_PER_READER_MIN: usize = 512;
/// More readers than this do not help a disk.
const READERS_MAX: usize = 8;

/// What a task folder holds.
#[derive(Debug, Clone, Default)]
pub struct TaskDir {
    /// Higher priority first, then lowest id: the order in which tasks are tried.
    pub tasks: Vec<TaskSpec>,
    /// By file name.
    pub malformed: Vec<TaskFileError>,
    /// `after` on an id that no file has: (task, unknown id). Not an error: it may come later.
    pub unknown_after: Vec<(TaskId, TaskId)>,
    /// Tasks that wait for each other, each cycle once, from its lowest id.
    pub cycles: Vec<Vec<TaskId>>,
}

/// Reads every `*.md` file of the folder. A missing folder is an empty one.
///
/// Dot files and everything that does not end in `.md` are ignored.
///
/// # Errors
/// The folder is there and cannot be listed.
pub fn scan_tasks(folder: &Path) -> std::io::Result<TaskDir> {
    let mut found = TaskDir::default();
    for read in read_all(&task_files(folder)?) {
        match read {
            Ok(task) => found.tasks.push(task),
            Err(error) => found.malformed.push(error),
        }
    }
    found
        .tasks
        .sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.id.cmp(&b.id)));
    let after: BTreeMap<&TaskId, &[TaskId]> = found
        .tasks
        .iter()
        .map(|task| (&task.id, task.after.as_slice()))
        .collect();
    found.unknown_after = after
        .iter()
        .flat_map(|(id, after)| after.iter().map(move |other| (*id, other)))
        .filter(|(_, other)| !after.contains_key(other))
        .map(|(id, other)| (id.clone(), other.clone()))
        .collect();
    found.cycles = cycles(&after);
    Ok(found)
}

/// Reads the files in their order, large folders with a few threads: opening a file costs more than parsing
/// it, and neither needs the others.
fn read_all(files: &[PathBuf]) -> Vec<Result<TaskSpec, TaskFileError>> {
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(READERS_MAX);
    if files.len() < FILES_PER_READER_MIN || threads == 1 {
        return files.iter().map(|file| read_task(file)).collect();
    }
    let share = files.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let readers: Vec<_> = files
            .chunks(share)
            .map(|part| {
                scope.spawn(move || part.iter().map(|file| read_task(file)).collect::<Vec<_>>())
            })
            .collect();
        let join = |reader: std::thread::ScopedJoinHandle<'_, _>| match reader.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        readers.into_iter().flat_map(join).collect()
    })
}

/// The task files of a folder, sorted by name. A missing folder has none.
///
/// # Errors
/// The folder is there and cannot be listed.
pub fn task_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        if is_task_file(&name) {
            files.push(folder.join(name));
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a file of this name in the task folder is a task: `*.md`, no dot file.
#[must_use]
pub fn is_task_file(name: &std::ffi::OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    bytes.ends_with(b".md") && !bytes.starts_with(b".")
}

impl TaskDir {
    /// What a task asks for that the configuration lacks: an unknown stage or agent.
    #[must_use]
    pub fn misfits(&self, config: &Config, folder: &Path) -> Vec<TaskFileError> {
        self.tasks
            .iter()
            .filter_map(|task| misfit(task, config, folder))
            .collect()
    }
}

/// A task's first unknown stage or agent.
#[must_use]
pub fn misfit(task: &TaskSpec, config: &Config, folder: &Path) -> Option<TaskFileError> {
    let wrong = |key: &str, message: String| TaskFileError {
        file: folder.join(format!("{}.md", task.id)),
        line: 0,
        key: key.to_owned(),
        message,
    };
    let stages: Vec<&str> = config
        .stages
        .iter()
        .map(|stage| stage.name.as_str())
        .collect();
    if let Some(stage) = task
        .stages
        .iter()
        .flatten()
        .find(|s| !stages.contains(&s.as_str()))
    {
        return Some(wrong("stages", unknown("stage", stage, &stages)));
    }
    let agents: Vec<&str> = config.agents.keys().map(String::as_str).collect();
    let agent = task
        .agent
        .as_ref()
        .filter(|a| !config.agents.contains_key(*a))?;
    Some(wrong("agent", unknown("agent", agent, &agents)))
}

/// Cycles of `after`, found without recursion: a chain of 100,000 tasks must not end the stack.
fn cycles(after: &BTreeMap<&TaskId, &[TaskId]>) -> Vec<Vec<TaskId>> {
    let mut found = Vec::new();
    let mut done: BTreeSet<&TaskId> = BTreeSet::new();
    for start in after.keys() {
        if done.contains(start) {
            continue;
        }
        let mut path: Vec<(&TaskId, usize)> = vec![(start, 0)];
        let mut on_path: BTreeSet<&TaskId> = BTreeSet::from([*start]);
        while let Some((id, next)) = path.last_mut() {
            let id = *id;
            let follower = after.get(id).and_then(|list| list.get(*next));
            *next += 1;
            match follower {
                None => {
                    path.pop();
                    on_path.remove(id);
                    done.insert(id);
                }
                Some(other) if on_path.contains(other) => {
                    let from = path.iter().position(|(id, _)| *id == other).unwrap_or(0);
                    let ring: Vec<TaskId> = path
                        .iter()
                        .skip(from)
                        .map(|(id, _)| (*id).clone())
                        .collect();
                    found.push(from_lowest(ring));
                }
                Some(other) if !done.contains(other) && after.contains_key(other) => {
                    path.push((other, 0));
                    on_path.insert(other);
                }
                Some(_) => {}
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn from_lowest(mut ring: Vec<TaskId>) -> Vec<TaskId> {
    let lowest = ring
        .iter()
        .enumerate()
        .min_by_key(|(_, id)| *id)
        .map_or(0, |(at, _)| at);
    ring.rotate_left(lowest);
    ring
}
