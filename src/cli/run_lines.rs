//! `run --lines`: one child per line under the same ceiling, with facts and logs, through kept runners.
//!
//! ```text
//! line → permit → durable intent → folder → runner → child → end → durable end → slot and permit back
//! ```
//! Facts of many runs share one write and one sync (a thread gathers while the last sync runs).

use super::context::Context;
use super::facts::Sink;
use super::failure::{Failure, Outcome};
use super::line_input::{argv_of, read_lines};
use super::queue::now;
use super::run::RunArgs;
use super::run_one::exited;
use crate::budget::{BoundedSemaphore, Permit, SlotDir};
use crate::config::Config;
use crate::ledger::{FactBody, NewFact};
use crate::runner::{
    ClientHold, ExitReport, Pool, PoolSettings, RunInput, RunLimits, RunSpec, RunnerEvent, StopHow,
    client_ceiling, hold_as_client, is_nested,
};
use crate::types::{Outcome as RunOutcome, RunId};
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc as std_mpsc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

/// Exit code after a signal.
const INTERRUPTED: u8 = 130;

type Durable = oneshot::Sender<Result<(), String>>;

/// Runs every line; exit code 0 when all succeeded, 1 when one did not, 130 when interrupted.
pub(super) fn run_lines(context: &Context, args: &RunArgs, source: &Path) -> Outcome {
    let config = context.load()?.config;
    if is_nested(&config.state_dir) {
        return Err(Failure::refused(
            "inside a run there is only that run's slot: use `flockd run -- CMD` for one command",
        ));
    }
    crate::fsx::create_dir_all(&config.state_dir)?;
    crate::proc::raise_fd_limit();
    let input: Box<dyn Read + Send> = if source == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(crate::fsx::open_input(source)?)
    };
    let sink = Sink::open(&config.state_dir)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::failed)?;
    let code = runtime.block_on(Lines::new(context, &config, args, sink)?.run(input))?;
    // The reader of standard input may wait for a line that nobody will type.
    runtime.shutdown_background();
    Ok(code)
}

/// A line that is being run.
struct Open {
    number: usize,
    command: String,
    token: String,
    _permit: Permit,
    _hold: ClientHold,
}

struct Lines {
    spec: RunSpec,
    semaphore: BoundedSemaphore,
    pool: Pool,
    events: mpsc::UnboundedReceiver<RunnerEvent>,
    facts: std_mpsc::Sender<(Vec<NewFact>, Option<Durable>)>,
    config: Config,
    json: bool,
    open: HashMap<RunId, Open>,
    run: usize,
    failed: usize,
    signals: u32,
}

impl Lines {
    fn new(
        context: &Context,
        config: &Config,
        args: &RunArgs,
        sink: Sink,
    ) -> Result<Self, Failure> {
        let slots = SlotDir::open(&config.state_dir)?;
        let ceiling = client_ceiling(&config.state_dir, &slots, config.loop_.global_concurrency);
        let (tx, events) = mpsc::unbounded_channel();
        let settings = PoolSettings {
            state_dir: config.state_dir.clone(),
            runtime_dir: crate::fsx::runtime_dir(&config.state_dir)?,
            exe: std::env::current_exe().map_err(Failure::failed)?,
            prefix: format!("l{}-", std::process::id()),
        };
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let spec = RunSpec {
            run_id: RunId::new("template").map_err(Failure::failed)?,
            task_id: None,
            worker: 0,
            stage: "run".to_owned(),
            role: "line".to_owned(),
            attempt: 1,
            argv: Vec::new(),
            cwd: std::env::current_dir().map_err(Failure::failed)?,
            env: std::env::vars_os()
                .map(|(n, v)| {
                    (
                        n.to_string_lossy().into_owned(),
                        v.to_string_lossy().into_owned(),
                    )
                })
                .collect(),
            input: RunInput::Null,
            limits: RunLimits {
                deadline_ms: millis(args.timeout.unwrap_or_default()),
                idle_ms: 0,
                grace_ms: millis(config.limits.grace),
                output_max: config.limits.output_max,
                output_stop: 0,
            },
            slots: args.weight,
            ceiling,
            lease_id: None,
            lease_epoch: None,
            token: String::new(),
            created_at: now(),
        };
        Ok(Self {
            spec,
            semaphore: BoundedSemaphore::new(ceiling),
            pool: Pool::new(settings, tx),
            events,
            facts: writer(sink),
            config: config.clone(),
            json: context.json,
            open: HashMap::new(),
            run: 0,
            failed: 0,
            signals: 0,
        })
    }

    async fn run(mut self, input: Box<dyn Read + Send>) -> Result<u8, Failure> {
        let mut lines = read_lines(input);
        let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(Failure::failed)?;
        let semaphore = self.semaphore.clone();
        let (mut ended, mut failure) = (false, None);
        while !(ended && self.open.is_empty()) {
            let next = async {
                let permit = semaphore.acquire(self.spec.slots, None).await.ok()?;
                lines.recv().await.map(|line| (permit, line))
            };
            tokio::select! {
                biased;
                Some(()) = interrupt.recv() => self.on_signal(&mut ended),
                Some(()) = terminate.recv() => self.on_signal(&mut ended),
                Some(event) = self.events.recv() => {
                    let heard = self.on_event(event).await;
                    no_more_after(heard, &mut ended, &mut failure);
                }
                next = next, if !ended => match next {
                    Some((permit, Ok(line))) => {
                        let started = self.start(permit, line).await;
                        no_more_after(started, &mut ended, &mut failure);
                    }
                    Some((_, Err(unreadable))) => {
                        no_more_after(Err(unreadable), &mut ended, &mut failure);
                    }
                    None => ended = true,
                },
            }
        }
        self.pool.close();
        if let Some(failure) = failure {
            return Err(failure);
        }
        let (run, failed) = (self.run, self.failed);
        super::output::say(format!("{run} run, {failed} failed"));
        Ok(match (self.signals, failed) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => INTERRUPTED,
        })
    }

    fn on_signal(&mut self, ended: &mut bool) {
        *ended = true;
        self.signals += 1;
        if self.signals > 1 {
            let how = if self.signals == 2 {
                StopHow::Term
            } else {
                StopHow::Kill
            };
            for run in self.open.keys() {
                self.pool.stop(run, how);
            }
        }
    }

    async fn start(
        &mut self,
        permit: Permit,
        (number, command): (usize, String),
    ) -> Result<(), Failure> {
        let mut spec = self.spec.clone();
        spec.run_id = RunId::new(&ulid::Ulid::generate().to_string()).map_err(Failure::failed)?;
        spec.token = ulid::Ulid::generate().to_string() + &ulid::Ulid::generate().to_string();
        spec.argv = argv_of(&command);
        spec.created_at = now();
        let own = [
            (crate::proc::TOKEN_VARIABLE, spec.token.clone()),
            ("FLOCKD_RUN_ID", spec.run_id.to_string()),
            (
                "FLOCKD_STATE_DIR",
                self.config.state_dir.display().to_string(),
            ),
        ];
        for (name, value) in own {
            spec.env.retain(|(have, _)| have != name);
            spec.env.push((name.to_owned(), value));
        }
        let run = spec.run_id.clone();
        let hold = hold_as_client(&self.config.state_dir, &spec)?;
        self.record(
            &run,
            FactBody::RunIntended {
                worker: 0,
                stage: spec.stage.clone(),
                role: spec.role.clone(),
                attempt: 1,
                slots: spec.slots,
                token: spec.token.clone(),
            },
        )
        .await?;
        self.open.insert(
            run.clone(),
            Open {
                number,
                command,
                token: spec.token.clone(),
                _permit: permit,
                _hold: hold,
            },
        );
        if let Err(error) = self.pool.launch(spec).await {
            let report =
                ExitReport::without_child(&run, RunOutcome::SpawnFailed, now(), error.to_string());
            self.ended(&run, report).await?;
        }
        Ok(())
    }

    async fn on_event(&mut self, event: RunnerEvent) -> Result<(), Failure> {
        match event {
            RunnerEvent::WaitingForSlot { .. } => Ok(()),
            RunnerEvent::Started {
                run_id,
                identity,
                slots,
            } => {
                let body = FactBody::RunStarted {
                    pid: identity.pid,
                    start_ticks: identity.start_ticks,
                    slots,
                };
                // Nothing waits for it: it is durable with the next batch, before this run's end.
                drop(
                    self.facts
                        .send((vec![NewFact::of_run(now(), None, &run_id, body)], None)),
                );
                Ok(())
            }
            RunnerEvent::Exited { run_id, report } => self.ended(&run_id, report).await,
            RunnerEvent::RunnerDied { run_id } => {
                self.sweep(&run_id).await;
                let report = crate::runner::read_exit(&self.config.state_dir, &run_id)?
                    .unwrap_or_else(|| {
                        ExitReport::without_child(
                            &run_id,
                            RunOutcome::Lost,
                            now(),
                            "its runner died".to_owned(),
                        )
                    });
                self.ended(&run_id, report).await
            }
        }
    }

    /// A dead runner's tree goes before its end is told.
    async fn sweep(&self, run: &RunId) {
        if let Some(token) = self.open.get(run).map(|open| open.token.clone()) {
            let swept = tokio::task::spawn_blocking(move || crate::proc::sweep_token(&token)).await;
            tracing::warn!(%run, ?swept, "a runner died; its tree was swept");
        }
    }

    async fn ended(&mut self, run: &RunId, report: ExitReport) -> Result<(), Failure> {
        let open = self.open.remove(run);
        self.record(run, exited(&report)).await?;
        self.pool.settled(run);
        let Some(open) = open else {
            return Ok(());
        };
        self.run += 1;
        if report.outcome != RunOutcome::Succeeded {
            self.failed += 1;
            super::output::say(format!(
                "line {}: {} ({}): {}",
                open.number,
                report.outcome,
                run,
                if report.detail.is_empty() {
                    &open.command
                } else {
                    &report.detail
                }
            ));
        }
        if self.json {
            super::output::line(
                &serde_json::json!({
                    "line": open.number,
                    "run_id": run,
                    "outcome": report.outcome,
                    "exit_code": report.exit_code,
                    "duration_ms": report.duration_ms,
                })
                .to_string(),
            )?;
        }
        Ok(())
    }

    async fn record(&self, run: &RunId, body: FactBody) -> Result<(), Failure> {
        let (done, durable) = oneshot::channel();
        drop(
            self.facts
                .send((vec![NewFact::of_run(now(), None, run, body)], Some(done))),
        );
        match durable.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(message)) => Err(Failure::failed(message)),
            Err(_) => Err(Failure::failed("the writer of facts is gone")),
        }
    }
}

/// After a failure nothing more is started; what runs is still watched over to its end.
fn no_more_after(done: Result<(), Failure>, ended: &mut bool, failure: &mut Option<Failure>) {
    if let Err(error) = done {
        *ended = true;
        failure.get_or_insert(error);
    }
}

/// One write and one sync for all facts that came while the last ones were being written.
fn writer(mut sink: Sink) -> std_mpsc::Sender<(Vec<NewFact>, Option<Durable>)> {
    let (tx, rx) = std_mpsc::channel::<(Vec<NewFact>, Option<Durable>)>();
    std::thread::spawn(move || {
        while let Ok(first) = rx.recv() {
            let (mut facts, mut waiting) = (Vec::new(), Vec::new());
            for (some, done) in std::iter::once(first).chain(rx.try_iter()) {
                facts.extend(some);
                waiting.extend(done);
            }
            let result = sink.append(&facts).map_err(|failure| failure.message);
            for done in waiting {
                drop(done.send(result.clone()));
            }
        }
    });
    tx
}
