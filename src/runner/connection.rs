//! A runner's connection to its daemon: lines in, lines out, never blocking. Knows no run.

use super::protocol::{LINE_BYTES_MAX, Message, Request, decode, encode};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A connected daemon.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    unread: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: UnixStream) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            unread: Vec::new(),
        })
    }

    /// Sends one message; answers whether it went out whole.
    ///
    /// Messages are small and few, so a socket buffer that is full belongs to a daemon that hangs: it is
    /// given up, and the run goes on without it.
    pub(super) fn send(&mut self, message: &Message) -> bool {
        self.stream.write_all(&encode(message)).is_ok()
    }

    /// The requests that arrived, and whether the connection is still open.
    pub(super) fn receive(&mut self) -> (Vec<Request>, bool) {
        let mut open = true;
        let mut buffer = [0_u8; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    open = false;
                    break;
                }
                Ok(count) => self.unread.extend(buffer.iter().take(count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    open = false;
                    break;
                }
            }
            if self.unread.len() > LINE_BYTES_MAX {
                open = false;
                break;
            }
        }
        let mut requests = Vec::new();
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            match decode(&line) {
                Ok(request) => requests.push(request),
                Err(error) => {
                    tracing::error!(%error, "request not understood");
                    open = false;
                }
            }
        }
        (requests, open)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
