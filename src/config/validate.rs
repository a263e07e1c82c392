//! Checks across values: what is named must exist, what is counted must fit.

use super::merge::Merged;
use super::model::{Config, Require, StageConfig, StoreKind};
use super::nearest::unknown;
use super::place::{Place, Problem};

/// Adds a problem for everything in `config` that does not fit together.
pub(super) fn check(merged: &mut Merged, config: &Config) {
    let mut problems = Vec::new();
    roles(merged, config, &mut problems);
    stages(merged, config, &mut problems);
    texts(merged, config, &mut problems);
    merged.problems.append(&mut problems);
    slots_over_ceiling(merged, config);
    secret_in_committed_file(merged);
}

/// Not an error: M is often lowered for one run.
fn slots_over_ceiling(merged: &mut Merged, config: &Config) {
    let ceiling = config.loop_.global_concurrency;
    for (name, role) in config.roles.iter().filter(|(_, role)| role.slots > ceiling) {
        let key = format!("roles.{name}.slots");
        let place = place(merged, &key);
        let message = format!(
            "{} slots do not fit under the ceiling: it takes all {ceiling}",
            role.slots
        );
        merged.warning(place, key, message);
    }
}

fn empty(merged: &Merged, dotted: &str) -> bool {
    merged
        .leaves
        .get(dotted)
        .is_some_and(|leaf| match &leaf.value {
            super::value::Value::Text(text) => text.trim().is_empty(),
            _ => false,
        })
}

fn roles(merged: &Merged, config: &Config, problems: &mut Vec<Problem>) {
    let agents: Vec<&str> = config.agents.keys().map(String::as_str).collect();
    for (name, role) in &config.roles {
        let key = format!("roles.{name}.agent");
        if !role.agent.is_empty() && !config.agents.contains_key(&role.agent) {
            problems.push(Problem {
                place: place(merged, &key),
                key,
                message: unknown("agent", &role.agent, &agents),
            });
        }
    }
}

fn stages(merged: &Merged, config: &Config, problems: &mut Vec<Problem>) {
    for (index, stage) in config.stages.iter().enumerate() {
        let mut add = |name: &str, message: String| {
            let found = merged.stages.get(index);
            let place = found
                .and_then(|s| s.leaves.get(name).map(|leaf| leaf.place.clone()))
                .or_else(|| found.map(|s| s.place.clone()))
                .unwrap_or(Place::Default);
            let key = if name.is_empty() {
                format!("stages[{index}]")
            } else {
                format!("stages[{index}].{name}")
            };
            problems.push(Problem {
                place,
                key,
                message,
            });
        };
        if stage.name.trim().is_empty() {
            add("name", "missing: a stage needs a name".to_owned());
        } else if config
            .stages
            .iter()
            .take(index)
            .any(|other| other.name == stage.name)
        {
            add(
                "name",
                format!(
                    "there is already a stage {:?}: names are unique",
                    stage.name
                ),
            );
        }
        match (stage.roles.is_empty(), stage.run.is_empty()) {
            (true, true) => add(
                "",
                "a stage needs roles = [\"...\"] or run = [\"...\"]".to_owned(),
            ),
            (false, false) => {
                add(
                    "run",
                    "a stage has roles or run, not both: make two stages of it".to_owned(),
                );
            }
            _ => {}
        }
        let known: Vec<&str> = config.roles.keys().map(String::as_str).collect();
        for (position, role) in stage.roles.iter().enumerate() {
            if !config.roles.contains_key(role) {
                add("roles", unknown("role", role, &known));
            }
            if stage.roles.iter().take(position).any(|other| other == role) {
                add("roles", format!("role {role:?} is named twice"));
            }
        }
        if let Some(message) = require(stage) {
            add("require", message);
        }
    }
}

fn require(stage: &StageConfig) -> Option<String> {
    let Require::Number(needed) = stage.require else {
        return None;
    };
    let have = u32::try_from(stage.roles.len()).unwrap_or(u32::MAX);
    (needed > have).then(|| format!("{needed} roles can never pass: the stage has {have}"))
}

fn texts(merged: &Merged, config: &Config, problems: &mut Vec<Problem>) {
    let not_empty = [
        ("state_dir", empty(merged, "state_dir")),
        ("task_dir", empty(merged, "task_dir")),
        ("loop.base", config.loop_.base.trim().is_empty()),
        ("ship.target", config.ship.target.trim().is_empty()),
    ];
    for (key, empty) in not_empty {
        if empty {
            let message = "cannot be empty: remove the line to get the default".to_owned();
            problems.push(Problem {
                place: place(merged, key),
                key: key.to_owned(),
                message,
            });
        }
    }
    if config.store.kind == StoreKind::Postgres && config.store.url.is_empty() {
        problems.push(Problem {
            place: place(merged, "store.kind"),
            key: "store.url".to_owned(),
            message: "missing: set FLOCKD_STORE_URL".to_owned(),
        });
    }
}

/// A password in `flockd.toml` ends up in git.
fn secret_in_committed_file(merged: &mut Merged) {
    let Some(leaf) = merged.leaves.get("store.url") else {
        return;
    };
    let Place::Project(_) = leaf.place else {
        return;
    };
    let has_password = match &leaf.value {
        super::value::Value::Text(url) => super::show::masked_url(url) != *url,
        _ => false,
    };
    if has_password {
        let place = leaf.place.clone();
        let message = "a password in a committed file: use FLOCKD_STORE_URL or flockd.local.toml";
        merged.warning(place, "store.url".to_owned(), message.to_owned());
    }
}

fn place(merged: &Merged, dotted: &str) -> Place {
    let table = dotted.rsplit_once('.').map_or("", |(table, _)| table);
    merged
        .leaves
        .get(dotted)
        .map(|leaf| leaf.place.clone())
        .or_else(|| merged.tables.get(table).cloned())
        .unwrap_or(Place::Default)
}

impl Config {
    /// What keeps a loop from starting with this configuration, with the way out; none: it can.
    /// Reading commands work with such a configuration too.
    #[must_use]
    pub fn cannot_start(&self) -> Option<String> {
        if self.stages.is_empty() {
            return Some(
                "no stages are configured: run `flockd init`, or add [[stages]] to flockd.toml"
                    .to_owned(),
            );
        }
        if self.store.kind == StoreKind::Postgres {
            return Some("store.kind \"postgres\" is not in this version: use \"file\"".to_owned());
        }
        None
    }
}
