//! `flockd runner`: one run at a time, one connection, one poll loop. Outlives the daemon; knows no ledger.

use super::active::{Active, Mono, Surroundings};
use super::connection::Connection;
use super::protocol::{Message, PROTOCOL, Request, StopHow};
use crate::budget::SlotDir;
use crate::fsx;
use crate::proc::{
    self, Identity, SIGCHLD, SIGINT, SIGTERM, SignalQueue, SignalSet, become_subreaper,
    close_inherited, own_identity, raise_fd_limit, wait_readable,
};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a new runner waits for the daemon that started it.
const FIRST_CONNECTION_TIME: Duration = Duration::from_secs(10);

/// `runner-<name>.sock` in the run-time folder.
#[must_use]
pub fn socket_path(runtime_dir: &Path, name: &str) -> PathBuf {
    runtime_dir.join(format!("runner-{name}.sock"))
}

/// The runner's main loop; returns when it has neither a run nor a connection.
///
/// Must be the first thing the process does: it closes inherited descriptors and blocks signals.
#[must_use]
pub fn serve(state_dir: &Path, name: &str) -> ExitCode {
    close_inherited();
    raise_fd_limit();
    match Runner::open(state_dir, name) {
        Ok(mut runner) => {
            let result = runner.run();
            // Under this name only we listen; a successor takes another name or comes after us.
            let _ = fsx::remove(&runner.socket);
            match result {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    tracing::error!(%error, "runner");
                    ExitCode::FAILURE
                }
            }
        }
        Err(error) => {
            tracing::error!(%error, "runner cannot start");
            ExitCode::FAILURE
        }
    }
}

struct Runner {
    own: Identity,
    state_dir: PathBuf,
    slots: SlotDir,
    socket: PathBuf,
    listener: UnixListener,
    signals: SignalQueue,
    connection: Option<Connection>,
    active: Option<Active>,
    clock: Instant,
    was_connected: bool,
    leaving: bool,
}

/// Which descriptors became readable.
#[derive(Default)]
struct Ready {
    signals: bool,
    listener: bool,
    connection: bool,
    slots: bool,
}

impl Runner {
    fn open(state_dir: &Path, name: &str) -> std::io::Result<Self> {
        // Signals first: from here on a TERM is an event, never a death that leaves a tree behind.
        let signals = SignalQueue::new(SignalSet::Runner)?;
        let state_dir = state_dir.canonicalize()?;
        let runtime = fsx::runtime_dir(&state_dir).map_err(std::io::Error::other)?;
        let socket = socket_path(&runtime, name);
        let slots = SlotDir::open(&state_dir).map_err(std::io::Error::other)?;
        become_subreaper()?;
        std::env::set_current_dir("/")?;
        fsx::remove(&socket).map_err(std::io::Error::other)?;
        let listener = UnixListener::bind(&socket)?;
        listener.set_nonblocking(true)?;
        fsx::set_private(&socket).map_err(std::io::Error::other)?;
        Ok(Self {
            own: own_identity(),
            state_dir,
            slots,
            socket,
            listener,
            signals,
            connection: None,
            active: None,
            clock: Instant::now(),
            was_connected: false,
            leaving: false,
        })
    }

    fn now(&self) -> Mono {
        self.clock.elapsed()
    }

    fn run(&mut self) -> std::io::Result<()> {
        while !self.may_leave() {
            let ready = self.wait()?;
            if ready.signals {
                self.on_signals();
            }
            if ready.listener {
                self.on_connect();
            }
            if ready.connection {
                self.on_requests();
            }
            let now = self.now();
            if let Some(active) = &mut self.active {
                if ready.slots {
                    active.try_slots(now);
                }
                active.on_time(now);
            }
            self.tell();
        }
        Ok(())
    }

    /// Without a run and without a connection there is nothing to stay for.
    fn may_leave(&self) -> bool {
        if self.active.is_some() {
            return false;
        }
        let waited = self.was_connected || self.now() >= FIRST_CONNECTION_TIME;
        self.leaving || (self.connection.is_none() && waited)
    }

    fn wait(&self) -> std::io::Result<Ready> {
        let mut fds = vec![self.signals.as_fd(), self.listener.as_fd()];
        let mut due = self.active.as_ref().and_then(Active::due);
        if let Some(connection) = &self.connection {
            fds.push(connection.as_fd());
        } else if self.active.is_none() {
            due = Some(FIRST_CONNECTION_TIME);
        }
        let slots = self.active.as_ref().and_then(Active::event_fd);
        fds.extend(slots);
        let ready = wait_readable(&fds, due.map(|at| at.saturating_sub(self.now())))?;
        let mut ready = ready.into_iter();
        let mut next = |present: bool| present && ready.next().unwrap_or(false);
        Ok(Ready {
            signals: next(true),
            listener: next(true),
            connection: next(self.connection.is_some()),
            slots: next(slots.is_some()),
        })
    }

    fn on_signals(&mut self) {
        let mut children = false;
        let now = self.now();
        while let Some(signal) = self.signals.next() {
            match signal.number {
                SIGCHLD => children = true,
                SIGTERM | SIGINT => {
                    self.leaving = true;
                    if let Some(active) = &mut self.active {
                        active.stop(StopHow::Term, now);
                    }
                }
                _ => {}
            }
        }
        if children {
            match &mut self.active {
                Some(active) => active.on_child_signal(now),
                // Nothing of ours runs; an adopted orphan must not stay a zombie.
                None => while matches!(proc::reap(), proc::Reaped::Ended { .. }) {},
            }
        }
    }

    fn on_connect(&mut self) {
        let Ok((stream, _)) = self.listener.accept() else {
            return;
        };
        let Ok(mut connection) = Connection::new(stream) else {
            return;
        };
        let hello = Message::Hello {
            protocol: PROTOCOL,
            runner: self.own,
            run: self.active.as_ref().map(Active::current),
        };
        self.was_connected = true;
        // The newest daemon is the one: an older one that lost the singleton lock is dropped.
        self.connection = connection.send(&hello).then_some(connection);
    }

    fn on_requests(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let (requests, open) = connection.receive();
        for request in requests {
            self.on_request(request);
        }
        if !open {
            self.disconnected();
        }
    }

    fn on_request(&mut self, request: Request) {
        let now = self.now();
        match (request, &mut self.active) {
            (Request::Run(spec), None) if !self.leaving => {
                let state_dir = self.state_dir.clone();
                let slots = Some(&self.slots);
                let mut active =
                    Active::new(*spec, state_dir, Surroundings::Captured, slots, self.own);
                active.try_slots(now);
                self.active = Some(active);
            }
            (Request::Run(spec), _) => {
                tracing::error!(run = %spec.run_id, "refused: another run is not settled");
                self.disconnected();
            }
            (Request::Stop { run_id, how }, Some(active)) if active.spec.run_id == run_id => {
                active.stop(how, now);
            }
            (Request::Settled { run_id }, Some(active)) if active.spec.run_id == run_id => {
                active.settled();
            }
            // About a run that is over by now.
            (Request::Stop { .. } | Request::Settled { .. }, _) => {}
        }
        self.tell();
    }

    /// Sends what the run has to say and lets it go once it is over.
    fn tell(&mut self) {
        let now = self.now();
        if let Some(active) = &mut self.active {
            for message in std::mem::take(&mut active.messages) {
                let sent = self
                    .connection
                    .as_mut()
                    .is_some_and(|connection| connection.send(&message));
                if !sent {
                    self.connection = None;
                }
            }
            if self.connection.is_none() {
                active.settle_alone(now);
            }
            if active.is_over() {
                self.active = None;
            }
        }
    }

    fn disconnected(&mut self) {
        self.connection = None;
        self.tell();
    }
}
