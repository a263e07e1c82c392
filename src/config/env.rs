//! Environment variables over the files. A typo never strands a run: what cannot be read falls back
//! to the next source with a warning.

use super::keys::{self, Key, NAMED, SECTIONS, Short};
use super::merge::{Leaf, Merged};
use super::place::Place;
use super::value::{Checked, Kind, Value, truth};
use std::collections::BTreeMap;

/// The environment as data: names and values that are UTF-8.
pub type Environment = BTreeMap<String, String>;

/// The kill switch's variable.
const KILL_SWITCH: &str = "FLOCKD_PARALLELISM_KILL";

impl Merged {
    /// Lays the environment over what is there.
    pub(super) fn environment(&mut self, environment: &Environment) {
        for section in SECTIONS {
            for key in section.keys {
                self.variable_of(environment, &keys::dotted(section.name, key.name), key);
            }
        }
        let tables: Vec<String> = self.tables.keys().cloned().collect();
        for table in tables {
            let named = table.split('.').next().unwrap_or_default();
            let Some((_, keys)) = NAMED.iter().find(|(of, _)| *of == named) else {
                continue;
            };
            for key in *keys {
                self.variable_of(environment, &format!("{table}.{}", key.name), key);
            }
        }
    }

    /// The short name is asked first, then the long one; the first usable value wins.
    fn variable_of(&mut self, environment: &Environment, dotted: &str, key: &Key) {
        let long = keys::variable(dotted);
        let names = [
            key.short.map(|short| match short {
                Short::Plain(name) => (name.to_owned(), false),
                Short::Seconds(name) => (name.to_owned(), true),
            }),
            Some((long, false)),
        ];
        for (name, seconds) in names.into_iter().flatten() {
            let Some(text) = environment
                .get(&name)
                .filter(|text| !text.trim().is_empty())
            else {
                continue;
            };
            let place = Place::Environment(name);
            let checked = if seconds {
                seconds_of(text)
            } else {
                key.kind.check_text(text)
            };
            match checked {
                Ok((value, adjusted)) => {
                    if let Some(message) = adjusted {
                        self.warning(place.clone(), dotted.to_owned(), message);
                    }
                    self.leaves.insert(dotted.to_owned(), Leaf { value, place });
                    return;
                }
                Err(message) => {
                    self.warning(place, dotted.to_owned(), format!("ignored: {message}"));
                }
            }
        }
    }
}

/// `FLOCKD_MAX_WALL_CLOCK_SECONDS` and the like.
fn seconds_of(text: &str) -> Checked {
    let (value, adjusted) = Kind::Count.check_text(text)?;
    match value {
        Value::Integer(seconds) => {
            let seconds = u64::try_from(seconds).unwrap_or(0);
            Ok((
                Value::Duration(std::time::Duration::from_secs(seconds)),
                adjusted,
            ))
        }
        other => Ok((other, adjusted)),
    }
}

/// Whether the kill switch is set to a true word.
pub(super) fn kill_switch(environment: &Environment) -> bool {
    environment
        .get(KILL_SWITCH)
        .is_some_and(|text| truth(text) == Some(true))
}
