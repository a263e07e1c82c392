//! The control socket: 0600 in a private folder, the peer's user checked, one line a message.
//!
//! A client's mistake costs that client its connection and nothing else.

use super::facts;
use super::input::Input;
use super::watch::{ESTOP, PAUSED};
use crate::api::{ErrorCode, LINE_BYTES_MAX, PROTOCOL_VERSION, Reply, Request, decode, encode};
use crate::fsx::FsError;
use crate::ledger::{LedgerHandle, read_facts};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

/// Connections served at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 64;

/// What connections are served with.
pub(super) struct Server {
    pub(super) state_dir: PathBuf,
    pub(super) ledger: LedgerHandle,
    pub(super) inputs: mpsc::UnboundedSender<Input>,
}

/// Binds the socket and writes where it is. Only under the singleton lock: what lies there is stale.
pub(super) fn bind(state_dir: &Path, runtime_dir: &Path) -> Result<UnixListener, FsError> {
    let path = runtime_dir.join("control.sock");
    crate::fsx::remove(&path)?;
    let listener = UnixListener::bind(&path).map_err(FsError::io("bind", &path))?;
    crate::fsx::set_private(&path)?;
    crate::fsx::replace_cached(
        &state_dir.join("socket"),
        format!("{}\n", path.display()).as_bytes(),
    )?;
    Ok(listener)
}

/// Takes the address away at an orderly end. Under the singleton lock: what lies there is ours.
pub(super) fn unbind(state_dir: &Path, runtime_dir: &Path) {
    for path in [state_dir.join("socket"), runtime_dir.join("control.sock")] {
        if let Err(error) = crate::fsx::remove(&path) {
            tracing::warn!(%error, "the control socket's address stays");
        }
    }
}

impl Server {
    /// Accepts until the loop is gone.
    pub(super) async fn serve(self: Arc<Self>, listener: UnixListener) {
        let permits = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let this = Arc::clone(&self);
                    tokio::spawn(async move {
                        if let Err(error) = this.connection(stream).await {
                            tracing::debug!(%error, "a client's connection ended");
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    // Out of descriptors: the next accept waits until one is free again.
                    tracing::warn!(%error, "accept");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn connection(&self, stream: UnixStream) -> std::io::Result<()> {
        let peer = stream.peer_cred()?.uid();
        if peer != crate::proc::own_uid() && peer != 0 {
            return Err(std::io::Error::other(format!("user {peer} is not ours")));
        }
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        while let Some(line) = next_line(&mut read).await? {
            match decode::<Request>(&line) {
                Ok(Request::Follow { since }) => return self.follow(since, &mut write).await,
                Ok(request) => {
                    let reply = self.answer(request).await;
                    send(&mut write, &reply).await?;
                }
                Err(error) => {
                    send(
                        &mut write,
                        &Reply::error(ErrorCode::BadRequest, error.to_string()),
                    )
                    .await?;
                }
            }
        }
        Ok(())
    }

    async fn answer(&self, request: Request) -> Reply {
        match request {
            Request::Hello { .. } => Reply::Hello {
                protocol: PROTOCOL_VERSION,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
            },
            Request::Pause => self.marker(PAUSED, true, "dispatch is paused"),
            Request::Resume => self.marker(PAUSED, false, "dispatch goes on"),
            Request::Estop => self.marker(ESTOP, true, "emergency stop"),
            Request::Thaw => self.marker(ESTOP, false, "dispatch goes on"),
            Request::AppendFacts { facts } => match facts::parse(&facts) {
                Ok(facts) => match self.ledger.append(facts).await {
                    Ok(seq) => Reply::Appended { seq },
                    Err(error) => Reply::error(ErrorCode::Unavailable, error.to_string()),
                },
                Err(error) => Reply::error(ErrorCode::BadRequest, error.to_string()),
            },
            other => {
                let (to, answer) = oneshot::channel();
                if self.inputs.send(Input::Request(other, to)).is_err() {
                    return Reply::error(ErrorCode::Unavailable, "the daemon is going down");
                }
                answer.await.unwrap_or_else(|_| {
                    Reply::error(ErrorCode::Unavailable, "the daemon is going down")
                })
            }
        }
    }

    fn marker(&self, name: &str, there: bool, message: &str) -> Reply {
        let path = self.state_dir.join(name);
        let done = if there {
            crate::fsx::replace_durable(&path, b"")
        } else {
            crate::fsx::remove(&path)
        };
        match done {
            Ok(()) => Reply::done(message),
            Err(error) => Reply::error(ErrorCode::Internal, error.to_string()),
        }
    }

    /// Old facts from the files, then new ones as they become durable; no gap, no repetition.
    async fn follow(&self, since: u64, write: &mut OwnedWriteHalf) -> std::io::Result<()> {
        let mut live = self.ledger.subscribe();
        let (state_dir, mut last) = (self.state_dir.clone(), since);
        let old = tokio::task::spawn_blocking(move || {
            read_facts(&state_dir, since).collect::<Result<Vec<_>, _>>()
        })
        .await
        .map_err(std::io::Error::other)?
        .map_err(std::io::Error::other)?;
        for fact in old {
            last = last.max(fact.seq);
            send(
                write,
                &Reply::Fact {
                    fact: fact.to_json(),
                },
            )
            .await?;
        }
        loop {
            match live.recv().await {
                Ok(fact) if fact.seq > last => {
                    last = fact.seq;
                    send(
                        write,
                        &Reply::Fact {
                            fact: fact.to_json(),
                        },
                    )
                    .await?;
                }
                Ok(_) => {}
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return Ok(()),
                Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {
                    let reply = Reply::error(
                        ErrorCode::Unavailable,
                        "too slow for the flow of facts: follow again from the last seq",
                    );
                    return send(write, &reply).await;
                }
            }
        }
    }
}

async fn next_line(read: &mut BufReader<OwnedReadHalf>) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let limit = u64::try_from(LINE_BYTES_MAX)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let n = read.take(limit).read_until(b'\n', &mut line).await?;
    if n > LINE_BYTES_MAX {
        return Err(std::io::Error::other("line too long"));
    }
    Ok((n > 0).then_some(line))
}

async fn send(write: &mut OwnedWriteHalf, reply: &Reply) -> std::io::Result<()> {
    let line = encode(reply).map_err(std::io::Error::other)?;
    write.write_all(&line).await
}
