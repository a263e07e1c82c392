//! What a client may ask of the daemon, and what it may hear.

use super::report::{StatusReport, TaskRow, WhyReport};
use crate::types::TaskId;
use serde::{Deserialize, Serialize};

/// Raised when an old client could misread a new daemon's answer, or the other way round.
pub const PROTOCOL_VERSION: u32 = 1;

/// One request; `{"op":"stop","now":true}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    /// Who is there. Optional; a client that writes should send it first.
    Hello {
        /// The client's [`PROTOCOL_VERSION`].
        protocol: u32,
        /// The client's flockd version, for the daemon's log.
        version: String,
    },
    /// The whole picture: [`Reply::Status`].
    Status,
    /// What one task waits for: [`Reply::Why`].
    Why {
        /// The task.
        task: TaskId,
    },
    /// Every task, in queue order: [`Reply::List`].
    List,
    /// End the loop: claim nothing more and wait for what runs, or stop what runs.
    Stop {
        /// Stop the running children too.
        now: bool,
    },
    /// Claim and start nothing more until `resume`. Answered when the marker file is there.
    Pause,
    /// Undo `pause`.
    Resume,
    /// Stop every child and hold dispatch until `thaw`.
    Estop,
    /// Undo `estop`.
    Thaw,
    /// Stop a task's children and take it out of the queue.
    Cancel {
        /// The task.
        task: TaskId,
    },
    /// Try a deferred, blocked, cancelled or completed task again.
    Retry {
        /// The task.
        task: TaskId,
    },
    /// Append facts on behalf of another process; answered by [`Reply::Appended`] once durable.
    AppendFacts {
        /// Lines of the ledger's shape without `seq` and `sum`: `at`, `kind`, `data`, and `task`
        /// and `run` where they apply.
        facts: Vec<serde_json::Value>,
    },
    /// Facts with a sequence number greater than `since`, then every new one as it becomes durable.
    Follow {
        /// 0 for all.
        since: u64,
    },
}

/// One reply; `{"reply":"done","message":"…"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// To [`Request::Hello`].
    Hello {
        /// The daemon's [`PROTOCOL_VERSION`].
        protocol: u32,
        /// The daemon's flockd version.
        version: String,
        /// Its process id, for people.
        pid: u32,
    },
    /// To [`Request::Status`].
    Status(Box<StatusReport>),
    /// To [`Request::Why`].
    Why(Box<WhyReport>),
    /// To [`Request::List`].
    List {
        /// In queue order: what would be claimed first comes first.
        tasks: Vec<TaskRow>,
    },
    /// The request is carried out, and durable where it has to be.
    Done {
        /// One sentence for people.
        message: String,
    },
    /// To [`Request::AppendFacts`].
    Appended {
        /// The last fact's sequence number.
        seq: u64,
    },
    /// To [`Request::Follow`]: one fact, as the ledger's line has it.
    Fact {
        /// The fact.
        fact: serde_json::Value,
    },
    /// The request was not carried out.
    Error {
        /// For programs.
        code: ErrorCode,
        /// For people: lower-case, says what they can do.
        message: String,
    },
}

/// Why a request was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// Not a request of this protocol version.
    BadRequest,
    /// No such task, run or lease.
    NotFound,
    /// Refused: it would break a promise (a task that is being ended, a lease conflict).
    Refused,
    /// The daemon is going down or its ledger is latched.
    Unavailable,
    /// A fault of the daemon.
    Internal,
    /// A code that this version does not know.
    #[serde(other)]
    Unknown,
}

impl ErrorCode {
    /// The exit code of a command that hears this (design §7).
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::BadRequest | Self::NotFound => 2,
            Self::Refused => 4,
            Self::Unavailable | Self::Internal | Self::Unknown => 1,
        }
    }
}

impl Reply {
    /// A [`Reply::Error`].
    #[must_use]
    pub fn error(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Error {
            code,
            message: message.into(),
        }
    }

    /// A [`Reply::Done`].
    #[must_use]
    pub fn done(message: impl Into<String>) -> Self {
        Self::Done {
            message: message.into(),
        }
    }
}
