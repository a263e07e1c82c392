//! One task file (config §2): a TOML header between `+++` lines, the prompt body below. Knows nothing
//! of the queue.

use super::keys::{self, Key};
use super::merge::built_in;
use super::model::{TaskSpec, TaskState};
use super::nearest::unknown;
use super::tree;
use super::value::Kind::{self, List, Text, Word};
use super::value::Value;
use crate::types::{ClaimSet, TaskId};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The line that opens and closes a header.
const FENCE: &str = "+++";

/// The largest task file: a prompt of a book's length fits, a log that lost its way does not.
pub const TASK_FILE_BYTES_MAX: u64 = 4 << 20;

/// Keys of a task file's header.
const TASK: &[Key] = &[
    keys::open("title", Text, "one line for people"),
    keys::key(
        "priority",
        Kind::Integer,
        "0",
        "higher first, then lowest id",
    ),
    keys::key(
        "claims",
        List,
        "[]",
        "paths or globs; none: the whole repository",
    ),
    keys::key(
        "after",
        List,
        "[]",
        "ids of tasks that must be completed first",
    ),
    keys::open("stages", List, "a subset of the configured stages"),
    keys::open("agent", Text, "instead of the roles' own"),
    keys::key(
        "state",
        Word(&["ready", "hold"]),
        r#""ready""#,
        "may it be claimed",
    ),
];

/// What is wrong with a task file: `tasks/T-0001.md:3: priority: …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFileError {
    /// As the caller named it.
    pub file: PathBuf,
    /// From 1; 0 when it is about the file as a whole.
    pub line: u32,
    /// The key; empty when it is about none.
    pub key: String,
    /// Lower-case; says what to write instead.
    pub message: String,
}

impl fmt::Display for TaskFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for TaskFileError {}

/// Reads a task file from disk; its id is its stem.
///
/// # Errors
/// [`TaskFileError`], with line 0 when the file cannot be read at all.
pub fn read_task(file: &Path) -> Result<TaskSpec, TaskFileError> {
    let whole = |message: String| fault(file, 0, "", message);
    let size = std::fs::metadata(file).map_err(|e| whole(format!("cannot read it: {e}")))?;
    if !size.is_file() {
        return Err(whole("not a regular file".to_owned()));
    }
    if size.len() > TASK_FILE_BYTES_MAX {
        let (len, max) = (size.len(), TASK_FILE_BYTES_MAX);
        return Err(whole(format!(
            "{len} bytes long, at most {max} are allowed: put long texts into files of their own"
        )));
    }
    let bytes = std::fs::read(file).map_err(|e| whole(format!("cannot read it: {e}")))?;
    parse_task(file, &bytes)
}

/// Parses a task file's bytes; `file` gives the id and the name in errors, and is not opened.
///
/// # Errors
/// [`TaskFileError`] with the first problem: the id, the fences, the TOML, a key, a value.
pub fn parse_task(file: &Path, bytes: &[u8]) -> Result<TaskSpec, TaskFileError> {
    let stem = file
        .file_stem()
        .and_then(|s| s.to_str())
        .unwrap_or_default();
    let id = TaskId::new(stem)
        .map_err(|e| fault(file, 0, "", format!("the file's name is no task id: {e}")))?;
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        fault(
            file,
            line_after(valid),
            "",
            "not UTF-8: save it as UTF-8".to_owned(),
        )
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (header, body) = split(text).map_err(|(line, m)| fault(file, line, "", m))?;
    let header = Header::read(file, header)?;
    header.spec(file, id, body)
}

fn fault(file: &Path, line: u32, key: &str, message: String) -> TaskFileError {
    TaskFileError {
        file: file.to_owned(),
        line,
        key: key.to_owned(),
        message,
    }
}

fn line_after(before: &[u8]) -> u32 {
    let newlines = before.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(newlines)
        .unwrap_or(u32::MAX)
        .saturating_add(1)
}

/// Header and body; the header starts on line 2.
fn split(text: &str) -> Result<(&str, &str), (u32, String)> {
    let is_fence = |line: &str| line.trim_end() == FENCE;
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_fence(first) {
        return Err((
            1,
            format!("a task file starts with a line {FENCE}, its header and a line {FENCE}"),
        ));
    }
    let start = first.len();
    let mut at = start;
    for line in lines {
        let next = at + line.len();
        if is_fence(line) {
            let header = text.get(start..at).unwrap_or_default();
            return Ok((header, text.get(next..).unwrap_or_default()));
        }
        at = next;
    }
    Err((
        1,
        format!("the header has no end: add a line {FENCE} before the body"),
    ))
}

/// Checked values with their lines.
struct Header(BTreeMap<&'static str, (Value, u32)>);

impl Header {
    fn read(file: &Path, text: &str) -> Result<Self, TaskFileError> {
        // The opening fence is line 1 of the file, so the header's line n is the file's n + 1.
        let entries = tree::parse(text)
            .map_err(|(line, message)| fault(file, line.saturating_add(1), "", message))?;
        let mut values = BTreeMap::new();
        for entry in entries {
            let line = entry.line.saturating_add(1);
            let Some(key) = keys::find(TASK, &entry.key) else {
                let known: Vec<&str> = TASK.iter().map(|key| key.name).collect();
                return Err(fault(
                    file,
                    line,
                    &entry.key,
                    unknown("key", &entry.key, &known),
                ));
            };
            let (value, _) = key
                .kind
                .check(&entry.node.raw)
                .map_err(|m| fault(file, line, key.name, m))?;
            values.insert(key.name, (value, line));
        }
        Ok(Self(values))
    }

    fn get(&self, name: &str) -> Option<Value> {
        match self.0.get(name) {
            Some((value, _)) => Some(value.clone()),
            None => keys::find(TASK, name).and_then(|key: &Key| built_in(key)),
        }
    }

    fn line(&self, name: &str) -> u32 {
        self.0.get(name).map_or(1, |(_, line)| *line)
    }

    fn texts(&self, name: &str) -> Option<Vec<String>> {
        match self.get(name) {
            Some(Value::List(items)) => Some(items),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn spec(&self, file: &Path, id: TaskId, body: &str) -> Result<TaskSpec, TaskFileError> {
        let at = |name: &str, message: String| fault(file, self.line(name), name, message);
        let title = self.text("title").unwrap_or_default().trim().to_owned();
        if title.is_empty() {
            return Err(at(
                "title",
                "missing: add a line title = \"...\" to the header".to_owned(),
            ));
        }
        if title.contains('\n') {
            return Err(at(
                "title",
                "has more than one line: put the rest into the body".to_owned(),
            ));
        }
        let mut after = Vec::new();
        for name in self.texts("after").unwrap_or_default() {
            let other = TaskId::new(&name).map_err(|e| at("after", e.to_string()))?;
            if other == id {
                return Err(at("after", "a task cannot come after itself".to_owned()));
            }
            after.push(other);
        }
        let claims = self.texts("claims").unwrap_or_default();
        let stages = self.texts("stages");
        if stages.as_ref().is_some_and(Vec::is_empty) {
            return Err(at(
                "stages",
                "names no stage: remove the line to run all".to_owned(),
            ));
        }
        let agent = self.text("agent");
        if agent.as_ref().is_some_and(String::is_empty) {
            return Err(at(
                "agent",
                "is empty: remove the line to use the roles' own".to_owned(),
            ));
        }
        Ok(TaskSpec {
            id,
            title,
            body: body.to_owned(),
            priority: match self.get("priority") {
                Some(Value::Integer(n)) => n,
                _ => 0,
            },
            claims: claim_set(&claims).map_err(|message| at("claims", message))?,
            after,
            stages,
            agent,
            state: match self.text("state").as_deref() {
                Some("hold") => TaskState::Hold,
                _ => TaskState::Ready,
            },
        })
    }
}

/// The claims of a header; none claim the whole repository.
fn claim_set(claims: &[String]) -> Result<ClaimSet, String> {
    if claims.is_empty() {
        return Ok(ClaimSet::whole());
    }
    ClaimSet::parse(claims).map_err(|error| error.to_string())
}

/// A task file's text; what `flockd add` writes. Parses back to the same task.
#[must_use]
pub fn render_task(draft: &TaskDraft) -> String {
    let quote = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let list = |items: &[String]| {
        let quoted: Vec<String> = items.iter().map(|item| quote(item)).collect();
        format!("[{}]", quoted.join(", "))
    };
    let mut text = format!("{FENCE}\ntitle = {}\n", quote(&draft.title));
    if draft.priority != 0 {
        text.push_str(&format!("priority = {}\n", draft.priority));
    }
    for (name, items) in [
        ("claims", &draft.claims),
        ("after", &draft.after),
        ("stages", &draft.stages),
    ] {
        if !items.is_empty() {
            text.push_str(&format!("{name} = {}\n", list(items)));
        }
    }
    for (name, value) in [("agent", &draft.agent), ("state", &draft.state)] {
        if let Some(value) = value {
            text.push_str(&format!("{name} = {}\n", quote(value)));
        }
    }
    text.push_str(FENCE);
    text.push('\n');
    text.push_str(&draft.body);
    if !draft.body.is_empty() && !draft.body.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// What a new task file says; also one line of `add --from FILE.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskDraft {
    /// Its id; none: the next free `T-NNNN`.
    pub id: Option<String>,
    /// One line for people.
    pub title: String,
    /// The prompt body.
    pub body: String,
    /// Higher first.
    pub priority: i64,
    /// Paths or globs.
    pub claims: Vec<String>,
    /// Ids.
    pub after: Vec<String>,
    /// A subset of the configured stages; empty: all.
    pub stages: Vec<String>,
    /// Instead of the roles' own.
    pub agent: Option<String>,
    /// `ready` or `hold`.
    pub state: Option<String>,
}
