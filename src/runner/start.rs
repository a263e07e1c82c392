//! Starting a run's child: lease, outputs, input, spawn. What cannot be had becomes a named outcome.

use super::active::{Active, Mono, Surroundings, wall_now};
use super::bounds::{IdleWatch, OutputWatch};
use super::protocol::Message;
use super::run::{Input, StopReason};
use super::spec::RunInput;
use crate::fsx::lock::Lock;
use crate::fsx::{self, FsError};
use crate::proc::{
    ChildFiles, ChildSpec, Dispositions, Identity, Placement, SpawnError, children_usage,
    identity_of, spawn_child, without_stop,
};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// Tries of a spawn that meets a passing shortage; with the pauses about 8 seconds.
const SPAWN_TRIES_MAX: u32 = 10;
const SPAWN_PAUSE_FIRST: Duration = Duration::from_millis(20);
const SPAWN_PAUSE_MAX: Duration = Duration::from_secs(2);

struct Streams {
    stdin: File,
    outputs: [File; 2],
}

impl Active {
    /// Tries to start the child once.
    pub(super) fn spawn(&mut self, now: Mono) -> Input {
        if let Err(why) = self.hold_lease() {
            self.detail = why;
            return Input::Stop(StopReason::Cancelled);
        }
        let streams = match self.open_streams() {
            Ok(streams) => streams,
            Err(error) => {
                self.detail = format!("the run's files cannot be opened: {error}");
                return Input::SpawnFailed;
            }
        };
        self.usage_before = children_usage();
        self.started = (wall_now(), now);
        match self.spawn_with(streams.as_ref()) {
            Ok(pid) => {
                self.outputs = streams.map(|streams| streams.outputs);
                self.spawned(pid, now);
                Input::Spawned
            }
            Err(error) => self.spawn_failed(&error, now),
        }
    }

    fn spawn_with(&self, streams: Option<&Streams>) -> Result<u32, SpawnError> {
        let captured = self.surroundings == Surroundings::Captured;
        let files = match streams {
            Some(Streams {
                stdin,
                outputs: [stdout, stderr],
            }) => ChildFiles::Given {
                stdin,
                stdout,
                stderr,
            },
            None => ChildFiles::Inherit,
        };
        let child = ChildSpec {
            argv: &self.argv,
            env: &self.env,
            cwd: captured.then_some(self.spec.cwd.as_path()),
            files,
            placement: if captured {
                Placement::OwnSession
            } else {
                Placement::Inherit
            },
            dispositions: if captured {
                Dispositions::Default
            } else {
                Dispositions::Inherit
            },
        };
        if captured {
            spawn_child(&child)
        } else {
            without_stop(|| spawn_child(&child))
        }
    }

    fn spawned(&mut self, pid: u32, now: Mono) {
        // Our own unreaped child: its entry is there, even when it has ended already.
        let child = identity_of(pid).unwrap_or(Identity {
            pid,
            start_ticks: 0,
        });
        let limits = &self.spec.limits;
        let bound = Duration::from_millis(limits.deadline_ms);
        self.child = Some(child);
        self.deadline_at = (!bound.is_zero()).then(|| now + bound);
        if self.outputs.is_some() {
            self.output_watch = Some(OutputWatch::new(*limits, now));
            self.idle_watch = IdleWatch::new(limits, now);
        }
        self.messages.push(Message::Started {
            run_id: self.spec.run_id.clone(),
            child,
            slots: self.slot_numbers.clone(),
        });
    }

    fn spawn_failed(&mut self, error: &SpawnError, now: Mono) -> Input {
        self.spawn_tries += 1;
        self.spawn_error = Some(error.kind);
        if error.is_passing() && self.spawn_tries < SPAWN_TRIES_MAX {
            let pause =
                (SPAWN_PAUSE_FIRST * 2_u32.saturating_pow(self.spawn_tries)).min(SPAWN_PAUSE_MAX);
            self.act_at = Some(now + jitter(pause, self.own_pid()));
            return Input::SpawnDelayed;
        }
        self.detail = if error.is_passing() {
            format!("{error} (after {} tries)", self.spawn_tries)
        } else {
            error.to_string()
        };
        Input::SpawnFailed
    }

    /// The lease's live file, shared with its owner: nobody can take the lease over while we live (P2).
    fn hold_lease(&mut self) -> Result<(), String> {
        let Some(lease) = self.spec.lease_id.as_ref().filter(|_| self.lease.is_none()) else {
            return Ok(());
        };
        let path = self.state_dir.join("leases").join(format!("{lease}.live"));
        // Opening would make a new file under a name that nobody looks at any more.
        if !path.is_file() {
            return Err(format!("lease {lease} was released before the run began"));
        }
        match Lock::try_shared(&path) {
            Ok(Some(lock)) => {
                self.lease = Some(lock);
                Ok(())
            }
            Ok(None) => Err(format!(
                "lease {lease} is being taken over by somebody else"
            )),
            Err(error) => Err(format!("lease {lease} cannot be held: {error}")),
        }
    }

    fn open_streams(&self) -> Result<Option<Streams>, FsError> {
        if self.surroundings == Surroundings::Terminal {
            return Ok(None);
        }
        let stdin = match self.spec.input {
            RunInput::Null => fsx::open_input(Path::new("/dev/null"))?,
            RunInput::Prompt => fsx::open_input(&self.dir.join("prompt"))?,
        };
        let outputs = [
            fsx::open_output(&self.dir.join("stdout.log"))?,
            fsx::open_output(&self.dir.join("stderr.log"))?,
        ];
        Ok(Some(Streams { stdin, outputs }))
    }
}

/// Between half of the pause and all of it, so that many runners do not come back in step.
fn jitter(pause: Duration, salt: u32) -> Duration {
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    let share = nanos
        .wrapping_mul(2_654_435_761)
        .wrapping_add(salt.wrapping_mul(40_503))
        % 512;
    pause / 2 + pause / 2 * share / 512
}
