//! What daemon and runner say to each other: JSON lines over a Unix socket, versioned. No socket in here.

use super::exit::ExitReport;
use super::spec::RunSpec;
use crate::proc::Identity;
use crate::types::RunId;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Raised whenever an older daemon or runner would misunderstand a message.
pub const PROTOCOL: u32 = 1;

/// The longest line: arguments and environment are bounded by the kernel to 2 MiB, escapes may
/// multiply that.
pub(super) const LINE_BYTES_MAX: usize = 32 << 20;

/// How to stop a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopHow {
    /// TERM, the run's grace time, KILL.
    Term,
    /// KILL.
    Kill,
}

/// From the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Start a run. Refused (the connection is closed) while another one is not settled.
    Run(Box<RunSpec>),
    /// Stop the run, when it is the current one.
    Stop {
        /// Which.
        run_id: RunId,
        /// How.
        how: StopHow,
    },
    /// The run's end is durable elsewhere: the slot may go.
    Settled {
        /// Which.
        run_id: RunId,
    },
}

/// The run a runner has when somebody connects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentRun {
    /// The run.
    pub run_id: RunId,
    /// Its child; none before the spawn.
    pub child: Option<Identity>,
    /// Slot files held; none before the spawn.
    pub slots: Vec<u32>,
    /// Its end, when it has ended and is not settled.
    pub exited: Option<ExitReport>,
}

/// From the runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The first line of every connection.
    Hello {
        /// [`PROTOCOL`] of the runner.
        protocol: u32,
        /// The runner's own identity.
        runner: Identity,
        /// Its current run.
        run: Option<CurrentRun>,
    },
    /// No slot is free; nobody is passed over for it.
    Waiting {
        /// Which.
        run_id: RunId,
    },
    /// The child exists.
    Started {
        /// Which.
        run_id: RunId,
        /// The child.
        child: Identity,
        /// Slot files held.
        slots: Vec<u32>,
    },
    /// Nothing of the run is left; its slots are held until it is settled.
    Exited {
        /// How.
        report: ExitReport,
    },
}

/// One message as a line, newline included.
#[must_use]
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Reads one line.
///
/// # Errors
/// The JSON error, when the line is not a message of this version.
pub fn decode<T: DeserializeOwned>(line: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::spec::tests::sample;

    #[test]
    fn messages_come_back_and_the_version_is_on_the_first_line() {
        let request = Request::Run(Box::new(sample()));
        assert_eq!(decode::<Request>(&encode(&request)).unwrap(), request);
        let runner = Identity {
            pid: 1,
            start_ticks: 2,
        };
        let hello = encode(&Message::Hello {
            protocol: PROTOCOL,
            runner,
            run: None,
        });
        assert_eq!(
            String::from_utf8(hello).unwrap(),
            "{\"hello\":{\"protocol\":1,\"runner\":{\"pid\":1,\"start_ticks\":2},\"run\":null}}\n"
        );
        assert!(decode::<Message>(b"{\"unknown\":{}}").is_err());
    }
}
