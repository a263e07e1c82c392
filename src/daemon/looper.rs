//! The loop itself: takes one input at a time, asks the core, queues what follows.

use super::clock::Clock;
use super::effector::{Work, ledger_failed, split};
use super::input::Input;
use super::launch::{lost, run_end};
use super::report::Reporter;
use crate::api::{ErrorCode, Reply, Request};
use crate::engine::{Core, Event, Finish, StopLevel, StopSource};
use crate::ledger::LedgerHandle;
use crate::runner::{RunnerEvent, read_exit};
use crate::types::RunId;
use std::collections::HashMap;
use std::path::PathBuf;
use tokio::sync::{mpsc, oneshot};

/// The loop's state around the core.
pub(super) struct Looper {
    pub(super) core: Core,
    pub(super) clock: Clock,
    pub(super) ledger: LedgerHandle,
    pub(super) work: mpsc::UnboundedSender<Work>,
    pub(super) inputs: mpsc::UnboundedSender<Input>,
    pub(super) reporter: Reporter,
    pub(super) state_dir: PathBuf,
    /// Tokens of open runs, to sweep by when their runner dies.
    pub(super) tokens: HashMap<RunId, String>,
}

impl Looper {
    /// Runs until the loop has its last word or the ledger fails.
    pub(super) async fn run(
        &mut self,
        mut rx: mpsc::UnboundedReceiver<Input>,
    ) -> Result<Finish, String> {
        while let Some(input) = rx.recv().await {
            match input {
                Input::LedgerFailed(error) => return Err(ledger_failed(&error)),
                Input::Finished(finish) => return Ok(finish),
                other => self.input(other),
            }
        }
        Err("the loop lost its inputs".to_owned())
    }

    /// Takes one input that does not end the loop.
    pub(super) fn input(&mut self, input: Input) {
        match input {
            Input::Event(event) => self.event(event),
            Input::Runner(event) => self.runner(event),
            Input::Swept(run, report) => {
                let end = Box::new(match report {
                    Some(report) => run_end(&self.state_dir, *report),
                    None => lost("its runner died; its processes were ended".to_owned()),
                });
                self.event(Event::RunExited { run, end });
            }
            Input::Request(request, to) => self.request(request, to),
            Input::Malformed(list) => self.malformed(list),
            Input::LedgerFailed(_) | Input::Finished(_) => {}
        }
    }

    /// Malformed task files stop nothing; each is told of once per change.
    fn malformed(&mut self, list: Vec<(PathBuf, String)>) {
        let new: Vec<_> = list
            .iter()
            .filter(|m| !self.reporter.malformed.contains(m))
            .collect();
        let lines: Vec<_> = new
            .iter()
            .map(|(_, error)| crate::engine::Effect::Say(format!("task file ignored: {error}")))
            .collect();
        self.queue(lines);
        self.reporter.malformed = list;
    }

    /// Gives the core one event and queues what follows.
    pub(super) fn event(&mut self, event: Event) {
        let effects = self.core.handle(self.clock.now(), event);
        self.queue(effects);
    }

    pub(super) fn queue(&mut self, effects: Vec<crate::engine::Effect>) {
        if effects.is_empty() {
            return;
        }
        for effect in &effects {
            match effect {
                crate::engine::Effect::Launch(plan) => {
                    self.tokens.insert(plan.run.clone(), plan.token.clone());
                }
                crate::engine::Effect::Settle { run } => drop(self.tokens.remove(run)),
                _ => {}
            }
        }
        self.ledger.set_next_task(self.core.next_task_id());
        drop(self.work.send(split(&self.ledger, effects)));
    }

    fn runner(&mut self, event: RunnerEvent) {
        match event {
            RunnerEvent::WaitingForSlot { run_id } => {
                self.event(Event::SlotFileBusy { run: run_id });
            }
            RunnerEvent::Started {
                run_id,
                identity,
                slots,
            } => self.event(Event::RunStarted {
                run: run_id,
                pid: identity.pid,
                start_ticks: identity.start_ticks,
                slots,
            }),
            RunnerEvent::Exited { run_id, report } => {
                let end = Box::new(run_end(&self.state_dir, report));
                self.event(Event::RunExited { run: run_id, end });
            }
            RunnerEvent::RunnerDied { run_id } => self.sweep(run_id),
        }
    }

    /// A dead runner's tree is swept before its end is told: `lost` means gone (fault 44). It may have died
    /// between the end of its child and our answer: then `exit.json` has the end.
    fn sweep(&self, run: RunId) {
        let (inputs, token) = (self.inputs.clone(), self.tokens.get(&run).cloned());
        let state_dir = self.state_dir.clone();
        tokio::task::spawn_blocking(move || {
            let report = read_exit(&state_dir, &run).ok().flatten().map(Box::new);
            if let Some(token) = token {
                let swept = crate::proc::sweep_token(&token);
                tracing::warn!(%run, ?swept, "a runner died; its tree was swept");
            }
            drop(inputs.send(Input::Swept(run, report)));
        });
    }

    fn request(&mut self, request: Request, to: oneshot::Sender<Reply>) {
        let now = self.clock.now();
        let reply = match request {
            Request::Status => Reply::Status(Box::new(self.reporter.status(&self.core, now))),
            Request::Why { task } => {
                Reply::Why(Box::new(self.reporter.why(&self.core, now, &task)))
            }
            Request::List => Reply::List {
                tasks: self.reporter.list(&self.core, now),
            },
            Request::Stop { now: at_once } => {
                let level = if at_once {
                    StopLevel::Now
                } else {
                    StopLevel::Drain
                };
                self.event(Event::Stop(level, StopSource::Command));
                Reply::Done {
                    message: if at_once { "stopping" } else { "draining" }.to_owned(),
                }
            }
            Request::Cancel { task } => match self.reporter.known(&self.core, &task) {
                true => {
                    let message = format!("{task} is cancelled");
                    self.event(Event::Cancel(task));
                    Reply::Done { message }
                }
                false => Reply::error(ErrorCode::NotFound, format!("no task {task}")),
            },
            Request::Retry { task } => {
                if self.core.is_in_flight(&task) {
                    Reply::error(ErrorCode::Refused, format!("{task} is in flight"))
                } else if self.reporter.known(&self.core, &task) {
                    let message = format!("{task} will be tried again");
                    self.event(Event::Retry(task));
                    Reply::Done { message }
                } else {
                    Reply::error(ErrorCode::NotFound, format!("no task {task}"))
                }
            }
            other => Reply::error(
                ErrorCode::BadRequest,
                format!("not a request for the loop: {other:?}"),
            ),
        };
        drop(self.work.send(Work::Answer { to, reply }));
    }
}
