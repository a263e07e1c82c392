//! Identifiers: a task's is its file's stem, runs and leases carry ULIDs.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The longest task id in bytes: it becomes part of file, branch and folder names.
const TASK_ID_BYTES_MAX: usize = 100;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("an id cannot be empty")]
    Empty,
    /// The text is longer than an id may be.
    #[error("id is {len} bytes long, at most {max} are allowed", max = TASK_ID_BYTES_MAX)]
    TooLong {
        /// Length found, in bytes.
        len: usize,
    },
    /// The text has a character that an id may not have.
    #[error(
        "id {id:?} has {found:?}: use letters, digits, '-', '_' and '.', start with a letter or digit, \
         no \"..\", no trailing '.' or \".lock\""
    )]
    Character {
        /// The offending id.
        id: String,
        /// The part that is not allowed.
        found: String,
    },
}

/// Letters, digits, `-`, `_`, `.`; a letter or digit first; nothing git refuses in a branch name.
fn validate(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > TASK_ID_BYTES_MAX {
        return Err(IdError::TooLong { len: text.len() });
    }
    let bad = |found: &str| {
        Err(IdError::Character {
            id: text.to_owned(),
            found: found.to_owned(),
        })
    };
    if let Some(c) = text.chars().next().filter(|c| !c.is_ascii_alphanumeric()) {
        return bad(&c.to_string());
    }
    if let Some(c) = text
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
    {
        return bad(&c.to_string());
    }
    for part in ["..", "@{"] {
        if text.contains(part) {
            return bad(part);
        }
    }
    for end in [".", ".lock"] {
        if text.ends_with(end) {
            return bad(end);
        }
    }
    Ok(())
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and wraps a text.
            ///
            /// # Errors
            /// [`IdError`] when the text could not be a file and branch name part.
            pub fn new(text: &str) -> Result<Self, IdError> {
                validate(text)?;
                Ok(Self(Arc::from(text)))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(&text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

id!(
    /// A task: the stem of its file in the task folder.
    TaskId
);
id!(
    /// One child process's record: the name of its folder under `runs/`.
    RunId
);
id!(
    /// One claim of paths: the name of its file under `leases/`.
    LeaseId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_as_file_and_branch_names() {
        for good in ["T-0001", "fix.widget_2", "a", "01J8ZQ"] {
            assert!(TaskId::new(good).is_ok(), "{good}");
        }
        for bad in [
            "", ".hidden", "a/b", "a..b", "a b", "x.lock", "x.", "-x", "é", "a@{b",
        ] {
            assert!(TaskId::new(bad).is_err(), "{bad}");
        }
        assert!(TaskId::new(&"x".repeat(101)).is_err());
    }
}
