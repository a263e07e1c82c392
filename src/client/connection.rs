//! One connection to the daemon. Blocking; meant for short-lived commands.

use crate::api::{ErrorCode, LINE_BYTES_MAX, Reply, Request, decode, encode};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// Connecting is local: longer than this means a daemon that does not accept.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest wait for one answer. Cancel and stop end trees, which takes grace times.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest wait of a command that can look at the files instead.
pub const LOOK_TIMEOUT: Duration = Duration::from_secs(3);

/// The file in the state directory that names the socket.
const ADDRESS_FILE: &str = "socket";

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens: no daemon runs on this state directory.
    #[error("no daemon is running")]
    NoDaemon,
    /// The daemon is there and does not accept.
    #[error(
        "the daemon does not accept a connection on {} within {} s: it may be stopped (`fg`, `kill -CONT`) \
         or very busy; `flockd estop` works without it",
        .0.display(),
        CONNECT_TIMEOUT.as_secs()
    )]
    Timeout(PathBuf),
    /// The daemon took the request and says nothing.
    #[error(
        "the daemon does not answer: it may be stopped (`fg`, `kill -CONT`) or very busy; `flockd estop` works \
         without it"
    )]
    Silent,
    /// The connection broke.
    #[error("lost the daemon: {0}")]
    Io(#[from] std::io::Error),
    /// The daemon ended before it answered.
    #[error("the daemon went away before it answered")]
    Closed,
    /// What came is not of this protocol.
    #[error("{0}; is the daemon of another version? `flockd stop` and start it again")]
    Protocol(String),
    /// The daemon said no.
    #[error("{message}")]
    Refused {
        /// For programs.
        code: ErrorCode,
        /// For people.
        message: String,
    },
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    reader: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the daemon of a state directory.
    ///
    /// # Errors
    /// [`ClientError::NoDaemon`] without an address file or with a stale one.
    pub fn connect(state_dir: &Path) -> Result<Self, ClientError> {
        let Ok(address) = std::fs::read_to_string(state_dir.join(ADDRESS_FILE)) else {
            return Err(ClientError::NoDaemon);
        };
        let address = PathBuf::from(address.trim());
        let stream = connect_within(&address, CONNECT_TIMEOUT)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Self {
            reader: BufReader::new(stream),
        })
    }

    /// Waits this long for each answer from now on, instead of a minute.
    ///
    /// # Errors
    /// [`ClientError::Io`] for a wait of no length.
    pub fn answer_within(&self, bound: Duration) -> Result<(), ClientError> {
        Ok(self.reader.get_ref().set_read_timeout(Some(bound))?)
    }

    /// Asks once. A reply that says no is [`ClientError::Refused`].
    ///
    /// # Errors
    /// [`ClientError`]; after one the connection is of no more use.
    pub fn request(&mut self, request: &Request) -> Result<Reply, ClientError> {
        self.send(request)?;
        match self.receive()? {
            None => Err(ClientError::Closed),
            Some(Reply::Error { code, message }) => Err(ClientError::Refused { code, message }),
            Some(reply) => Ok(reply),
        }
    }

    /// Every fact after `since`, then new ones as they become durable, until the daemon ends.
    ///
    /// # Errors
    /// [`ClientError`] when the request cannot be sent.
    pub fn follow(mut self, since: u64) -> Result<Follow, ClientError> {
        self.send(&Request::Follow { since })?;
        // Facts come when something happens; silence is no fault.
        self.reader.get_ref().set_read_timeout(None)?;
        Ok(Follow(self))
    }

    /// Waits until the daemon closes the connection: it has ended.
    ///
    /// # Errors
    /// [`ClientError::Io`] when waiting fails.
    pub fn wait_closed(mut self) -> Result<(), ClientError> {
        self.reader.get_ref().set_read_timeout(None)?;
        while self.receive()?.is_some() {}
        Ok(())
    }

    fn send(&mut self, request: &Request) -> Result<(), ClientError> {
        let line = encode(request).map_err(|e| ClientError::Protocol(e.to_string()))?;
        Ok(self.reader.get_mut().write_all(&line)?)
    }

    fn receive(&mut self) -> Result<Option<Reply>, ClientError> {
        let mut line = Vec::new();
        let bound = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        (&mut self.reader)
            .take(bound)
            .read_until(b'\n', &mut line)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                    ClientError::Silent
                }
                _ => ClientError::Io(error),
            })?;
        if line.is_empty() {
            return Ok(None);
        }
        decode(&line)
            .map(Some)
            .map_err(|e| ClientError::Protocol(e.to_string()))
    }
}

/// Facts, as they become durable.
#[derive(Debug)]
pub struct Follow(Client);

impl Iterator for Follow {
    type Item = Result<serde_json::Value, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.receive() {
            Ok(None) => None,
            Ok(Some(Reply::Fact { fact })) => Some(Ok(fact)),
            Ok(Some(Reply::Error { code, message })) => {
                Some(Err(ClientError::Refused { code, message }))
            }
            Ok(Some(other)) => Some(Err(ClientError::Protocol(format!("unexpected {other:?}")))),
            Err(error) => Some(Err(error)),
        }
    }
}

/// A Unix connect blocks while the listener's queue is full and std has no bound for it, so a thread
/// does the waiting; it ends with the process at the latest.
fn connect_within(address: &Path, bound: Duration) -> Result<UnixStream, ClientError> {
    let (sender, receiver) = mpsc::channel();
    let target = address.to_owned();
    std::thread::spawn(move || {
        // The receiver may have given up.
        let _ = sender.send(UnixStream::connect(target));
    });
    match receiver.recv_timeout(bound) {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                Err(ClientError::NoDaemon)
            }
            _ => Err(ClientError::Io(error)),
        },
        Err(_) => Err(ClientError::Timeout(address.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[expect(
        clippy::disallowed_methods,
        reason = "a test's scratch files need no durability"
    )]
    fn state_with_listener() -> (tempfile::TempDir, UnixListener) {
        let dir = tempfile::tempdir().unwrap();
        let address = dir.path().join("control.sock");
        let listener = UnixListener::bind(&address).unwrap();
        std::fs::write(dir.path().join("socket"), address.display().to_string()).unwrap();
        (dir, listener)
    }

    fn answer(listener: UnixListener, lines: &'static str) -> std::thread::JoinHandle<String> {
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut asked = String::new();
            reader.read_line(&mut asked).unwrap();
            reader.get_mut().write_all(lines.as_bytes()).unwrap();
            asked
        })
    }

    #[test]
    fn no_file_and_a_stale_socket_mean_no_daemon() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(
            Client::connect(dir.path()),
            Err(ClientError::NoDaemon)
        ));
        let (dir, listener) = state_with_listener();
        drop(listener);
        assert!(matches!(
            Client::connect(dir.path()),
            Err(ClientError::NoDaemon)
        ));
    }

    #[test]
    fn a_request_is_one_line_and_a_refusal_is_an_error() {
        let (dir, listener) = state_with_listener();
        let server = answer(
            listener,
            "{\"reply\":\"error\",\"code\":\"refused\",\"message\":\"no\"}\n",
        );
        let error = Client::connect(dir.path())
            .unwrap()
            .request(&Request::Pause)
            .unwrap_err();
        assert!(matches!(
            error,
            ClientError::Refused {
                code: ErrorCode::Refused,
                ..
            }
        ));
        assert_eq!(server.join().unwrap(), "{\"op\":\"pause\"}\n");
    }

    #[test]
    fn following_ends_when_the_daemon_does() {
        let (dir, listener) = state_with_listener();
        let server = answer(
            listener,
            "{\"reply\":\"fact\",\"fact\":{\"seq\":1}}\n{\"reply\":\"fact\",\"fact\":{\"seq\":2}}\n",
        );
        let facts = Client::connect(dir.path()).unwrap().follow(0).unwrap();
        let seen: Vec<u64> = facts
            .map(|fact| fact.unwrap()["seq"].as_u64().unwrap())
            .collect();
        assert_eq!(seen, [1, 2]);
        server.join().unwrap();
    }

    #[test]
    fn a_daemon_that_dies_before_it_answers_is_told_apart() {
        let (dir, listener) = state_with_listener();
        let server = answer(listener, "");
        let error = Client::connect(dir.path())
            .unwrap()
            .request(&Request::Status)
            .unwrap_err();
        assert!(matches!(error, ClientError::Closed), "{error}");
        server.join().unwrap();
    }
}
