//! `lease claim`, `lease release`, `lease list`: the claim section for scripts and agents.

use super::context::Context;
use super::facts::append;
use super::failure::{Failure, Outcome};
use super::output;
use super::queue::now;
use super::run_one::{UnderLease, run_command};
use crate::fsx;
use crate::lease::{
    ClaimRequest, Claimed, Holder, LeaseError, LeaseManager, LeaseRecord, LeaseView, Released,
    read_leases,
};
use crate::ledger::{FactBody, NewFact};
use crate::proc::{boot_id, hostname};
use crate::types::{ClaimSet, LeaseId, TaskId, parse_duration};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// How long a lease without a living holder lives when nobody says.
const TTL_MINUTES_DEFAULT: u64 = 30;

#[derive(Debug, Subcommand)]
pub(super) enum LeaseCommand {
    /// Claim paths for a task; with a command the lease lives as long as it
    Claim(ClaimArgs),
    /// Give a lease back
    Release {
        /// The lease's id
        lease: LeaseId,
    },
    /// List the leases
    List,
}

#[derive(Debug, Args)]
pub(super) struct ClaimArgs {
    /// The task that claims
    #[arg(long)]
    task: TaskId,
    /// Paths, folders or globs of the repository
    #[arg(required = true)]
    paths: Vec<String>,
    /// How long a lease without a command lives [env: FLOCKD_LEASE_TTL_MINUTES] [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,
    /// The command that the lease lives as long as
    #[arg(last = true)]
    command: Vec<OsString>,
}

impl From<LeaseError> for Failure {
    fn from(error: LeaseError) -> Self {
        match &error {
            error if error.is_conflict() => Self::refused(error),
            LeaseError::Empty => Self::invalid(error),
            _ => Self::failed(error),
        }
    }
}

/// Claims, releases or lists.
pub(super) fn lease(context: &Context, command: LeaseCommand) -> Outcome {
    match command {
        LeaseCommand::Claim(args) => claim(context, args),
        LeaseCommand::Release { lease } => release(context, &lease),
        LeaseCommand::List => list(context),
    }
}

fn claim(context: &Context, args: ClaimArgs) -> Outcome {
    let paths = ClaimSet::parse(&args.paths).map_err(Failure::invalid)?;
    let config = context.load()?.config;
    fsx::create_dir_all(&config.state_dir)?;
    let manager = LeaseManager::open(&config.state_dir)?;
    let lives_by_itself = args.command.is_empty();
    let Claimed {
        lease,
        held,
        replaced,
        reclaimed,
    } = manager.claim_disjoint(&ClaimRequest {
        task: args.task.clone(),
        paths,
        holder: Holder {
            boot_id: boot_id().to_owned(),
            host: hostname().to_owned(),
            pid: std::process::id(),
            started_at: now(),
        },
        run_ids: Vec::new(),
        ttl: lives_by_itself.then(|| args.ttl.unwrap_or_else(default_ttl)),
    })?;
    if !reclaimed.is_empty()
        && let Err(error) = crate::runner::sweep_dead_slots(&config.state_dir)
    {
        output::say(format!("warning: {error}"));
    }
    // The epoch is durable before anybody acts on the claim.
    if let Err(failure) = record(&config.state_dir, &lease, replaced, &reclaimed) {
        drop(held);
        manager.release(&lease.lease_id, lease.epoch)?;
        return Err(failure);
    }
    if lives_by_itself {
        drop(held);
        if context.json {
            output::json(&lease)?;
        } else {
            output::line(lease.lease_id.as_str())?;
        }
        return Ok(0);
    }
    let under = UnderLease {
        task: args.task,
        lease_id: lease.lease_id.clone(),
        epoch: lease.epoch,
    };
    let ended = run_command(context, &config, &args.command, 1, None, Some(under));
    drop(held);
    manager.release(&lease.lease_id, lease.epoch)?;
    let released = FactBody::LeaseReleased {
        lease_id: lease.lease_id.clone(),
    };
    if let Err(failure) = append(
        &config.state_dir,
        &[NewFact::of_task(now(), &lease.task_id, released)],
    ) {
        output::say(format!("warning: {}", failure.message));
    }
    ended
}

fn record(
    state_dir: &Path,
    lease: &LeaseRecord,
    replaced: Option<LeaseId>,
    reclaimed: &[LeaseRecord],
) -> Result<(), Failure> {
    let at = now();
    let mut facts: Vec<NewFact> = reclaimed
        .iter()
        .map(|dead| {
            let body = FactBody::LeaseReclaimed {
                lease_id: dead.lease_id.clone(),
                epoch: dead.epoch,
            };
            NewFact::of_task(at, &dead.task_id, body)
        })
        .collect();
    facts.extend(replaced.map(|lease_id| {
        NewFact::of_task(at, &lease.task_id, FactBody::LeaseReleased { lease_id })
    }));
    let claimed = FactBody::LeaseClaimed {
        lease_id: lease.lease_id.clone(),
        epoch: lease.epoch,
        paths: lease.paths.to_strings(),
        resumed: false,
    };
    facts.push(NewFact::of_task(at, &lease.task_id, claimed));
    append(state_dir, &facts)
}

/// `FLOCKD_LEASE_TTL_MINUTES`, at least 1; what is no number falls back to the default.
fn default_ttl() -> Duration {
    let text = std::env::var("FLOCKD_LEASE_TTL_MINUTES").unwrap_or_default();
    let minutes = match text.trim().parse::<i64>() {
        Ok(minutes) => u64::try_from(minutes).unwrap_or(1).max(1),
        Err(_) => {
            if !text.trim().is_empty() {
                output::say(format!(
                    "warning: FLOCKD_LEASE_TTL_MINUTES: ignored: {text:?} is not a number"
                ));
            }
            TTL_MINUTES_DEFAULT
        }
    };
    Duration::from_secs(minutes.saturating_mul(60))
}

fn release(context: &Context, lease: &LeaseId) -> Outcome {
    let state_dir = context.state_dir();
    let gone = || output::say(format!("lease {lease} is not held any more"));
    if !state_dir.join("leases.json").exists() {
        gone();
        return Ok(0);
    }
    match LeaseManager::open(&state_dir)?.release_unheld(lease)? {
        Released::Before => gone(),
        Released::Now(record) => {
            let body = FactBody::LeaseReleased {
                lease_id: record.lease_id.clone(),
            };
            append(
                &state_dir,
                &[NewFact::of_task(now(), &record.task_id, body)],
            )?;
            output::line(&format!("released {}", record.lease_id))?;
        }
    }
    Ok(0)
}

/// The leases with whether somebody holds them, without making anything.
pub(super) fn leases(state_dir: &Path) -> Vec<LeaseView> {
    if !state_dir.join("leases.json").exists() {
        return Vec::new();
    }
    match LeaseManager::open(state_dir) {
        Ok(manager) => manager.list(),
        // Of a folder that cannot be written to, what the file says is the best there is.
        Err(_) => read_leases(state_dir)
            .leases
            .into_iter()
            .map(|record| LeaseView {
                record,
                alive: true,
            })
            .collect(),
    }
}

fn list(context: &Context) -> Outcome {
    let state_dir = context.state_dir();
    let found = leases(&state_dir);
    if let Some(problem) = read_leases(&state_dir).problem {
        output::say(format!("warning: {problem}"));
    }
    if context.json {
        let rows = found
            .iter()
            .map(|view| {
                let mut row = serde_json::to_value(&view.record)?;
                if let Some(fields) = row.as_object_mut() {
                    fields.insert("alive".to_owned(), view.alive.into());
                }
                Ok(row)
            })
            .collect::<Result<Vec<_>, serde_json::Error>>()?;
        output::json(&rows)?;
        return Ok(0);
    }
    let cells = |view: &LeaseView| {
        let record = &view.record;
        vec![
            record.lease_id.to_string(),
            record.task_id.to_string(),
            record.epoch.to_string(),
            if view.alive { "held" } else { "dead" }.to_owned(),
            record.holder.pid.to_string(),
            record
                .expires_at
                .map_or_else(|| "-".to_owned(), |at| at.seconds()),
            record.paths.to_strings().join(" "),
        ]
    };
    let rows: Vec<Vec<String>> = found.iter().map(cells).collect();
    let mut out = output::stdout();
    output::table(
        &mut out,
        &["LEASE", "TASK", "EPOCH", "STATE", "PID", "EXPIRES", "PATHS"],
        &rows,
    )?;
    out.flush()?;
    Ok(0)
}
