//! How a command ends when it does not succeed: an exit code of design §7 and a sentence.

use crate::client::ClientError;
use crate::config::{ConfigError, RootError};
use std::fmt::Display;

/// An exit code with what to say on standard error; an empty message says nothing.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: u8,
    pub(super) message: String,
}

/// What a command returns: its exit code.
pub(super) type Outcome = Result<u8, Failure>;

impl Failure {
    /// Exit code 1.
    pub(super) fn failed(message: impl Display) -> Self {
        Self {
            code: 1,
            message: message.to_string(),
        }
    }

    /// Exit code 2: usage or invalid input.
    pub(super) fn invalid(message: impl Display) -> Self {
        Self {
            code: 2,
            message: message.to_string(),
        }
    }

    /// Exit code 4.
    pub(super) fn refused(message: impl Display) -> Self {
        Self {
            code: 4,
            message: message.to_string(),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::invalid(error)
    }
}

impl From<RootError> for Failure {
    fn from(error: RootError) -> Self {
        Self::invalid(error)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match &error {
            ClientError::Refused { code, .. } => Self {
                code: code.exit_code(),
                message: error.to_string(),
            },
            _ => Self::failed(error),
        }
    }
}

/// Writing to standard output failed. A reader that went away (`| head`) is no fault.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self {
                code: 0,
                message: String::new(),
            };
        }
        Self::failed(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(kind) => std::io::Error::from(kind).into(),
            None => Self::failed(error),
        }
    }
}
