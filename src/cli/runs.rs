//! The folders under `runs/`, read back: which runs a task had and how they ended.

use crate::types::{RunId, TaskId};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// One run's folder.
#[derive(Debug)]
pub(super) struct RunRecord {
    pub(super) id: RunId,
    pub(super) folder: PathBuf,
    spec: Value,
    exit: Option<Value>,
}

impl RunRecord {
    /// Reads a run's folder; none when it is none.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let id = RunId::new(folder.file_name()?.to_str()?).ok()?;
        let spec = read_json(&folder.join("spec.json"))?;
        Some(Self {
            id,
            spec,
            exit: read_json(&folder.join("exit.json")),
            folder: folder.to_owned(),
        })
    }

    fn task(&self) -> Option<&str> {
        self.spec.get("task_id")?.as_str()
    }

    /// Whether its end is recorded.
    pub(super) fn is_over(folder: &Path) -> bool {
        folder.join("exit.json").exists()
    }

    /// A value of `spec.json`, `-` for none.
    pub(super) fn text(&self, key: &str) -> String {
        match self.spec.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "-".to_owned(),
            Some(other) => other.to_string(),
        }
    }

    fn outcome(&self) -> String {
        let outcome = self
            .exit
            .as_ref()
            .and_then(|exit| exit.get("outcome")?.as_str());
        outcome.unwrap_or("-").to_owned()
    }

    /// For the table of `show`.
    pub(super) fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.id.to_string()];
        cells.extend(["stage", "role", "worker", "attempt"].map(|key| self.text(key)));
        cells.push(self.outcome());
        cells
    }

    /// For `show --json`.
    pub(super) fn to_json(&self) -> Value {
        json!({"run_id": self.id, "folder": self.folder, "spec": self.spec, "exit": self.exit})
    }
}

/// A task's runs, oldest first. Run ids sort by time.
pub(super) fn of_task(state_dir: &Path, task: &TaskId) -> Vec<RunRecord> {
    let mut found: Vec<RunRecord> = newest_first(state_dir)
        .into_iter()
        .filter_map(|f| of(&f, task))
        .collect();
    found.reverse();
    found
}

/// A task's newest run. Reads no further back than that.
pub(super) fn newest_of_task(state_dir: &Path, task: &TaskId) -> Option<RunRecord> {
    newest_first(state_dir)
        .into_iter()
        .find_map(|folder| of(&folder, task))
}

fn of(folder: &Path, task: &TaskId) -> Option<RunRecord> {
    RunRecord::read(folder).filter(|run| run.task() == Some(task.as_str()))
}

fn newest_first(state_dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(state_dir.join("runs")) else {
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    folders.sort_unstable_by(|a, b| b.cmp(a));
    folders
}

fn read_json(file: &Path) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()
}
