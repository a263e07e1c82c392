//! `run -- CMD`: one child on the caller's terminal, under the same ceiling, with facts and a folder.

use super::context::Context;
use super::facts::append;
use super::failure::{Failure, Outcome};
use super::queue::now;
use super::run::RunArgs;
use crate::budget::SlotDir;
use crate::config::Config;
use crate::ledger::{FactBody, NewFact};
use crate::proc::TOKEN_VARIABLE;
use crate::runner::{
    ExitReport, ForegroundEvent, ForegroundSpec, RunInput, RunLimits, RunSpec, client_ceiling,
    foreground, hold_as_client, is_nested,
};
use crate::types::{LeaseId, Outcome as RunOutcome, RunId, TaskId, Verdict};
use std::ffi::OsString;
use std::time::Duration;

/// The stage's and the role's name of a run that has none.
const NO_STAGE: &str = "run";

/// The lease that a command runs under.
pub(super) struct UnderLease {
    pub(super) task: TaskId,
    pub(super) lease_id: LeaseId,
    pub(super) epoch: u64,
}

/// Runs the command and ends as it does.
pub(super) fn run_one(context: &Context, args: &RunArgs) -> Outcome {
    let config = context.load()?.config;
    run_command(
        context,
        &config,
        &args.command,
        args.weight,
        args.timeout,
        None,
    )
}

/// Runs a command, under a lease or not; the exit code is the command's.
pub(super) fn run_command(
    context: &Context,
    config: &Config,
    command: &[OsString],
    weight: u32,
    timeout: Option<Duration>,
    lease: Option<UnderLease>,
) -> Outcome {
    let mut spec = spec_of(config, command, weight, timeout)?;
    if let Some(lease) = lease {
        spec.run.task_id = Some(lease.task);
        spec.run.lease_id = Some(lease.lease_id);
        spec.run.lease_epoch = Some(lease.epoch);
    }
    let state_dir = config.state_dir.clone();
    // To the end: a daemon that starts meanwhile sees by it that this run is ours.
    let _hold = hold_as_client(&state_dir, &spec.run)?;
    let run = spec.run.run_id.clone();
    let task = spec.run.task_id.clone();
    let fact = |body| NewFact::of_run(now(), task.as_ref(), &run, body);
    // Durable before the child exists: after a crash its processes are found by the token.
    let intended = FactBody::RunIntended {
        worker: spec.run.worker,
        stage: spec.run.stage.clone(),
        role: spec.run.role.clone(),
        attempt: spec.run.attempt,
        slots: spec.run.slots,
        token: spec.run.token.clone(),
    };
    append(&state_dir, &[fact(intended)])?;
    let mut told = false;
    let ended = foreground(spec, &mut |event| match event {
        ForegroundEvent::WaitingForSlot if !told => {
            told = true;
            if context.verbose > 0 {
                super::output::say("waiting for a slot");
            }
        }
        ForegroundEvent::WaitingForSlot => {}
        ForegroundEvent::Started { identity, slots } => {
            let body = FactBody::RunStarted {
                pid: identity.pid,
                start_ticks: identity.start_ticks,
                slots,
            };
            // The child runs: a ledger that cannot be written must not take its terminal away.
            if let Err(failure) = append(&state_dir, &[fact(body)]) {
                super::output::say(format!("warning: {}", failure.message));
            }
        }
    })
    .map_err(Failure::failed)?;
    if let Err(failure) = append(&state_dir, &[fact(exited(&ended.report))]) {
        super::output::say(format!("warning: {}", failure.message));
    }
    if let Some(line) = unsaid(&ended.report, command) {
        super::output::say(line);
    }
    Ok(ended.exit_code)
}

/// What the command could not say itself: that it was never started, or that its time was up.
fn unsaid(report: &ExitReport, command: &[OsString]) -> Option<String> {
    match report.outcome {
        RunOutcome::SpawnFailed => Some(report.detail.clone()),
        RunOutcome::TimedOut => Some(format!(
            "{} was stopped: its time (--timeout) was up",
            command.first()?.to_string_lossy()
        )),
        _ => None,
    }
}

fn spec_of(
    config: &Config,
    command: &[OsString],
    weight: u32,
    timeout: Option<Duration>,
) -> Result<ForegroundSpec, Failure> {
    let state_dir = config.state_dir.clone();
    crate::fsx::create_dir_all(&state_dir)?;
    let slots = SlotDir::open(&state_dir)?;
    let run_id = RunId::new(&ulid::Ulid::generate().to_string()).map_err(Failure::failed)?;
    let nested = is_nested(&state_dir);
    let outer = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    // A nested command is part of its run's tree: it keeps that token, so one sweep finds all.
    let token = match outer(TOKEN_VARIABLE).filter(|_| nested) {
        Some(token) => token,
        None => ulid::Ulid::generate().to_string() + &ulid::Ulid::generate().to_string(),
    };
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let mut set = |name: &str, value: OsString| {
        env.retain(|(have, _)| have != name);
        env.push((name.into(), value));
    };
    set(TOKEN_VARIABLE, token.clone().into());
    set("FLOCKD_RUN_ID", run_id.as_str().into());
    set("FLOCKD_STATE_DIR", state_dir.clone().into_os_string());
    let lossy = |text: &OsString| text.to_string_lossy().into_owned();
    let run = RunSpec {
        run_id,
        task_id: outer("FLOCKD_TASK_ID").and_then(|id| TaskId::new(&id).ok()),
        worker: 0,
        stage: NO_STAGE.to_owned(),
        role: NO_STAGE.to_owned(),
        attempt: 1,
        argv: command.iter().map(lossy).collect(),
        cwd: std::env::current_dir().map_err(Failure::failed)?,
        env: env
            .iter()
            .map(|(name, value)| (lossy(name), lossy(value)))
            .collect(),
        input: RunInput::Null,
        limits: RunLimits {
            deadline_ms: millis(timeout.unwrap_or_default()),
            idle_ms: 0,
            grace_ms: millis(config.limits.grace),
            output_max: config.limits.output_max,
            output_stop: 0,
        },
        slots: weight,
        ceiling: client_ceiling(&state_dir, &slots, config.loop_.global_concurrency),
        lease_id: None,
        lease_epoch: None,
        token,
        created_at: now(),
    };
    Ok(ForegroundSpec {
        state_dir,
        run,
        argv: command.to_vec(),
        env,
        nested,
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn exited(report: &ExitReport) -> FactBody {
    FactBody::RunExited {
        outcome: report.outcome,
        exit_code: report.exit_code,
        signal: report.signal,
        verdict: match report.outcome {
            RunOutcome::Succeeded => Verdict::Pass,
            other => Verdict::Fail(other.to_string()),
        },
        detail: report.detail.clone(),
        started_at: report.started_at,
        ended_at: report.ended_at,
        duration_ms: report.duration_ms,
        user_ms: report.user_ms,
        system_ms: report.system_ms,
        max_rss_kib: report.max_rss_kib,
        stdout_bytes: report.stdout_bytes,
        stderr_bytes: report.stderr_bytes,
        truncated: report.truncated,
        stragglers_killed: report.stragglers_killed,
    }
}
