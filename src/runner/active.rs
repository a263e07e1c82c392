//! A run being carried out: performs what the state machine decides. Single-threaded; knows no socket.

use super::bounds::{IdleWatch, OutputWatch};
use super::exit::{ExitReport, run_dir};
use super::protocol::{CurrentRun, Message, StopHow};
use super::run::{Act, Input, Phase, StopReason, next};
use super::spec::RunSpec;
use super::tree_end::TreeEnd;
use crate::budget::{SlotDir, SlotGuard, SlotText, SlotWaiter};
use crate::fsx::lock::Lock;
use crate::proc::{ChildUsage, ExitStatus, Identity, SpawnErrorKind};
use crate::types::Timestamp;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

/// Time of this process: monotonic, from an arbitrary start.
pub(super) type Mono = Duration;

/// How the child meets the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surroundings {
    /// Own session; outputs are files in the run's folder.
    Captured,
    /// The caller's terminal, group and descriptors.
    Terminal,
}

/// The slots of a run.
#[derive(Debug)]
pub(super) enum Slots {
    /// Not yet taken.
    Waiting(Box<SlotWaiter>),
    /// Locked.
    Taken(SlotGuard),
    /// None: part of a run that has its own, or given back.
    None,
}

/// One run, from the request to the moment its slots are free.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) spec: RunSpec,
    pub(super) argv: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) surroundings: Surroundings,
    pub(super) state_dir: PathBuf,
    pub(super) dir: PathBuf,
    pub(super) phase: Phase,
    pub(super) slots: Slots,
    pub(super) slot_numbers: Vec<u32>,
    pub(super) lease: Option<Lock>,
    pub(super) child: Option<Identity>,
    pub(super) status: Option<ExitStatus>,
    pub(super) spawn_error: Option<SpawnErrorKind>,
    pub(super) spawn_tries: u32,
    pub(super) outputs: Option<[File; 2]>,
    pub(super) output_watch: Option<OutputWatch>,
    pub(super) idle_watch: Option<IdleWatch>,
    pub(super) deadline_at: Option<Mono>,
    pub(super) act_at: Option<Mono>,
    pub(super) started: (Timestamp, Mono),
    pub(super) usage_before: ChildUsage,
    pub(super) peak_rss_kib: u64,
    pub(super) tree_end: TreeEnd,
    pub(super) detail: String,
    pub(super) settle: Option<super::settle::Settle>,
    pub(super) messages: Vec<Message>,
    own: Identity,
    told_waiting: bool,
}

impl Active {
    /// A run that waits for its slots. Nothing is done yet.
    pub(super) fn new(
        spec: RunSpec,
        state_dir: PathBuf,
        surroundings: Surroundings,
        slots: Option<&SlotDir>,
        own: Identity,
    ) -> Self {
        let waiter = slots.map(|slots| Box::new(slots.waiter(spec.ceiling, spec.slots)));
        Self {
            argv: spec.argv.iter().map(OsString::from).collect(),
            env: spec
                .env
                .iter()
                .map(|(n, v)| (OsString::from(n), OsString::from(v)))
                .collect(),
            surroundings,
            dir: run_dir(&state_dir, &spec.run_id),
            state_dir,
            phase: Phase::Waiting,
            slots: waiter.map_or(Slots::None, Slots::Waiting),
            slot_numbers: Vec::new(),
            lease: None,
            child: None,
            status: None,
            spawn_error: None,
            spawn_tries: 0,
            outputs: None,
            output_watch: None,
            idle_watch: None,
            deadline_at: None,
            act_at: None,
            started: (wall_now(), Duration::ZERO),
            usage_before: ChildUsage::default(),
            peak_rss_kib: 0,
            tree_end: TreeEnd::default(),
            detail: String::new(),
            settle: None,
            messages: Vec::new(),
            spec,
            own,
            told_waiting: false,
        }
    }

    /// Tries to take the slots; goes on to the spawn when it has them all.
    pub(super) fn try_slots(&mut self, now: Mono) {
        if self.phase != Phase::Waiting {
            return;
        }
        let text = SlotText {
            run_id: self.spec.run_id.clone(),
            token: self.spec.token.clone(),
            pid: self.own.pid,
            start_ticks: self.own.start_ticks,
            boot_id: crate::proc::boot_id().to_owned(),
        };
        let taken = match &mut self.slots {
            Slots::None => Ok(true),
            Slots::Taken(_) => Ok(false),
            Slots::Waiting(waiter) => match waiter.try_take(&text, &mut sweep_left_over) {
                Ok(Some(guard)) => {
                    self.slot_numbers = guard.slots().to_vec();
                    self.slots = Slots::Taken(guard);
                    Ok(true)
                }
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            },
        };
        match taken {
            Ok(true) => {
                self.act_at = None;
                self.feed(Input::SlotsTaken, now);
            }
            Ok(false) => {
                if let Slots::Waiting(waiter) = &self.slots {
                    self.act_at = Some(now + waiter.retry_after());
                }
                if !self.told_waiting {
                    self.told_waiting = true;
                    self.messages.push(Message::Waiting {
                        run_id: self.spec.run_id.clone(),
                    });
                }
            }
            Err(error) => {
                self.detail = format!("no slot can be taken: {error}");
                self.feed(Input::SpawnFailed, now);
            }
        }
    }

    /// Readable when slots may have become free.
    pub(super) fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.slots {
            Slots::Waiting(waiter) => waiter.event_fd(),
            Slots::Taken(_) | Slots::None => None,
        }
    }

    /// When something is due although nothing happens.
    pub(super) fn due(&self) -> Option<Mono> {
        let looks = matches!(
            self.phase,
            Phase::Running | Phase::Stopping(_) | Phase::Killing(_)
        );
        let running = self.phase == Phase::Running;
        [
            self.act_at,
            self.deadline_at.filter(|_| running),
            self.output_watch
                .as_ref()
                .filter(|_| looks)
                .map(OutputWatch::due),
            self.idle_watch
                .as_ref()
                .filter(|_| running)
                .map(IdleWatch::due),
            self.settle.as_ref().and_then(super::settle::Settle::due),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Does what is due.
    pub(super) fn on_time(&mut self, now: Mono) {
        if self.phase == Phase::Waiting {
            if self.act_at.is_some_and(|at| at <= now) {
                self.try_slots(now);
            }
            return;
        }
        if self.settle.is_some() {
            self.settle_on_time(now);
            return;
        }
        self.look(now);
        if self.phase == Phase::Running && self.deadline_at.is_some_and(|at| at <= now) {
            self.stop_for(StopReason::TimedOut, now);
        }
        if self.act_at.is_some_and(|at| at <= now) {
            self.act_at = None;
            self.feed(Input::TimeOver, now);
        }
    }

    /// A request to stop.
    pub(super) fn stop(&mut self, how: StopHow, now: Mono) {
        let input = match how {
            StopHow::Term => Input::Stop(StopReason::Cancelled),
            StopHow::Kill => Input::StopNow(StopReason::Cancelled),
        };
        self.feed(input, now);
    }

    /// Stops the run because a bound was passed.
    pub(super) fn stop_for(&mut self, reason: StopReason, now: Mono) {
        self.feed(Input::Stop(reason), now);
    }

    /// Gives the machine an input and performs what it decides, until it decides to wait.
    pub(super) fn feed(&mut self, input: Input, now: Mono) {
        let mut input = Some(input);
        while let Some(current) = input.take() {
            match next(self.phase, current) {
                Ok((phase, act)) => {
                    self.phase = phase;
                    input = self.perform(act, now);
                }
                // Ours to avoid; a run must not die of it, and the tree is still watched.
                Err(illegal) => tracing::error!(run = %self.spec.run_id, %illegal, "ignored"),
            }
        }
    }

    fn perform(&mut self, act: Act, now: Mono) -> Option<Input> {
        match act {
            Act::Wait => None,
            Act::Spawn => Some(self.spawn(now)),
            Act::Term => {
                self.term_tree(now);
                None
            }
            Act::Kill => {
                self.kill_tree(now);
                None
            }
            Act::Finish => {
                self.finish(now);
                None
            }
        }
    }

    /// What somebody who connects is told.
    pub(super) fn current(&self) -> CurrentRun {
        CurrentRun {
            run_id: self.spec.run_id.clone(),
            child: self.child,
            slots: self.slot_numbers.clone(),
            exited: self.report().cloned(),
        }
    }

    /// The end, once there is one.
    pub(super) fn report(&self) -> Option<&ExitReport> {
        self.settle.as_ref().map(|settle| &settle.report)
    }

    /// Whether its slots are free and nothing is left to do.
    pub(super) fn is_over(&self) -> bool {
        self.settle.as_ref().is_some_and(|settle| settle.is_done())
    }

    /// The runner (or `flockd run`) whose children these are.
    pub(super) fn own_pid(&self) -> u32 {
        self.own.pid
    }
}

/// Ends what is left of a slot's last run; answers whether nothing is.
pub(super) fn sweep_left_over(text: &SlotText) -> bool {
    text.boot_id != crate::proc::boot_id() || crate::proc::sweep_token(&text.token).clean
}

/// The wall clock, for labels.
pub(super) fn wall_now() -> Timestamp {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
