//! The layers laid over each other: one leaf per key, each with its place. Knows the table of keys,
//! not what a loop does with the values.

use super::keys::{self, AGENT, Key, NAMED, SECTIONS, STAGE};
use super::nearest::{nearest, unknown};
use super::place::{FileLayer, Place, Problem};
use super::tree::{self, Entry, Raw};
use super::value::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A checked value and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf {
    pub(super) value: Value,
    pub(super) place: Place,
}

/// One `[[stages]]` table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stage {
    pub(super) place: Place,
    pub(super) leaves: BTreeMap<&'static str, Leaf>,
}

/// All layers so far. Later calls beat earlier ones, so the lowest layer goes first.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// By dotted key: `loop.tasks`, `agents.claude.kind`.
    pub(super) leaves: BTreeMap<String, Leaf>,
    /// Where a named table was first written: `agents.claude`.
    pub(super) tables: BTreeMap<String, Place>,
    /// Of the highest file that has any: stages are an order, so files do not add to each other's.
    pub(super) stages: Vec<Stage>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl Merged {
    /// Nothing but the built-in values.
    pub(super) fn builtin() -> Self {
        let mut merged = Self::default();
        for section in SECTIONS {
            for key in section.keys {
                if let Some(value) = built_in(key) {
                    let dotted = keys::dotted(section.name, key.name);
                    merged.leaves.insert(
                        dotted,
                        Leaf {
                            value,
                            place: Place::Default,
                        },
                    );
                }
            }
        }
        merged
    }

    /// Lays a file's text over what is there; `shown` is the file's name in messages.
    pub(super) fn file(&mut self, layer: FileLayer, shown: &Path, text: &str) {
        let place = |line: u32| layer.place(shown, line);
        let entries = match tree::parse(text) {
            Ok(entries) => entries,
            Err((line, message)) => {
                self.problem(place(line), String::new(), message);
                return;
            }
        };
        for entry in &entries {
            self.top_entry(entry, &place);
        }
    }

    fn top_entry(&mut self, entry: &Entry, place: &dyn Fn(u32) -> Place) {
        let name = entry.key.as_str();
        if name == "stages" {
            self.stages_entry(entry, place);
        } else if let Some((_, keys)) = NAMED.iter().find(|(named, _)| *named == name) {
            let Some(tables) = self.table_of(entry, name, place) else {
                return;
            };
            for named in tables {
                let dotted = format!("{name}.{}", named.key);
                if !is_plain_name(&named.key) {
                    let message = "use letters, digits, '-' and '_' in a name".to_owned();
                    self.problem(place(named.line), dotted, message);
                    continue;
                }
                self.tables
                    .entry(dotted.clone())
                    .or_insert_with(|| place(named.line));
                let Some(found) = self.table_of(named, &dotted, place) else {
                    continue;
                };
                for leaf in found {
                    self.leaf(&dotted, keys, leaf, place);
                }
            }
        } else if let Some(section) = keys::section(name).filter(|_| !name.is_empty()) {
            let Some(found) = self.table_of(entry, name, place) else {
                return;
            };
            for leaf in found {
                self.leaf(name, section.keys, leaf, place);
            }
        } else {
            let top = keys::section("").map_or(&[][..], |section| section.keys);
            self.leaf("", top, entry, place);
        }
    }

    fn table_of<'e>(
        &mut self,
        entry: &'e Entry,
        dotted: &str,
        place: &dyn Fn(u32) -> Place,
    ) -> Option<&'e [Entry]> {
        if let Raw::Table(entries) = &entry.node.raw {
            return Some(entries);
        }
        let message = format!(
            "{} is not right here: write [{dotted}] and its keys below",
            entry.node.raw.describe()
        );
        self.problem(place(entry.line), dotted.to_owned(), message);
        None
    }

    fn leaf(
        &mut self,
        section: &str,
        keys: &'static [Key],
        entry: &Entry,
        place: &dyn Fn(u32) -> Place,
    ) {
        let dotted = keys::dotted(section, &entry.key);
        let at = place(entry.line);
        let Some(key) = keys::find(keys, &entry.key) else {
            self.problem(at, dotted, unknown_key(section, keys, &entry.key));
            return;
        };
        if let Some(value) = self.checked(key, &entry.node.raw, &at, &dotted) {
            self.leaves.insert(dotted, Leaf { value, place: at });
        }
    }

    fn checked(&mut self, key: &Key, raw: &Raw, at: &Place, dotted: &str) -> Option<Value> {
        match key.kind.check(raw) {
            Ok((value, adjusted)) => {
                if let Some(message) = adjusted {
                    self.warning(at.clone(), dotted.to_owned(), message);
                }
                Some(value)
            }
            Err(message) => {
                self.problem(at.clone(), dotted.to_owned(), message);
                None
            }
        }
    }

    fn stages_entry(&mut self, entry: &Entry, place: &dyn Fn(u32) -> Place) {
        let Raw::List(items) = &entry.node.raw else {
            let message = "write each stage as a [[stages]] table".to_owned();
            self.problem(place(entry.line), "stages".to_owned(), message);
            return;
        };
        let mut stages = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let dotted = format!("stages[{index}]");
            let Raw::Table(found) = &item.raw else {
                let message = "write each stage as a [[stages]] table".to_owned();
                self.problem(place(item.line), dotted, message);
                continue;
            };
            let mut leaves = BTreeMap::new();
            for entry in found {
                let at = place(entry.line);
                let full = format!("{dotted}.{}", entry.key);
                let Some(key) = keys::find(STAGE, &entry.key) else {
                    self.problem(at, full, unknown_key("stages", STAGE, &entry.key));
                    continue;
                };
                if let Some(value) = self.checked(key, &entry.node.raw, &at, &full) {
                    leaves.insert(key.name, Leaf { value, place: at });
                }
            }
            stages.push(Stage {
                place: place(item.line),
                leaves,
            });
        }
        self.stages = stages;
    }

    /// Lays one `KEY=VALUE` of the command line over what is there. The key is dotted.
    pub(super) fn flag(&mut self, flag: &str, dotted: &str, text: &str) {
        let at = Place::Flag(flag.to_owned());
        let Some(key) = self.key_of(dotted) else {
            self.problem(at, dotted.to_owned(), self.unknown_dotted(dotted));
            return;
        };
        match key.kind.check_text(text) {
            Ok((value, adjusted)) => {
                if let Some(message) = adjusted {
                    self.warning(at.clone(), dotted.to_owned(), message);
                }
                self.leaves
                    .insert(dotted.to_owned(), Leaf { value, place: at });
            }
            Err(message) => self.problem(at, dotted.to_owned(), message),
        }
    }

    /// The key behind a dotted name; of agents and roles only those that a file has.
    pub(super) fn key_of(&self, dotted: &str) -> Option<&'static Key> {
        let (table, name) = dotted.rsplit_once('.').unwrap_or(("", dotted));
        if let Some(section) = keys::section(table) {
            return keys::find(section.keys, name);
        }
        let (named, _) = table.split_once('.')?;
        let (_, keys) = NAMED.iter().find(|(of, _)| *of == named)?;
        self.tables.get(table)?;
        keys::find(keys, name)
    }

    fn unknown_dotted(&self, dotted: &str) -> String {
        let all: Vec<&str> = self.leaves.keys().map(String::as_str).collect();
        nearest(dotted, all).map_or_else(
            || "unknown key, `flockd config show` lists all".to_owned(),
            |near| format!("unknown key, did you mean {near:?}?"),
        )
    }

    pub(super) fn problem(&mut self, place: Place, key: String, message: String) {
        self.problems.push(Problem {
            place,
            key,
            message,
        });
    }

    pub(super) fn warning(&mut self, place: Place, key: String, message: String) {
        self.warnings.push(Problem {
            place,
            key,
            message,
        });
    }
}

/// A key's built-in value.
pub(super) fn built_in(key: &Key) -> Option<Value> {
    let document = format!("v = {}", key.default?);
    let entry = tree::parse(&document).ok()?.into_iter().next()?;
    key.kind.check(&entry.node.raw).ok().map(|(value, _)| value)
}

/// Names the nearest key of the section, or the section where the key is at home.
fn unknown_key(section: &str, keys: &'static [Key], name: &str) -> String {
    let mut known: Vec<&str> = keys.iter().map(|key| key.name).collect();
    if section.is_empty() {
        known.extend(SECTIONS.iter().map(|s| s.name).filter(|n| !n.is_empty()));
        known.extend(NAMED.iter().map(|(n, _)| *n));
        known.push("stages");
    }
    if nearest(name, known.iter().copied()).is_none()
        && let Some(home) = SECTIONS.iter().find(|s| keys::find(s.keys, name).is_some())
    {
        let place = if home.name.is_empty() {
            "at the top of the file, before the first [section]".to_owned()
        } else {
            format!("below [{}]", home.name)
        };
        return format!("unknown key {name:?}, it belongs {place}");
    }
    unknown("key", name, &known)
}

/// Agents and roles become parts of variable and folder names.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// The built-in argv prefix of an agent kind; none for `command`.
pub(super) fn built_in_command(kind: &str) -> Option<&'static str> {
    match kind {
        "cursor" => Some("cursor-agent"),
        "assist" => Some("flockd"),
        "command" => None,
        other => keys::find(AGENT, "kind").and_then(|key| match key.kind {
            super::value::Kind::Word(words) => words.iter().find(|w| **w == other).copied(),
            _ => None,
        }),
    }
}
