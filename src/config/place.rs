//! Where a value came from, and what is wrong with it. Knows nothing of what values mean.

use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value was written. A later variant beats an earlier one (design §7).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Nowhere: the built-in value.
    Default,
    /// `$XDG_CONFIG_HOME/flockd/config.toml`.
    User(FileLine),
    /// `flockd.toml`.
    Project(FileLine),
    /// `flockd.local.toml`.
    Local(FileLine),
    /// An environment variable, by name.
    Environment(String),
    /// A command-line flag, as typed.
    Flag(String),
}

/// A line of a file; line 1 is the first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileLine {
    /// The file, as people know it: relative to the project where it can be.
    pub file: PathBuf,
    /// From 1.
    pub line: u32,
}

/// Which file of the precedence list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileLayer {
    User,
    Project,
    Local,
}

impl FileLayer {
    pub(super) fn place(self, file: &Path, line: u32) -> Place {
        let at = FileLine {
            file: file.to_owned(),
            line,
        };
        match self {
            Self::User => Place::User(at),
            Self::Project => Place::Project(at),
            Self::Local => Place::Local(at),
        }
    }
}

impl Place {
    /// The layer in one word: `default`, `user`, `project`, `local`, `environment`, `flag`.
    #[must_use]
    pub const fn layer(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::User(_) => "user",
            Self::Project(_) => "project",
            Self::Local(_) => "local",
            Self::Environment(_) => "environment",
            Self::Flag(_) => "flag",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(at) | Self::Project(at) | Self::Local(at) => {
                write!(f, "{}:{}", at.file.display(), at.line)
            }
            Self::Environment(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

impl Serialize for Place {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One thing that is wrong, with its place, its key and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The dotted key; empty when the file could not be read as TOML.
    pub key: String,
    /// Lower-case; says what to write instead.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place != Place::Default {
            write!(f, "{}: ", self.place)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Something is wrong in a file or a flag; every problem that was found, in reading order.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
    /// A file is there and cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

fn lines(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}
