//! One connection of the daemon to one runner: connect, hello, lines both ways, the runner's death. Async.

use super::protocol::{CurrentRun, LINE_BYTES_MAX, Message, PROTOCOL, Request, decode, encode};
use crate::proc::{Identity, open_process, reap_pid};
use crate::types::RunId;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

/// From the start of a runner to its hello; generous, since many may start at once on a busy machine.
const HELLO_TIME: Duration = Duration::from_secs(20);
/// A runner's socket appears a few milliseconds after its start; there is no event for it that is
/// cheaper than trying.
const CONNECT_AGAIN: Duration = Duration::from_millis(2);
/// How long a runner that closed its connection may take to be gone.
const GONE_TIME: Duration = Duration::from_secs(10);

/// A connected runner.
#[derive(Debug)]
pub(super) struct Linked {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    runner: Identity,
    /// What it is doing.
    pub(super) run: Option<CurrentRun>,
}

/// How a link ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkEnd {
    /// The pool let the runner go.
    LetGo,
    /// The runner closed the connection or died.
    Died {
        /// The run it had and had not reported the end of.
        unreported: Option<RunId>,
    },
}

/// Waits for a started runner's end in the background, so that it is no zombie; the receiver fires then.
pub(super) fn reap_when_gone(pid: u32) -> oneshot::Receiver<()> {
    let (gone, ended) = oneshot::channel();
    tokio::spawn(async move {
        if let Some(identity) = crate::proc::identity_of(pid) {
            wait_gone(identity).await;
        }
        // It is a zombie by now, or about to be one: this does not block.
        let reaped = tokio::task::spawn_blocking(move || reap_pid(pid));
        let _ = reaped.await;
        let _ = gone.send(());
    });
    ended
}

async fn wait_gone(identity: Identity) {
    let Some(handle) = open_process(identity) else {
        return;
    };
    #[expect(
        deprecated,
        reason = "its successor is unsafe; the handle is owned, so it cannot be closed early"
    )]
    let registered = AsyncFd::with_interest(handle, Interest::READABLE);
    if let Ok(handle) = registered {
        let _ = handle.readable().await;
    }
}

/// Connects and reads the hello. With `ended`, the runner was just started: its socket is waited for,
/// until the runner ends.
pub(super) async fn connect(
    socket: &Path,
    ended: Option<oneshot::Receiver<()>>,
) -> std::io::Result<Linked> {
    let attempt = async {
        match ended {
            None => UnixStream::connect(socket).await,
            Some(ended) => connect_to_new(socket, ended).await,
        }
        .map(|stream| stream.into_split())
    };
    let hello = async {
        let (reader, writer) = attempt.await?;
        let mut reader = BufReader::new(reader);
        let line = read_line(&mut reader)
            .await?
            .ok_or(ErrorKind::UnexpectedEof)?;
        match decode(&line).map_err(Error::other)? {
            Message::Hello {
                protocol: PROTOCOL,
                runner,
                run,
            } => Ok(Linked {
                reader,
                writer,
                runner,
                run,
            }),
            Message::Hello { protocol, .. } => Err(Error::other(format!(
                "it speaks version {protocol} of the protocol, not {PROTOCOL}: let its run finish first"
            ))),
            _ => Err(Error::other("its first line is no hello")),
        }
    };
    tokio::time::timeout(HELLO_TIME, hello)
        .await
        .map_err(|_| ErrorKind::TimedOut)?
}

async fn connect_to_new(
    socket: &Path,
    mut ended: oneshot::Receiver<()>,
) -> std::io::Result<UnixStream> {
    loop {
        match UnixStream::connect(socket).await {
            Ok(stream) => return Ok(stream),
            Err(error) if ended.try_recv().is_ok() => return Err(error),
            Err(_) => tokio::time::sleep(CONNECT_AGAIN).await,
        }
    }
}

/// One line without a limit on time; none at the end of the connection.
async fn read_line(reader: &mut BufReader<OwnedReadHalf>) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let max = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
    let count = (&mut *reader)
        .take(max)
        .read_until(b'\n', &mut line)
        .await?;
    match line.last() {
        Some(b'\n') => Ok(Some(line)),
        _ if count == 0 => Ok(None),
        _ => Err(ErrorKind::UnexpectedEof.into()),
    }
}

/// Carries requests to the runner and messages to `deliver` until one side ends.
pub(super) async fn drive(
    linked: Linked,
    mut requests: UnboundedReceiver<Request>,
    run_id: Option<RunId>,
    deliver: impl Fn(Message),
) -> LinkEnd {
    let Linked {
        mut reader,
        mut writer,
        runner,
        run,
    } = linked;
    let exited = run.is_some_and(|run| run.exited.is_some());
    let mut unreported = run_id.filter(|_| !exited);
    // A task of its own: reading a line is not cancel-safe, so it must not be an arm of the select.
    let (lines, mut messages) = tokio::sync::mpsc::unbounded_channel();
    let reading = tokio::spawn(async move {
        while let Ok(Some(line)) = read_line(&mut reader).await {
            let Ok(message) = decode::<Message>(&line) else {
                break;
            };
            if lines.send(message).is_err() {
                break;
            }
        }
    });
    let end = loop {
        tokio::select! {
            biased;
            message = messages.recv() => match message {
                Some(message) => {
                    if let Message::Exited { report } = &message
                        && unreported.as_ref() == Some(&report.run_id)
                    {
                        unreported = None;
                    }
                    deliver(message);
                }
                None => {
                    // The connection ends a moment before the process does; its locks go with the process.
                    let gone = wait_gone(runner);
                    let _ = tokio::time::timeout(GONE_TIME, gone).await;
                    break LinkEnd::Died { unreported };
                }
            },
            request = requests.recv() => match request {
                Some(request) => {
                    if let Request::Run(spec) = &request {
                        unreported = Some(spec.run_id.clone());
                    }
                    // A write that fails is followed by the end of the reads, which tells of the death.
                    let _ = writer.write_all(&encode(&request)).await;
                }
                None => break LinkEnd::LetGo,
            },
        }
    };
    reading.abort();
    end
}
